"""Tables, pages, pictures and JSON of meshes and plans, for people and scripts."""

from ..metrics.cost import Assumptions
from .compare import Comparison, compare, plan_table
from .describe import describe
from .table import Table
from .verdict import measured_lines, verdict

__all__ = [
    "Assumptions",
    "Comparison",
    "Table",
    "compare",
    "describe",
    "measured_lines",
    "plan_table",
    "verdict",
]
