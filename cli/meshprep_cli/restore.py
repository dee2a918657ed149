"""``meshprep restore``: values on sets back into the order of the mesh file."""

from __future__ import annotations

from .apply import Moving, move


def run(moving: Moving) -> None:
    """Bring values from the plan's order back into the mesh file's; writes FIELDS-restored."""
    move(moving, inverse=True)
