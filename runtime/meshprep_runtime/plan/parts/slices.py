"""The slices of parts in a file: where each lies, and reading one without HDF5."""

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

# Bytes of parts that are read at once: with fewer the interpreter takes its time for each part.
BATCH = 1 << 22
# Parts of fewer bytes are digested in one piece.
TOGETHER = 1 << 20


@dataclass(frozen=True)
class SlicedDataset:
    """A dataset that holds the arrays of all parts, one after the other."""

    name: str  # its place under ``/parts/K``
    dtype: str
    row: tuple[int, ...]  # the shape of one row
    address: int = 0  # its first byte in the file

    @property
    def row_bytes(self) -> int:
        return prod(self.row) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, eq=False)
class PartsTable:
    """All that a process needs to read a part, without HDF5; it can be sent to others."""

    parts: int
    description: Mapping[str, Any]  # what all parts have in common: sets, maps, loops, figures
    datasets: Sequence[SlicedDataset]
    offset: NDArray[np.int64]  # (n_datasets, parts + 1): rows of each part
    # (parts, 32): SHA-256 of the slices of each part, in the order of the datasets.
    digest: NDArray[np.uint8]

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """Where the slices of each part begin in the file, (n_datasets, parts + 1), and end."""
        row_bytes, address = (
            np.array([getattr(one, name) for one in self.datasets], np.int64)[:, None]
            for name in ("row_bytes", "address")
        )
        return address + row_bytes * self.offset

    def extent(self, index: int, part: int) -> tuple[int, int]:
        """Address and bytes of the slice of a part in a dataset."""
        begin, end = self.ends[index, part : part + 2].tolist()
        return begin, end - begin

    def part_bytes(self, part: int) -> int:
        return int((self.ends[:, part + 1] - self.ends[:, part]).sum())

    def batches(self, parts: range) -> list[range]:
        """Some parts in runs of about :data:`BATCH` bytes; a part alone where it has more."""
        size = np.diff(self.ends[:, parts.start : parts.stop + 1]).sum(axis=0)
        return in_runs(parts, size, BATCH)

    def raw(self, file: BinaryIO, parts: range) -> list[bytes]:
        """The bytes of every dataset for some parts; raises PlanError where one is damaged."""
        ends = self.ends[:, parts.start : parts.stop + 1]
        found = [read_all(file, begin, end - begin) for begin, end in ends[:, [0, -1]].tolist()]
        for part, digest in zip(parts, digests(found, np.diff(ends)), strict=True):
            if digest != self.digest[part].tobytes():
                raise PlanError(
                    f"damaged: part {part} of {self.parts} does not match its checksum: "
                    "split the mesh anew"
                )
        return found

    def arrays(self, path: Path, parts: range) -> dict[str, NDArray[Any]]:
        """The arrays of some parts by name, part after part; nothing else of the file is read."""
        with open(path, "rb", buffering=0) as file:
            raw = self.raw(file, parts)
        found = {}
        for one, data in zip(self.datasets, raw, strict=True):
            array = np.frombuffer(data, one.dtype)
            found[one.name] = array.reshape(-1, *one.row) if one.row else array
        return found


def one_by_one(*works: Callable[[], T]) -> list[T]:
    """The results of functions, one after the other."""
    return [work() for work in works]


def in_runs(parts: range, size: NDArray[np.int64], most: int) -> list[range]:
    """Parts in runs whose sizes add up to about ``most``; a part alone where it has more."""
    run = np.maximum(np.cumsum(size) - 1, 0) // most
    cuts = [parts.start, *(parts.start + 1 + np.flatnonzero(np.diff(run))).tolist(), parts.stop]
    return [range(*ends) for ends in pairwise(cuts) if parts]


def read_all(file: BinaryIO, address: int, size: int) -> bytes:
    """Bytes of an open file; PlanError where it ends before them."""
    pieces = []
    file.seek(address)
    while size > 0:
        piece = file.read(min(size, 1 << 30))
        if not piece:
            raise PlanError("cut short: split the mesh anew")
        pieces.append(piece)
        size -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def digests(data: Sequence[bytes | memoryview], sizes: NDArray[np.int64]) -> list[bytes]:
    """SHA-256 of each part; (n_arrays, k) ``sizes`` cut the arrays into parts."""
    ends = np.cumsum(sizes, axis=1)
    views, found = [memoryview(one) for one in data], []
    for begin, end in zip((ends - sizes).T.tolist(), ends.T.tolist(), strict=True):
        pieces = [one[low:high] for one, low, high in zip(views, begin, end, strict=True)]
        digest = hashlib.sha256()
        # a call for each piece takes longer than copying a small part
        for piece in [b"".join(pieces)] if sum(end) - sum(begin) < TOGETHER else pieces:
            digest.update(piece)
        found.append(digest.digest())
    return found
