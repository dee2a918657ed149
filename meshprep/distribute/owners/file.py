"""Owners read from a file: the part of each element of the leading set, or of another."""

from pathlib import Path

import numpy as np

from meshprep_runtime.errors import MeshprepError

from ...io.original_ids import read_vector
from ...kernels import Int32s
from ..subject import SplitSubject


def owners_from_file(subject: SplitSubject, parts: int, path: Path) -> tuple[str, Int32s]:
    """A set, and the part of each of its elements.

    The set is the leading one where it has as many elements as the file has numbers, else
    the only one that has as many. ``path`` is as
    :func:`meshprep.io.original_ids.read_vector` takes it; its numbers are in the order of
    the mesh that was read. Parts may be empty, except the last one: the file would be for
    fewer. Raises MeshprepError for files that cannot be read or do not fit.
    """
    parts_read = read_vector(path)
    fitting_sets = [
        name for name, size in subject.sizes.items() if parts_read.shape == (size,)
    ]
    leading = subject.leading_set
    # Refuse files for another mesh, or for another number of parts.
    if leading not in fitting_sets and len(fitting_sets) != 1:
        others = ", ".join(
            f"{n} {size}" for n, size in subject.sizes.items() if n != leading
        )
        raise MeshprepError(
            f"{path} has shape {parts_read.shape}, but '{leading}' has "
            f"{subject.sizes[leading]} elements: give one part for each, "
            f"or for each of another set ({others})"
        )
    outside = np.flatnonzero((parts_read < 0) | (parts_read >= parts))
    if outside.size:
        at = outside[0]
        raise MeshprepError(
            f"{path}: element {at} is in part {parts_read[at]}, outside 0..{parts - 1}"
        )
    last = int(parts_read.max(initial=0))
    if parts_read.size and last < parts - 1:
        raise MeshprepError(
            f"{path}: owners are parts 0..{last}, but {parts} parts are asked for, "
            f"and the last would be empty: ask for {last + 1}, "
            f"or give the file that was made for {parts}"
        )
    name = leading if leading in fitting_sets else fitting_sets[0]
    owner = parts_read.astype(np.int32)
    original = subject.original.get(name)
    if original is not None:
        owner = owner[original]
    return name, owner
