"""Decks of Abaqus and CalculiX: the mesh is renumbered, everything else is kept."""

from functools import partial

from ..format import Format
from ..format.reduce import groups_by_tag
from .content import TYPE
from .read import read
from .write import losses, reduced, write

__all__ = ["FORMAT"]

FORMAT = Format(
    read=read,
    write=write,
    losses=losses,
    reduce=reduced,
    overlaid=True,
    groups=partial(groups_by_tag, name=TYPE),
)
