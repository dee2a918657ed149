"""Our own cut of the leading set into parts, one for each rank."""

from .cut import part_of_element

__all__ = ["part_of_element"]
