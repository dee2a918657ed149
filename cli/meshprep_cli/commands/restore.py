"""``meshprep restore``: values on sets back into the order of the mesh file."""

from .apply import FieldFiles, move_fields


def restore_fields(files: FieldFiles) -> None:
    """Bring values from the plan's order back into the mesh file's.

    Writes NAME-restored beside each file.
    """
    move_fields(files, inverse=True)
