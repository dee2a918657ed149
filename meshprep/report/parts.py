"""Tables of a mesh in parts: the columns of [R14 Table 10.2], sets, bytes and messages of loops."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from meshprep_runtime.plan.parts import kept, parts_table
from meshprep_runtime.plan.parts.batch import VALUES
from meshprep_runtime.plan.parts.slices import PartsTable
from meshprep_runtime.plan.parts.store import about

from .table import Table, figure

Figures = Mapping[str, Any]


def halo_tables(splits: Sequence[Figures], *, full: bool = False) -> list[Table]:
    """Neighbours, elements and halo for each number of parts; then loops, and with ``full`` sets.

    ``splits`` are what :func:`~meshprep.distribute.increments.split_figures` gives, with
    ``increments``.
    """
    tables = [Table("halos", _HALO, [_halo(one) for one in splits])]
    loops = [
        (figure(one["parts"]), name, *_loop(found, one["increments"].get(name)))
        for one in splits
        for name, found in one["loops"].items()
    ]
    tables.append(Table("loops, a call where every dat has changed", _LOOPS, loops))
    if full:
        sets = [
            (figure(one["parts"]), name, *(figure(found[key]) for key in _RUNS))
            for one in splits
            for name, found in one["sets"].items()
        ]
        tables.append(Table("sets, all parts together", ("parts", "set", *_RUNS), sets))
    return tables


def splits_table(records: Sequence[Figures]) -> Table:
    """The splits of :func:`describe_parts`, in the columns of the halo table, and their bytes."""
    header = (*_HALO, "bytes, mean", "bytes, most")
    sizes = ("bytes of a part", "most bytes")
    return Table("splits", header, [(*_halo(r), *(figure(r[k]) for k in sizes)) for r in records])


def kept_splits(path: Path) -> list[Figures]:
    """The figures of every split that a file holds; only its tables are read."""
    return [parts_table(path, parts).description["figures"] for parts in kept(path)]


def describe_parts(path: Path) -> dict[str, Any]:
    """What a file of parts holds, as JSON values."""
    tables = [parts_table(path, parts) for parts in kept(path)]
    words, known = tables[0].description, about(path)
    return {
        "kind": "parts",
        "made from": known["source_hash"],
        "bytes": known["bytes"],
        "splits": [_split(table) for table in tables],
        "sets": [
            {"set": name, "elements": size, "values": ", ".join(_values(tables[0], name))}
            for name, size in words["sets"].items()
        ],
        "maps": [
            {"map": name, "arity": arity, "to": to}
            for name, (_, to, arity) in words["maps"].items()
        ],
        "loops": [
            {"loop": name, "over": loop["over"], "increments": loop["increments"]}
            | {"variants": ", ".join(loop["variants"])}
            for name, loop in words["loops"].items()
        ],
    }


def _values(table: PartsTable, name: str) -> list[str]:
    """Coordinates, groups and fields of a set."""
    words = (one.name.split("/") for one in table.datasets)
    there = [where for where in words if where[0] in VALUES and where[1] == name]
    return [where[-1] if len(where) > 2 else where[0] for where in there]


def _split(table: PartsTable) -> dict[str, Any]:
    figures, sizes = table.description["figures"], [table.part_bytes(p) for p in range(table.parts)]
    names = ("cut", "neighbours", "most neighbours", "elements", "most elements", "halo")
    found = {"parts": table.parts, **{name: figures[name] for name in names}}
    return found | {"bytes of a part": sum(sizes) // table.parts, "most bytes": max(sizes)}


_HALO = (
    *("parts", "cut", "neighbours, mean", "neighbours, most"),
    *("elements, mean", "elements, most", "% copies"),
)
_RECEIVED = ("MB received", "kB received, most", "messages")
_COSTS = ("increments", "why", "executed again", "MB if exec", "MB if reverse")
_LOOPS = ("parts", "loop", *_RECEIVED, *_COSTS)
_RUNS = ("owned", "least owned", "most owned", "core", "exec", "halo")


def _halo(one: Figures) -> tuple[str, ...]:
    return (
        figure(one["parts"]),
        one["cut"],
        figure(one["neighbours"]),
        figure(one["most neighbours"]),
        figure(round(one["elements"])),
        figure(one["most elements"]),
        figure(100 * one["halo"]),
    )


def _loop(found: Figures, cost: Figures | None) -> tuple[str, ...]:
    received = (found["bytes"] / 1e6, found["most bytes"] / 1e3, found["messages"])
    if cost is None:
        return (*map(figure, received), *("-" for _ in _COSTS))
    both = (cost["elements"], cost["exec_bytes"] / 1e6, cost["reverse_bytes"] / 1e6)
    chosen = cost["increments"], cost.get("why", "-")
    return (*map(figure, received), *chosen, *map(figure, both))
