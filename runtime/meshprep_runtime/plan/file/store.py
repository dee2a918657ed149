"""Plan files: written whole or not at all, and believed only when every byte is accounted for."""

from pathlib import Path
from types import ModuleType

from ...errors import MeshprepError, MissingPackageError, PlanError
from ..checks.structure import check_plan
from ..model import PlanContent
from .atomic import check_input, new_file
from .schema import from_tree, to_tree
from .seal import check_seal

# The second is that of plans some of whose variants list their elements, the third of those with
# matrices, the fourth of those with ranges, coordinates or extensions.
VERSIONS = (1, 2, 3, 4)


def save(plan: PlanContent, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a plan file atomically: when this fails or is interrupted, nothing is left behind.

    Raises PlanError when the arrays of the plan do not fit each other; see :mod:`structure`. Raises
    MeshprepError when the file exists and not ``overwrite``, or cannot be written. The same plan
    always gives the same bytes. O(bytes): hashing runs at 1 to 2 GB/s.

    ``overwrite`` replaces a file of that name.
    """
    hdf5 = hdf5_module()
    check_plan(plan)
    tree = to_tree(plan)
    with new_file(path, overwrite=overwrite) as temporary:
        try:
            hdf5.write_tree(tree, temporary, _version(plan))
        except (RuntimeError, ValueError) as error:
            raise MeshprepError(f"cannot write {path}: {_line(error)}") from error


def load(path: str | Path) -> PlanContent:
    """Read a plan file and prove it undamaged and safe to run.

    Raises PlanError when the file is missing, no plan, of another version, changed in any byte, or
    holds arrays that do not fit each other.

    Memory stays within the size of the file and a few arrays of one index an element. O(bytes).
    """
    hdf5 = hdf5_module()
    place = Path(path)
    size = size_of_file(place)
    try:
        version = check_seal(place, VERSIONS)
        with hdf5.opened(place) as file:
            tree = hdf5.read_tree(file, size)
        plan = from_tree(tree)
        if _version(plan) != version:
            raise PlanError(
                f"version {version}, but it holds what version {_version(plan)} does: make it anew"
            )
        check_plan(plan)
    except MeshprepError as error:
        raise PlanError(f"{path}: {error}") from error
    except Exception as error:  # HDF5 meets damage with exceptions of every kind.
        raise PlanError(f"{path}: damaged, or no plan ({_line(error)}): make it anew") from error
    return plan


def _version(plan: PlanContent) -> int:
    """The oldest version whose readers run the plan right."""
    ranges = any(loop.ranges is not None for loop in plan.loops.values())
    if ranges or plan.coordinates or plan.extensions:
        return 4
    variants = (v for loop in plan.loops.values() for v in loop.variants.values())
    if plan.matrices:
        return 3
    return 2 if any(v.elements is not None for v in variants) else 1


def hdf5_module() -> ModuleType:
    """The module that knows HDF5; raises MissingPackageError where h5py is not installed."""
    try:
        from . import hdf5
    except ModuleNotFoundError as error:
        raise MissingPackageError("plan files need h5py: pip install h5py") from error
    return hdf5


def size_of_file(path: Path) -> int:
    """Bytes of a readable regular file; a pipe is never opened."""
    try:
        return check_input(path)
    except MeshprepError as error:
        raise PlanError(f"cannot read plan {path}: {error}") from error


def _line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
