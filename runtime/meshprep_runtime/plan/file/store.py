"""Plan files: written whole or not at all, and checked byte by byte when read."""

from pathlib import Path
from types import ModuleType

from ...errors import MeshprepError, MissingPackageError, PlanError
from ..checks.structure import check_plan
from ..model import PlanContent
from .atomic import check_input, new_file
from .schema import from_tree, to_tree
from .seal import check_seal

# The versions of the format that can be read. A plan is written in the lowest version that
# can hold it: 2 for variants that list their elements, 3 for matrices, 4 for ranges,
# coordinates and extensions.
VERSIONS = (1, 2, 3, 4)


def save(plan: PlanContent, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a plan file; an error or an interrupt leaves no file.

    ``overwrite`` replaces a file of that name. Raises PlanError when the arrays of the plan
    do not fit each other; see :mod:`..checks.structure`. Raises MeshprepError when the file
    exists and not ``overwrite``, or cannot be written. The same plan always gives the same
    bytes. O(bytes): hashing runs at 1 to 2 GB/s.
    """
    hdf5 = hdf5_module()
    check_plan(plan)
    tree = to_tree(plan)
    with new_file(path, overwrite=overwrite) as temporary:
        try:
            hdf5.write_tree(tree, temporary, _version(plan))
        except (RuntimeError, ValueError) as error:
            raise MeshprepError(f"cannot write {path}: {line_of(error)}") from error


def load(path: str | Path) -> PlanContent:
    """Read a plan file, and check that it is undamaged and safe to run.

    Raises PlanError when the file is missing, no plan, of another version, changed in any
    byte, or holds arrays that do not fit each other. Takes memory of the size of the file,
    and a few arrays with one index for each element. O(bytes).
    """
    hdf5 = hdf5_module()
    file_path = Path(path)
    size = size_of_file(file_path)
    try:
        version = check_seal(file_path, VERSIONS)
        with hdf5.opened(file_path) as file:
            tree = hdf5.read_tree(file, size)
        plan = from_tree(tree)
        if _version(plan) != version:
            raise PlanError(
                f"version {version}, but it holds what version {_version(plan)} does: "
                "make it anew"
            )
        check_plan(plan)
    except MeshprepError as error:
        raise PlanError(f"{path}: {error}") from error
    except Exception as error:
        # HDF5 raises exceptions of many kinds for damaged files.
        raise PlanError(
            f"{path}: damaged, or no plan ({line_of(error)}): make it anew"
        ) from error
    return plan


def _version(plan: PlanContent) -> int:
    """The lowest version of the format that can hold a plan."""
    if any(loop_plan.ranges is not None for loop_plan in plan.loops.values()):
        return 4
    if plan.coordinates or plan.extensions:
        return 4
    if plan.matrices:
        return 3
    for loop_plan in plan.loops.values():
        for variant in loop_plan.variants.values():
            if variant.elements is not None:
                return 2
    return 1


def hdf5_module() -> ModuleType:
    """The module that uses h5py; raises MissingPackageError where h5py is not installed."""
    try:
        from . import hdf5
    except ModuleNotFoundError as error:
        raise MissingPackageError("plan files need h5py: pip install h5py") from error
    return hdf5


def size_of_file(path: Path) -> int:
    """The size in bytes of a regular file that can be read; a pipe is never opened."""
    try:
        return check_input(path)
    except MeshprepError as error:
        raise PlanError(f"cannot read plan {path}: {error}") from error


def line_of(error: BaseException) -> str:
    """An exception as one line of at most 200 characters."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
