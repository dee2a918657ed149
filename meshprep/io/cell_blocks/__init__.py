"""Formats whose files hold blocks of cells: one way from and to a mesh in memory."""

from ..format import Capabilities, Values
from .block_format import block_format, read_only_format
from .file_mesh import Cells, FileMesh

__all__ = [
    "Capabilities",
    "Cells",
    "FileMesh",
    "Values",
    "block_format",
    "read_only_format",
]
