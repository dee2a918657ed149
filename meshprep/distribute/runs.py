"""Runs of elements in an order, one for each part, and the places that give orders."""

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from .subject import SplitSubject


def runs(n: int, weights: NDArray[np.float64], own: range | None = None) -> NDArray[np.int32]:
    """Part of each element of a range, for runs whose sizes follow the weights."""
    own = range(n) if own is None else own
    at = np.arange(own.start, own.stop)
    return np.searchsorted(run_ends(n, weights), at, side="right").astype(np.int32)


def run_ends(n: int, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """End of the run of each part."""
    ends = np.rint(np.cumsum(weights) * n).astype(np.int64)
    ends[-1:] = n
    return ends


def finite_centroids(subject: SplitSubject, cut: str) -> NDArray[np.float64]:
    """Centroids of the leading set; raises MeshprepError if they are missing or infinite."""
    name = subject.leading_set
    where = subject.centroids.get(name)
    if where is None:
        raise MeshprepError(f"cut '{cut}' needs coordinates, and '{name}' has none: use metis")
    if not np.isfinite(where).all():
        raise MeshprepError(f"cut '{cut}' needs finite coordinates of '{name}': use metis")
    return where
