"""Whole numbers of a set as a file: a line each, or an array of NumPy."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

# The last one holds an array, the others text.
ENDINGS = (".txt", ".perm", ".part", ".npy")


def check_vector(path: Path) -> None:
    """Raise MeshprepError unless the ending of the name tells what to write."""
    if path.suffix.lower() not in ENDINGS:
        raise MeshprepError(f"{path}: cannot tell what to write: use one of {' '.join(ENDINGS)}")


def write_vector(path: Path, values: NDArray[np.integer]) -> None:
    """Write the numbers, (n,), in their order: text of one a line, or ``.npy`` in their type."""
    if path.suffix.lower() == ".npy":
        with path.open("wb") as file:
            np.save(file, values, allow_pickle=False)
    else:
        lines = map(str, values.tolist())
        path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
