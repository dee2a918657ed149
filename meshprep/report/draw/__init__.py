"""Pictures of meshes and maps as small PNG files, drawn element by element."""

from .paint import encode_png
from .raster import spy
from .scene import Scene, place
from .view import Picture, draw_views

__all__ = ["Picture", "Scene", "draw_views", "encode_png", "place", "spy"]
