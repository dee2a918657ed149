"""Reading and writing mesh files: one registry, one front for every format."""

from .front import FORMATS, read, refuse_losses, write

__all__ = ["FORMATS", "read", "refuse_losses", "write"]
