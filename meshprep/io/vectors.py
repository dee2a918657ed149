"""Whole numbers of a set as a file: a line each, or an array of NumPy."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.inputs import check_input, reason

# The last one holds an array, the others text.
ENDINGS = (".txt", ".perm", ".part", ".npy")


def check_vector(path: Path) -> None:
    """Raise MeshprepError unless the ending of the name tells what to write."""
    if path.suffix.lower() not in ENDINGS:
        raise MeshprepError(f"{path}: cannot tell what to write: use one of {' '.join(ENDINGS)}")


def read_vector(path: Path) -> NDArray[np.integer]:
    """Read the numbers of ``.npy``, of any shape, or of a text between which there is white space.

    Raises MeshprepError, which begins with the path, for files that cannot be read or hold others.
    """
    try:
        check_input(path)
        if path.suffix.lower() == ".npy":
            found = np.load(path, allow_pickle=False)
        else:
            found = np.array(path.read_bytes().split(), dtype=np.int64)
    except (MeshprepError, OSError) as error:
        why = reason(error) if isinstance(error, OSError) else error
        raise MeshprepError(f"{path}: {why}") from None
    except (ValueError, OverflowError):
        raise MeshprepError(f"{path}: is neither .npy nor text with whole numbers") from None
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "iu":
        raise MeshprepError(f"{path}: must hold whole numbers, one for each element")
    return found


def write_vector(path: Path, values: NDArray[np.integer]) -> None:
    """Write the numbers, (n,), in their order: text of one a line, or ``.npy`` in their type."""
    if path.suffix.lower() == ".npy":
        with path.open("wb") as file:
            np.save(file, values, allow_pickle=False)
    else:
        lines = map(str, values.tolist())
        path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
