"""Is a part safe to run: do its arrays fit each other and does every index stay inside?"""

import numpy as np
from numpy.typing import NDArray

from ...errors import PlanError
from ..structure import check_loop, check_range, check_variant
from .model import LoopPart, Messages, PartPlan, SetPart


def check_part(part: PartPlan) -> None:
    """Raise PlanError at the first thing that does not fit. O(bytes)."""
    for name, one in part.sets.items():
        _check_set(f"set '{name}'", one, part)
    for m in part.maps.values():
        _require(m.size == part.sets[m.from_set].executed, f"map '{m.name}': number of rows")
        check_range(m, part.sets[m.to_set].size)
    for name, loop in part.loops.items():
        _check_loop(f"loop '{name}'", loop)
    for name, partial in part.partial.items():
        to = part.sets[part.maps[name].to_set]
        _check_messages(f"partial exchange of '{name}', sent", partial.send, part, (0, to.owned))
        where = f"partial exchange of '{name}', received"
        _check_messages(where, partial.receive, part, (to.owned, to.size))


def _check_set(where: str, one: SetPart, part: PartPlan) -> None:
    _require(one.core <= one.owned, f"{where}: more core than owned elements")
    _require(one.copies.size == one.exec + one.halo, f"{where}: number of copies")
    _require(one.original.size == one.owned, f"{where}: number of original numbers")
    for kind in ("exec", "halo"):
        send, receive = getattr(one, f"send_{kind}"), getattr(one, f"receive_{kind}")
        _check_messages(f"{where}, {kind} rows sent", send, part, (0, one.owned))
        bounds = one.owned, one.size
        _check_messages(f"{where}, {kind} rows received", receive, part, bounds)


def _check_messages(
    where: str, messages: Messages, part: PartPlan, bounds: tuple[int, int]
) -> None:
    parts, offset, rows = messages.parts, messages.offset, messages.rows
    if not parts.size and not rows.size and offset.tolist() == [0]:
        return
    ends = offset.size == parts.size + 1 and offset[0] == 0 and offset[-1] == rows.size
    _require(bool(ends) and bool((offset[1:] > offset[:-1]).all()), f"{where}: offset")
    _require(_inside(parts, 0, part.parts) and not (parts == part.part).any(), f"{where}: parts")
    _require(bool((parts[1:] > parts[:-1]).all()), f"{where}: the order of the parts")
    _require(_inside(rows, *bounds), f"{where}: a row outside {bounds[0]}..{bounds[1] - 1}")


def _check_loop(where: str, loop: LoopPart) -> None:
    check_loop(loop.plan)
    _require(loop.increments in ("exec", "reverse"), f"{where}: increments '{loop.increments}'")
    for name, variant in loop.plan.variants.items():
        check_variant(loop.plan, variant)
        colours = loop.colours[name]
        fits = 0 <= colours.core <= colours.owned <= variant.n_block_colours
        _require(fits, f"{where}, variant '{name}': colours of the classes")


def _inside(values: NDArray[np.integer], low: int, high: int) -> bool:
    return not values.size or bool(values.min() >= low and values.max() < high)


def _require(fits: bool, what: str) -> None:
    if not fits:
        raise PlanError(f"a part does not fit itself: {what}")
