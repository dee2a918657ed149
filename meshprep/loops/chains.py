"""Which chains of loops to cut into tiles: the tables ``[chain.NAME]`` of loops.toml."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError, check_integer
from meshprep_runtime.program.chains.numbers import MOST
from meshprep_runtime.types.loops import Loop, with_arrow

from .options import REMOVED
from .requests import read_toml

KEYS = ("loops", "repeat", "dropped", "zero", "tile")


@dataclass(frozen=True)
class ChainCall:
    """A loop of a chain, and which dats stand for its arguments where their names differ."""

    loop: str
    dats: Mapping[str, str]


@dataclass(frozen=True)
class ChainRequest:
    """A chain as asked for."""

    name: str
    calls: tuple[ChainCall, ...]  # in their order, repeated as often as they are
    # Dats whose values are not stored; dats that are zero before and after.
    dropped: tuple[str, ...]
    zero: tuple[str, ...]
    # Elements of the last loop's set in a tile; None for the option's.
    tile: int | None
    where: str  # begins the message of an error

    def check(self, known: Mapping[str, Collection[str]]) -> None:
        """Raise MeshprepError for a loop or dat that there is not; ``known`` has a loop's dats."""
        dats: set[str] = set()
        for call in self.calls:
            if call.loop not in known:
                raise MeshprepError(
                    f"{self.where}: there is no loop '{call.loop}': use {', '.join(known)}"
                )
            own = known[call.loop]
            for name in call.dats:
                if name not in own:
                    raise MeshprepError(
                        f"{self.where}: loop '{call.loop}' has no dat '{name}': "
                        f"use {', '.join(sorted(own))}"
                    )
            dats |= {call.dats.get(name, name) for name in own}
        for name in (*self.dropped, *self.zero):
            if name not in dats:
                raise MeshprepError(
                    f"{self.where}: no loop has a dat '{name}': use {', '.join(sorted(dats))}"
                )


def dats_of(loops: Iterable[Loop]) -> dict[str, set[str]]:
    """The dats and matrices of each loop."""
    return {loop.name: {a.name for a in loop.args if not a.is_global} for loop in loops}


def read_chains(path: str | Path) -> list[ChainRequest]:
    """The chains of a loops.toml, if any; raises MeshprepError for wrong files and tables."""
    tables = read_toml(path).get("chain", {})
    if not isinstance(tables, dict):
        raise MeshprepError(f"{path}: write a table [chain.NAME] for each chain")
    return [_request(name, values, f"{path}, chain '{name}'") for name, values in tables.items()]


def _request(name: str, values: Any, where: str) -> ChainRequest:
    if not isinstance(values, dict) or not _list(values.get("loops")):
        raise MeshprepError(f'{where}: needs loops = ["NAME", ...]')
    unknown = sorted(set(values) - set(KEYS))
    if unknown and unknown[0] in REMOVED:
        said = REMOVED[unknown[0]]
        raise MeshprepError(f"{where}: {unknown[0]} was removed in 0.2: {said}")
    if unknown:
        raise MeshprepError(f"{where}: unknown key '{unknown[0]}': use {', '.join(KEYS)}")
    if "/" in name:
        raise MeshprepError(f"{where}: a chain's name must not hold '/'")
    calls = [_call(one, f"{where}, loop {i}") for i, one in enumerate(values["loops"], start=1)]
    repeat = _count(values.get("repeat", 1), f"{where}: repeat")
    if len(calls) * repeat > MOST:
        raise MeshprepError(f"{where}: has {len(calls) * repeat} loops, at most {MOST} go together")
    tile = values.get("tile")
    return ChainRequest(
        name,
        tuple(calls) * repeat,
        _names(values.get("dropped", []), f"{where}: dropped"),
        _names(values.get("zero", []), f"{where}: zero"),
        None if tile is None else _count(tile, f"{where}: tile"),
        where,
    )


def _call(value: Any, where: str) -> ChainCall:
    if isinstance(value, str):
        return ChainCall(with_arrow(value), {})
    if not isinstance(value, dict) or set(value) - {"loop", "dats"}:
        raise MeshprepError(f'{where}: must be "NAME", or {{ loop = "NAME", dats = {{ ... }} }}')
    loop, dats = value.get("loop"), value.get("dats", {})
    if not isinstance(loop, str) or not isinstance(dats, dict):
        raise MeshprepError(f'{where}: must be "NAME", or {{ loop = "NAME", dats = {{ ... }} }}')
    return ChainCall(
        with_arrow(loop), dict(zip(dats, _names([*dats.values()], where), strict=True))
    )


def _list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _names(values: Any, where: str) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(v, str) and v for v in values):
        raise MeshprepError(f"{where}: {values!r} must be a list of names of dats")
    return tuple(values)


def _count(value: Any, where: str) -> int:
    check_integer(where, value)
    return int(value)
