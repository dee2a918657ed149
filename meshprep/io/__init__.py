"""Reading and writing mesh files: one registry, one front for every format."""

from .front import file_groups, losses, read, refuse_losses, write
from .registry import FORMATS

__all__ = ["FORMATS", "file_groups", "losses", "read", "refuse_losses", "write"]
