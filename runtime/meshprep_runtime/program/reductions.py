"""Reduced globals of one loop over all ranks, in one message."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernel.bind import Slot
from ..loops import Access
from ..maps import offsets_of
from .exchange import ALIGNED
from .mpi import COMBINE, operation


class Reductions:
    """The globals that a loop reduces.

    What elements add starts from zero on every rank, so that the value from before counts once.
    Where all are of one kind, one Allreduce combines them; else one Allgather, and every rank
    combines in the order of the ranks.

    ``slots`` are those of the loop.

    Attributes
    ----------
    partial, ignored : mapping of slot to array
        What this rank's elements reduce into; where exec elements leave what does not count.
    """

    def __init__(self, comm: Any, slots: Sequence[Slot]) -> None:
        self._comm = comm
        self._slots = {i: s for i, s in enumerate(slots) if s.rows is None and s.written}
        self._one_kind = len({(s.access, s.dtype) for s in self._slots.values()}) == 1
        step = 1 if self._one_kind else ALIGNED
        sizes = [-(-s.dim * s.dtype.itemsize // step) * step for s in self._slots.values()]
        self._ends = offsets_of(sizes).tolist()
        self._own = np.zeros(self._ends[-1], np.uint8)
        self.partial = self._views(self._own)
        self.ignored = self._views(self._own.copy())
        every = 1 if self._one_kind else comm.size
        self._all = np.zeros((every, self._own.size), np.uint8)
        self._request: Any = None

    def begin(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Set what the ranks start from."""
        for i, slot in self._slots.items():
            for values in (self.partial[i], self.ignored[i]):
                values[:] = 0 if slot.access is Access.INC else arrays[i]

    def start(self) -> None:
        """Send."""
        if not self._slots:
            return
        if self._one_kind:
            slot = next(iter(self._slots.values()))
            send, receive = self._own.view(slot.dtype), self._all[0].view(slot.dtype)
            if _loses_nan(slot):
                send, receive = _in_order(send, slot.access), _whole(receive)
            how = operation(self._comm, slot.access)
            self._request = self._comm.Iallreduce(send, receive, how)
        else:
            self._request = self._comm.Iallgather(self._own, self._all.reshape(-1))

    def finish(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Wait, and bring the values into the arrays of the call."""
        if self._request is None:
            return
        self._request.Wait()
        self._request = None
        slot = next(iter(self._slots.values()))
        if self._one_kind and _loses_nan(slot):
            _turn_negative(_whole(self._all[0].view(slot.dtype)))
        found = [self._views(row) for row in self._all]
        for i, slot in self._slots.items():
            combine = COMBINE[slot.access]
            total = found[0][i]
            for other in found[1:]:
                total = combine(total, other[i])
            arrays[i][:] = arrays[i] + total if slot.access is Access.INC else total

    def _views(self, buffer: NDArray[np.uint8]) -> Mapping[int, NDArray[Any]]:
        parts = zip(self._slots.items(), self._ends, strict=False)
        return {i: buffer[at : at + s.dim * s.dtype.itemsize].view(s.dtype) for (i, s), at in parts}


def _loses_nan(slot: Slot) -> bool:
    """True where MPI's least or largest may leave out a NaN, which stays here."""
    return slot.dtype.kind == "f" and slot.access is not Access.INC


def _in_order(values: NDArray[Any], access: Access) -> NDArray[Any]:
    """Floats as whole numbers in the same order, in place; NaN as the least or the largest."""
    lost, whole = np.isnan(values), _whole(values)
    limits = np.iinfo(whole.dtype)
    _turn_negative(whole)
    whole[lost] = limits.min if access is Access.MIN else limits.max
    return whole


def _whole(values: NDArray[Any]) -> NDArray[Any]:
    return values.view(f"i{values.dtype.itemsize}")


def _turn_negative(whole: NDArray[Any]) -> None:
    """The bits of negative floats ascend with their size: turn them round, or back."""
    whole[whole < 0] ^= np.iinfo(whole.dtype).max
