"""What a file format is and can carry, and a mesh reduced to that."""

from .model import Capabilities, Format, Values

__all__ = ["Capabilities", "Format", "Values"]
