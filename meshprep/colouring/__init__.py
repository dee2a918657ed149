"""Colours: of threads in a block, and of blocks [G10 section 9.1]."""

from .block_colours import BlockColours, colour_blocks
from .thread_colours import ThreadColours, colour_threads, sort_by_colour, thread_bound

__all__ = [
    "BlockColours",
    "ThreadColours",
    "colour_blocks",
    "colour_threads",
    "sort_by_colour",
    "thread_bound",
]
