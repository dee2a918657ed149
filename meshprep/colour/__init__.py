"""Colours: of threads in a block, of blocks, and of a whole set [G10 section 9.1]."""

from .block_colours import BlockColours, colour_blocks
from .greedy import colour_whole_set
from .thread_colours import ThreadColours, colour_threads, sort_by_colour, thread_bound

__all__ = [
    "BlockColours",
    "ThreadColours",
    "colour_blocks",
    "colour_threads",
    "colour_whole_set",
    "sort_by_colour",
    "thread_bound",
]
