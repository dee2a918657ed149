"""Meshes with values on them, such as ``.vtu``: nodes, cells and all that is on them move."""

from pathlib import Path

from meshprep_runtime.errors import MeshprepError

from ... import io
from ..registry import find
from .permute import PermutedField, Permuter


def is_mesh(path: Path) -> bool:
    """Whether the file's ending is that of a mesh format."""
    return any(path.name.lower().endswith(f.extensions) for f in io.FORMATS.values())


def move(permuter: Permuter, source: Path, staged: Path) -> list[PermutedField]:
    """Renumber a mesh file as a whole; refused where it is another mesh or in the order wanted.

    The mesh may be deformed: only its cells are compared.
    """
    if permuter.declared:
        raise MeshprepError("a mesh says what its values are on: leave --sets out")
    form = find(io.FORMATS, source, None)
    # what is loose was accepted when the plan was made
    mesh = io.read(source, format=form.name, dimension=0)
    _check(permuter, mesh.content_hash())
    # a union follows its parts, whose order may be another one than the plan's
    alone = [s.name for s in mesh.sets.values() if not s.parts]
    orders = {name: permuter.plan.ordering.get(name) for name in alone}
    for name, order in orders.items():
        if order is None or order.size != mesh.size(name):
            raise MeshprepError(f"the plan does not fit its set '{name}' of {mesh.size(name)}")
    ways = {n: o.inverse if permuter.inverse else o for n, o in orders.items() if o is not None}
    permuter.dropped += io.write(mesh.renumber(ways), staged, format=form.name, drop=permuter.drop)
    return [PermutedField(name, name, mesh.size(name)) for name in mesh.sets]


def _check(permuter: Permuter, found: str) -> None:
    old, new = permuter.plan.source_hash, permuter.plan.mesh_hash
    wanted, other = (new, old) if permuter.inverse else (old, new)
    if found == wanted:
        return
    if found == other:
        where = "of the mesh it was made from" if permuter.inverse else "of the plan"
        raise MeshprepError(f"is in the order {where} already")
    raise MeshprepError("holds another mesh than the plan: its cells differ")
