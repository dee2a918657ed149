"""HDF5 and netCDF files of rare formats, read whole by a process of its own.

A damaged file can crash the C libraries that read it. Here that ends a child process, and
the user gets one line. What the child finds comes as a tree of :class:`~.contents.Item`,
which knows what of it a reader has looked at: the rest is lost, and is named.
"""

from .child import load
from .contents import Item

__all__ = ["Item", "load"]
