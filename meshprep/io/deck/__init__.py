"""Decks of Abaqus and CalculiX: the mesh is read and renumbered, all else comes back as it was."""

from ..registry import Format
from .read import read
from .write import losses, reduced, write

__all__ = ["FORMAT"]

FORMAT = Format("abaqus", (".inp",), read, write, losses, reduce=reduced)
