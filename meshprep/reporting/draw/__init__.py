"""Pictures of meshes, maps and matrices: geometry of ours, drawn by matplotlib."""

from .dots import count_entries
from .encode import png
from .scene import Scene, place
from .view import View, views_of

__all__ = ["Scene", "View", "count_entries", "place", "png", "views_of"]
