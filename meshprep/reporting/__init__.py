"""Tables, pages, pictures and JSON of meshes and plans, for people and scripts."""

from .compare import Comparison, compare, this_machine
from .describe import describe
from .table import Table
from .verdict import conclusion, verdict

__all__ = [
    "Comparison",
    "Table",
    "compare",
    "conclusion",
    "describe",
    "this_machine",
    "verdict",
]
