"""Rows of other ranks by their global numbers: asking for them, and lists of who sends which."""

import pickle
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..maps import offsets_of
from ..plan.parts import MapPart, Messages
from .exchange import Exchange

if TYPE_CHECKING:
    from .distributed import DistributedPlan

TAG = 15


def to_each(comm: Any, values: Mapping[int, Any]) -> dict[int, Any]:
    """Send something to some ranks; collective. What came, by the rank that sent it."""
    packed = {p: np.frombuffer(pickle.dumps(v), np.uint8).copy() for p, v in values.items()}
    sizes = comm.allgather({p: one.size for p, one in packed.items()})
    coming = {p: np.empty(to[comm.rank], np.uint8) for p, to in enumerate(sizes) if comm.rank in to}
    requests = [comm.Irecv(one, p, TAG) for p, one in coming.items()]
    requests += [comm.Isend(one, p, TAG) for p, one in packed.items()]
    if requests:
        requests[0].Waitall(requests)
    return {p: pickle.loads(one.tobytes()) for p, one in coming.items()}


def owner_of(starts: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rank that owns each number; rank ``p`` owns ``starts[p]`` to ``starts[p + 1] - 1``."""
    found: NDArray[np.int64] = np.searchsorted(starts, numbers, side="right") - 1
    return found


def row_lists(
    comm: Any, starts: NDArray[np.int64], numbers: NDArray[np.int64], rows: NDArray[np.integer]
) -> MapPart:
    """What is sent and received so that this rank has some rows; collective.

    ``starts`` are those of :func:`owner_of`. ``numbers`` are the global numbers of the rows of an
    array; those that this rank owns come first, ascending. ``rows`` are those that other ranks own
    and send.
    """
    owner = owner_of(starts, numbers[rows])
    wanted = {int(p): rows[owner == p] for p in np.unique(owner)}
    asked = to_each(comm, {p: numbers[at] for p, at in wanted.items()})
    own = numbers[owner_of(starts, numbers) == comm.rank]
    sent = {p: np.searchsorted(own, which) for p, which in asked.items()}
    return MapPart(_listed(sent), _listed(wanted))


def exchange_by(plan: "DistributedPlan", lists: Mapping[str, MapPart]) -> Exchange:
    """An exchange of these lists of rows, by their names."""
    part = replace(plan.part, sets={}, maps={}, loops={}, partial=lists)
    return Exchange(plan.comm, part, plan.messages.timeout)


def _listed(rows: Mapping[int, NDArray[np.integer]]) -> Messages:
    parts = sorted(rows)
    offset = offsets_of([rows[p].size for p in parts])
    every = np.concatenate([np.zeros(0, np.int64), *(rows[p] for p in parts)])
    return Messages(np.array(parts, np.int32), offset.astype(np.int64), every.astype(np.int32))
