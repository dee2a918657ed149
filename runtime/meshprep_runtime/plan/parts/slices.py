"""The slices of parts in a file: where each lies, and how to read one without HDF5."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import PlanError

T = TypeVar("T")

# Bytes of parts that are read at once: with fewer, Python's overhead for each part counts.
BATCH = 1 << 22
# Bytes of a part below which its slices are joined before they are hashed.
TOGETHER = 1 << 20


@dataclass(frozen=True)
class SlicedDataset:
    """A dataset that holds an array of all parts, one part after the other.

    ``name`` is its path under ``/parts/K``; ``row`` the shape of one row; ``address`` its
    first byte in the file.
    """

    name: str
    dtype: str
    row: tuple[int, ...]
    address: int = 0

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return prod(self.row) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, eq=False)
class PartsTable:
    """The tables with which a process reads a part without HDF5; can be sent to others.

    Attributes
    ----------
    parts : int
        The number of parts.
    description : mapping
        What all parts have in common: sets, maps, loops and figures.
    datasets : sequence of SlicedDataset
    offset : (n_datasets, parts + 1) int64
        The rows of each part in each dataset.
    digest : (parts, 32) uint8
        SHA-256 of the slices of each part, in the order of the datasets.
    """

    parts: int
    description: Mapping[str, Any]
    datasets: Sequence[SlicedDataset]
    offset: NDArray[np.int64]
    digest: NDArray[np.uint8]

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """The bytes of the file between which the slices of each part lie.

        (n_datasets, parts + 1): the slice of part ``p`` ends where that of the next begins.
        """
        row_bytes = np.array([dataset.row_bytes for dataset in self.datasets], np.int64)
        address = np.array([dataset.address for dataset in self.datasets], np.int64)
        return address[:, None] + row_bytes[:, None] * self.offset

    def extent(self, index: int, part: int) -> tuple[int, int]:
        """Address and bytes of the slice of a part in a dataset."""
        begin, end = self.ends[index, part : part + 2].tolist()
        return begin, end - begin

    def part_bytes(self, part: int) -> int:
        """Bytes of all slices of a part."""
        return int((self.ends[:, part + 1] - self.ends[:, part]).sum())

    def batches(self, parts: range) -> list[range]:
        """Cut some parts into runs of about :data:`BATCH` bytes, of at least one part."""
        size = np.diff(self.ends[:, parts.start : parts.stop + 1]).sum(axis=0)
        return in_runs(parts, size, BATCH)

    def raw(self, file: BinaryIO, parts: range) -> list[bytes]:
        """The bytes of every dataset for some parts; PlanError where one is damaged."""
        ends = self.ends[:, parts.start : parts.stop + 1]
        data = [
            read_all(file, begin, end - begin) for begin, end in ends[:, [0, -1]].tolist()
        ]
        for part, digest in zip(parts, digests(data, np.diff(ends)), strict=True):
            if digest != self.digest[part].tobytes():
                raise PlanError(
                    f"damaged: part {part} of {self.parts} does not match its checksum: "
                    "split the mesh anew"
                )
        return data

    def arrays(self, path: Path, parts: range) -> dict[str, NDArray[Any]]:
        """The arrays of some parts by name, part after part; reads no other bytes."""
        with open(path, "rb", buffering=0) as file:
            raw = self.raw(file, parts)
        arrays = {}
        for dataset, data in zip(self.datasets, raw, strict=True):
            array = np.frombuffer(data, dataset.dtype)
            if dataset.row:
                array = array.reshape(-1, *dataset.row)
            arrays[dataset.name] = array
        return arrays


def one_by_one(*works: Callable[[], T]) -> list[T]:
    """The results of functions, one after the other."""
    return [work() for work in works]


def in_runs(parts: range, size: NDArray[np.int64], most: int) -> list[range]:
    """Cut parts into runs whose sizes add up to about ``most``, of at least one part."""
    if not parts:
        return []
    run_of_part = np.maximum(np.cumsum(size) - 1, 0) // most
    first_of_next_runs = parts.start + 1 + np.flatnonzero(np.diff(run_of_part))
    cuts = [parts.start, *first_of_next_runs.tolist(), parts.stop]
    return [range(first, stop) for first, stop in pairwise(cuts)]


def read_all(file: BinaryIO, address: int, size: int) -> bytes:
    """Read bytes of an open file; raises PlanError where it ends before them."""
    pieces = []
    file.seek(address)
    while size > 0:
        piece = file.read(min(size, 1 << 30))
        if not piece:
            raise PlanError("cut short: split the mesh anew")
        pieces.append(piece)
        size -= len(piece)
    if len(pieces) == 1:
        return pieces[0]
    return b"".join(pieces)


def digests(data: Sequence[bytes | memoryview], sizes: NDArray[np.int64]) -> list[bytes]:
    """SHA-256 of each part; ``sizes``, (n_arrays, k), cut each array into parts."""
    ends = np.cumsum(sizes, axis=1)
    views = [memoryview(array) for array in data]
    digests_of_parts = []
    for begin, end in zip((ends - sizes).T.tolist(), ends.T.tolist(), strict=True):
        slices: list[bytes | memoryview] = []
        for view, low, high in zip(views, begin, end, strict=True):
            slices.append(view[low:high])
        # Join the slices of a small part: copying takes less than a call for each slice.
        if sum(end) - sum(begin) < TOGETHER:
            slices = [b"".join(slices)]
        digest = hashlib.sha256()
        for piece in slices:
            digest.update(piece)
        digests_of_parts.append(digest.digest())
    return digests_of_parts
