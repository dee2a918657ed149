"""``meshprep restore``: values on sets back into the order of the mesh file."""

from .apply import FieldFiles, move


def run(files: FieldFiles) -> None:
    """Bring values from the plan's order back into the mesh file's.

    Writes NAME-restored beside each file.
    """
    move(files, inverse=True)
