"""What a mesh is: sets, maps, values, groups; shapes of cells; who shares what."""

from .model import Dat, ElementSet, IndexList, Mesh, SetMap, Tag

__all__ = ["Dat", "ElementSet", "IndexList", "Mesh", "SetMap", "Tag"]
