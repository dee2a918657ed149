"""Reading and writing mesh files: one registry, one front for every format."""

from .front import FORMATS, losses, read, refuse_losses, write

__all__ = ["FORMATS", "losses", "read", "refuse_losses", "write"]
