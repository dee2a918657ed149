"""Owners read from a file, of a solver that has cut its mesh already."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...io.vectors import read_vector
from ..subject import SplitSubject

# How a cut begins that names a file.
FILE = "file:"


def owners_from_file(
    subject: SplitSubject, parts: int, path: Path
) -> tuple[str, NDArray[np.int32]]:
    """A set, and the part of each of its elements.

    The set is the leading one where the file has a number for each of its elements, else the only
    one that has as many. Parts may be empty, but for the last: then the file is for fewer. Raises
    MeshprepError for files that cannot be read or do not fit. ``path`` is as
    :func:`meshprep.io.vectors.read_vector` takes it, in the order of the mesh that was read.
    """
    found = read_vector(path)
    able = [name for name, size in subject.sizes.items() if found.shape == (size,)]
    leading = subject.leading_set
    if leading not in able and len(able) != 1:
        others = ", ".join(f"{n} {size}" for n, size in subject.sizes.items() if n != leading)
        raise MeshprepError(
            f"{path} has shape {found.shape}, but '{leading}' has {subject.sizes[leading]} "
            f"elements: give one part for each, or for each of another set ({others})"
        )
    outside = np.flatnonzero((found < 0) | (found >= parts))
    if outside.size:
        at = outside[0]
        raise MeshprepError(f"{path}: element {at} is in part {found[at]}, outside 0..{parts - 1}")
    last = int(found.max(initial=0))
    if found.size and last < parts - 1:
        raise MeshprepError(
            f"{path}: owners are parts 0..{last}, but {parts} parts are asked for, and the last "
            f"would be empty: ask for {last + 1}, or give the file that was made for {parts}"
        )
    name = leading if leading in able else able[0]
    owner, original = found.astype(np.int32), subject.original.get(name)
    return name, owner if original is None else owner[original]
