"""A plan cut into parts, one for each rank of a distributed run [R14 7.1]."""

from .model import ClassColours, LoopPart, MapPart, Messages, PartPlan, SetPart
from .store import kept, load_part, parts_table, read_part

__all__ = [
    "ClassColours",
    "LoopPart",
    "MapPart",
    "Messages",
    "PartPlan",
    "SetPart",
    "kept",
    "load_part",
    "parts_table",
    "read_part",
]
