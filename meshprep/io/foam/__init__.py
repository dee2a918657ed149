"""OpenFOAM cases: polyMesh with cells of any shape, and the fields on it."""

from ..format import Format
from .case import CASE, case_folder, read
from .write import again, losses, reduced, write, write_cell_map

__all__ = ["FORMAT", "case_folder", "write_cell_map"]

FORMAT = Format(
    read=read,
    write=write,
    losses=losses,
    reduce=reduced,
    cells=False,
    extras=(CASE,),
    read_options={"region": ""},
    again=again,
    folder=case_folder,
)
