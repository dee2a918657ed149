"""Messages between parts: copies brought up to date, one message a neighbour for all dats.

Receives are posted before anything is sent. Both sides compute the layout of a message; it begins
with a checksum of that, so that ranks which do not run the same loops stop with an error.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DistributedError
from ..plan.parts import Messages, PartPlan
from ..types.maps import Int32s, UInt8s
from .dat import EXEC, ProgramDat

if TYPE_CHECKING:
    from .device_rows import DeviceRows

# A dat, and the lists of its copies that are wanted.
Wanted = tuple[ProgramDat, tuple[str, ...]]
TAG = 14
# Every piece of a message begins at a multiple of this.
ALIGNED = 8


@dataclass(frozen=True, eq=False)
class Segment:
    """Rows of one dat in a message."""

    dat: int
    rows: slice | Int32s
    values: NDArray[Any]
    # On GPUs, by the device: what moves the rows.
    moved: dict[Any, DeviceRows] = field(default_factory=dict)

    def on(self, dat: ProgramDat) -> DeviceRows:
        """These rows on the current GPU."""
        from ..cuda.device import current
        from .device_rows import DeviceRows

        device = current()
        if device not in self.moved:
            run = self.rows
            rows = np.arange(run.start, run.stop, dtype=np.int32) if isinstance(run, slice) else run
            self.moved[device] = DeviceRows(dat, rows, dat.current().shape[dat.axis])
        return self.moved[device]


@dataclass(frozen=True, eq=False)
class Parcel:
    """A message with its segments, which are views of the buffer."""

    part: int
    buffer: UInt8s
    segments: tuple[Segment, ...]


@dataclass(frozen=True, eq=False)
class Pattern:
    """The messages of one kind of exchange, with their buffers."""

    sends: tuple[Parcel, ...]
    receives: tuple[Parcel, ...]
    checksum: int

    @property
    def sent_bytes(self) -> int:
        """In all messages."""
        return sum(parcel.buffer.nbytes for parcel in self.sends)


class Exchange:
    """Sends and receives rows of dats for one part.

    Messages of ``comm`` are this object's alone. A message that does not come within ``timeout``
    seconds is an error.
    """

    def __init__(self, comm: Any, part: PartPlan, timeout: float | None = None) -> None:
        self.comm = comm
        self.part = part
        self.timeout = timeout
        self._patterns: dict[tuple[object, ...], Pattern] = {}
        self._zeros: dict[tuple[object, ...], Segment] = {}

    def start(self, wanted: Sequence[Wanted], back: bool = False) -> Transfer:
        """Post receives, pack and send; ``back``: copies to their owners, who add them up."""
        return Transfer(self, self._pattern(wanted, back), [dat for dat, _ in wanted], back)

    def clear_copies(self, dat: ProgramDat) -> None:
        """Set all copies to zero, before increments are added to them."""
        size = int(dat.current().shape[dat.axis])
        if size == dat.owned:
            return
        if not dat.on_device:
            matrix(dat)[(slice(None),) * dat.axis + (slice(dat.owned, None),)] = 0
            return
        key = dat.set, dat.dim, dat.dtype.str, dat.layout
        if key not in self._zeros:
            shape = (dat.dim, size - dat.owned) if dat.axis else (size - dat.owned, dat.dim)
            self._zeros[key] = Segment(0, slice(dat.owned, size), np.zeros(shape, dat.dtype))
        segment = self._zeros[key]
        segment.on(dat).put(dat, segment.values, add=False)

    def _pattern(self, wanted: Sequence[Wanted], back: bool) -> Pattern:
        key = (back, *((d.set, d.dim, d.dtype.str, d.layout, lists) for d, lists in wanted))
        found = self._patterns.get(key)
        if found is None:
            sends = self._parcels(wanted, receive=back)
            receives = self._parcels(wanted, receive=not back)
            checksum = zlib.crc32(repr(key).encode())
            found = self._patterns[key] = Pattern(sends, receives, checksum)
            for parcel in sends:
                parcel.buffer[:ALIGNED].view(np.int64)[0] = checksum
        return found

    def _parcels(self, wanted: Sequence[Wanted], receive: bool) -> tuple[Parcel, ...]:
        rows: dict[int, list[tuple[int, Int32s]]] = {}
        for i, (dat, lists) in enumerate(wanted):
            for name in lists:
                messages = self._messages(dat.set, name, receive)
                for j, part in enumerate(messages.parts.tolist()):
                    these = messages.rows[messages.offset[j] : messages.offset[j + 1]]
                    if these.size:
                        rows.setdefault(part, []).append((i, these))
        dats = [dat for dat, _ in wanted]
        return tuple(_parcel(part, rows[part], dats) for part in sorted(rows))

    def _messages(self, set_name: str, name: str, receive: bool) -> Messages:
        if name in self.part.partial:
            partial = self.part.partial[name]
            return partial.receive if receive else partial.send
        of_set = self.part.sets[set_name]
        if name == EXEC:
            return of_set.receive_exec if receive else of_set.send_exec
        return of_set.receive_halo if receive else of_set.send_halo


class Transfer:
    """An exchange under way."""

    def __init__(
        self, exchange: Exchange, pattern: Pattern, dats: Sequence[ProgramDat], back: bool
    ) -> None:
        comm = exchange.comm
        self._exchange = exchange
        self._dats = dats
        self._back = back
        self.pattern = pattern
        self._requests = [comm.Irecv(p.buffer, p.part, TAG) for p in pattern.receives]
        for parcel in pattern.sends:
            for segment in parcel.segments:
                _pack(dats[segment.dat], segment)
            self._requests.append(comm.Isend(parcel.buffer, parcel.part, TAG))

    def test(self) -> None:
        """Let the messages move on: most MPIs do nothing while a rank computes."""
        if self._requests:
            self._requests[0].Testall(self._requests)

    def finish(self) -> None:
        """Put what came where it belongs; DistributedError for wrong messages, or none in time."""
        if not self._requests:
            return
        try:
            if self._exchange.timeout is not None:
                self._watch(self._exchange.timeout)
            self._requests[0].Waitall(self._requests)
        except RuntimeError as error:
            raise DistributedError(f"rank {self._exchange.part.part}: {error}") from error
        for parcel in self.pattern.receives:
            self._check(parcel)
            for segment in parcel.segments:
                _unpack(self._dats[segment.dat], segment, self._back)

    def _watch(self, timeout: float) -> None:
        end = time.perf_counter() + timeout
        requests = self._requests
        while not requests[0].Testall(requests):
            if time.perf_counter() > end:
                parcels = zip(requests, self.pattern.receives, strict=False)
                late = [str(p.part) for r, p in parcels if not r.Test()]
                raise DistributedError(
                    f"rank {self._exchange.part.part}: no message in {timeout:g} s from rank "
                    f"{', '.join(late) or '(its own are not taken)'}"
                )

    def _check(self, parcel: Parcel) -> None:
        if int(parcel.buffer[:ALIGNED].view(np.int64)[0]) != self.pattern.checksum:
            raise DistributedError(
                f"rank {self._exchange.part.part}: rank {parcel.part} has sent other dats than are "
                "awaited: all ranks must run the same loops, and touch the same dats"
            )


def matrix(dat: ProgramDat) -> Any:
    """The array of a dat with both axes."""
    array = dat.current()
    return array if array.ndim == 2 else array.reshape(-1, 1)


def _parcel(part: int, rows: Sequence[tuple[int, Int32s]], dats: Sequence[ProgramDat]) -> Parcel:
    sizes = [dats[i].dim * dats[i].dtype.itemsize * these.size for i, these in rows]
    ends = ALIGNED + np.cumsum([-(-size // ALIGNED) * ALIGNED for size in sizes])
    buffer = np.zeros(int(ends[-1]), np.uint8)
    segments = []
    for (i, these), size, end in zip(rows, sizes, ends.tolist(), strict=True):
        start = end - -(-size // ALIGNED) * ALIGNED
        dat = dats[i]
        shape = (dat.dim, these.size) if dat.axis else (these.size, dat.dim)
        values = buffer[start : start + size].view(dat.dtype).reshape(shape)
        segments.append(Segment(i, _run_of(these), values))
    return Parcel(part, buffer, tuple(segments))


def _run_of(rows: Int32s) -> slice | Int32s:
    """Rows as a slice where they stand one behind the other."""
    first = int(rows[0])
    run = np.arange(first, first + rows.size, dtype=rows.dtype)
    return slice(first, first + rows.size) if np.array_equal(rows, run) else rows


def _pack(dat: ProgramDat, segment: Segment) -> None:
    if dat.on_device:
        segment.on(dat).pack(dat, segment.values)
        return
    values, rows = matrix(dat), segment.rows
    if isinstance(rows, slice):
        segment.values[...] = values[:, rows] if dat.axis else values[rows]
    else:
        np.take(values, rows, axis=dat.axis, out=segment.values, mode="clip")


def _unpack(dat: ProgramDat, segment: Segment, add: bool) -> None:
    if dat.on_device:
        segment.on(dat).put(dat, segment.values, add)
        return
    place = (slice(None), segment.rows) if dat.axis else (segment.rows,)
    if add:
        matrix(dat)[place] += segment.values
    else:
        matrix(dat)[place] = segment.values
