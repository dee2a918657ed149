"""Reading and writing mesh files: one registry, one front for every format."""

from .front import FORMATS, read, write

__all__ = ["FORMATS", "read", "write"]
