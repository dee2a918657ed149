"""SU2 mesh files: one zone, cells of any mix, markers with their names.

Read here and not through meshio, which loses the names of markers, gives two markers one number
when a name follows an integer, reads the zones of a file into one another, and cannot write.
"""

from ..registry import Format
from .read import read
from .write import losses, marker_order, reduced, write

__all__ = ["FORMAT"]

FORMAT = Format("su2", (".su2",), read, write, losses, reduce=reduced, order=marker_order)
