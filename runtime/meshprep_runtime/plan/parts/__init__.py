"""A plan cut into parts, one for each rank of a distributed run [R14 7.1]."""

from .model import ClassColours, LoopPart, MapPart, Messages, PartPlan, SetPart

__all__ = ["ClassColours", "LoopPart", "MapPart", "Messages", "PartPlan", "SetPart"]
