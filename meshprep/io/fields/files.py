"""Several files of values at once, all or none: what the commands do."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.atomic import together

from ..outputs import check_targets
from . import move_file
from .permute import PermutedField, Permuter


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
    """Put files of values into the plan's order, or back; see :func:`meshprep.io.fields.move`.

    Without ``output``, ``q.npy`` becomes ``q-reordered.npy`` or ``q-restored.npy``. With ``drop``
    mesh files go without what cannot be written.
    """
    if output is not None and len(files) > 1:
        raise MeshprepError("there are several files: leave --output out")
    if output is not None and output.suffix.lower() != files[0].suffix.lower():
        raise MeshprepError(f"{output}: must end in {files[0].suffix}, as what it is made from")
    ending = "restored" if inverse else "reordered"
    targets = [output or f.parent / f"{f.stem}-{ending}{f.suffix}" for f in files]
    check_targets(targets, overwrite=overwrite, inputs=[plan, *files])
    made = Plan.load(plan)
    with together(targets, overwrite=overwrite) as staged:
        permuter = partial(Permuter, made, inverse, declared or {}, drop)
        moved = [move_file(permuter, *pair) for pair in zip(files, staged, strict=True)]
    return [PermutedFile(t, *m) for t, m in zip(targets, moved, strict=True)]
