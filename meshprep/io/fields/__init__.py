"""Files of values on sets, moved between numberings by ``apply`` and ``restore``.

A kind of file reads arrays with the sets they are on, and writes a copy of the file with
other arrays in their place. Meshes (``.vtu`` and every format that is written) move as a
whole.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.file.atomic import check_input, together

from ... import io
from ..outputs import check_targets
from ..registry import find, find_by_ending
from . import arrays
from .permute import FieldFormat, PermutedField, Permuter

__all__ = ["VARIANTS", "PermutedField", "move_files"]

VARIANTS: dict[str, FieldFormat] = {
    ".npy": arrays.NPY,
    ".npz": arrays.NPZ,
    ".h5": arrays.HDF5,
    ".hdf5": arrays.HDF5,
}


def _move_file(
    permuter: Callable[[], Permuter], source: Path, target: Path
) -> tuple[list[PermutedField], list[str]]:
    """Write a copy of a file in the other order; return what was moved and dropped."""
    try:
        check_input(source)
        made = permuter()
        return _move(made, source, target), made.dropped
    except MeshprepError as error:
        named = str(error).startswith(f"{source}: ")
        raise error if named else MeshprepError(f"{source}: {error}") from None


def _move(permuter: Permuter, source: Path, target: Path) -> list[PermutedField]:
    variant = VARIANTS.get(source.suffix.lower())
    if variant is None:
        if find_by_ending(source) is None:
            raise MeshprepError(
                f"cannot tell the format from the name: use {' '.join(VARIANTS)} or a mesh"
            )
        return _move_mesh(permuter, source, target)
    old = variant.read(source, permuter)
    if not old:
        sizes = ", ".join(f"{name} {size}" for name, size in permuter.sizes.items())
        raise MeshprepError(
            f"nothing in it has as many rows as a set of the plan ({sizes})"
        )
    new = {name: permuter.move(name, a.values, a.place) for name, a in old.items()}
    variant.write(source, target, new, permuter)
    # What was found out is not asked again: in the other order, it might not be found.
    permuter.declared |= {name: a.place for name, a in old.items()}
    _prove_arrays(variant.read(target, permuter), new)
    return [PermutedField(name, a.place, len(a.values)) for name, a in old.items()]


def _move_mesh(permuter: Permuter, source: Path, staged: Path) -> list[PermutedField]:
    """Renumber a mesh file as a whole.

    It is refused where it holds another mesh, or stands in the wanted order already.

    The mesh may be deformed: only its cells are compared.
    """
    if permuter.declared:
        raise MeshprepError("a mesh says what its values are on: leave --sets out")
    form = find(source, None)
    # what is loose was accepted when the plan was made
    mesh = io.read(source, format=form.name, dimension=0)
    _check_mesh(permuter, mesh.content_hash())
    # a union follows its parts, whose order may be another one than the plan's
    alone = [s.name for s in mesh.sets.values() if not s.parts]
    orders = {name: permuter.plan.ordering.get(name) for name in alone}
    for name, order in orders.items():
        if order is None or order.size != mesh.size(name):
            raise MeshprepError(
                f"the plan does not fit its set '{name}' of {mesh.size(name)}"
            )
    ways = {
        n: o.inverse if permuter.inverse else o for n, o in orders.items() if o is not None
    }
    permuter.dropped += io.write(
        mesh=mesh.renumber(ways), path=staged, format=form.name, drop=permuter.drop
    )
    return [PermutedField(name, name, mesh.size(name)) for name in mesh.sets]


def _check_mesh(permuter: Permuter, found: str) -> None:
    old = permuter.plan.source_hash
    new = permuter.plan.mesh_hash
    if permuter.inverse:
        expected_hash = new
        other = old
    else:
        expected_hash = old
        other = new
    if found == expected_hash:
        return
    if found == other:
        if permuter.inverse:
            where = "of the mesh it was made from"
        else:
            where = "of the plan"
        raise MeshprepError(f"is in the order {where} already")
    raise MeshprepError("holds another mesh than the plan: its cells differ")


def _prove_arrays(found: Mapping[str, object], expected: Mapping[str, NDArray]) -> None:
    """Raise MeshprepError unless the written file holds these arrays, to the bit."""
    for name, values in expected.items():
        back = getattr(found.get(name), "values", None)
        if back is None or back.dtype != values.dtype or not _same_bits(back, values):
            raise MeshprepError(
                f"'{name}' does not read back as it was written: nothing was kept"
            )


def _same_bits(a: NDArray, b: NDArray) -> bool:
    if a.dtype.hasobject:
        return bool(np.array_equal(a, b))
    return a.shape == b.shape and a.tobytes() == b.tobytes()


@dataclass(frozen=True)
class PermutedFile:
    """A file of values that was written, and what in it was moved."""

    written: Path
    moved: list[PermutedField]
    dropped: list[str] = field(default_factory=list)  # of a mesh, what could not be written

    def to_dict(self) -> dict[str, Any]:
        moved = [asdict(m) for m in self.moved]
        return {"written": str(self.written), "moved": moved, "dropped": self.dropped}


def move_files(
    plan: Path,
    files: Sequence[Path],
    output: Path | None = None,
    *,
    inverse: bool = False,
    declared: Mapping[str, str] | None = None,
    overwrite: bool = False,
    drop: bool = False,
) -> list[PermutedFile]:
    """Put files of values into the plan's order, or ``inverse``; return what was moved.

    Without ``output``, ``q.npy`` becomes ``q-reordered.npy`` or ``q-restored.npy``; without
    ``declared``, as of :mod:`meshprep.io.declared`, the row count tells the set. With
    ``drop`` mesh files go without what cannot be written. Raises MeshprepError where
    nothing in a file fits the plan, it is not clear what does, or a file does not read back
    as the same.
    """
    if output is not None and len(files) > 1:
        raise MeshprepError("there are several files: leave --output out")
    if output is not None and output.suffix.lower() != files[0].suffix.lower():
        raise MeshprepError(
            f"{output}: must end in {files[0].suffix}, as what it is made from"
        )
    ending = "restored" if inverse else "reordered"
    targets = [output or f.parent / f"{f.stem}-{ending}{f.suffix}" for f in files]
    check_targets(targets, overwrite=overwrite, inputs=[plan, *files])
    made = Plan.load(plan)
    with together(targets, overwrite=overwrite) as staged:
        permuter = partial(Permuter, made, inverse, declared or {}, drop)
        moved = [_move_file(permuter, *pair) for pair in zip(files, staged, strict=True)]
    return [PermutedFile(t, *m) for t, m in zip(targets, moved, strict=True)]
