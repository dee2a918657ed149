"""Tables of a mesh in parts: halos as in [R14 Table 10.2], sets, messages of loops."""

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
    """Tables of halos and of loops, a line for each number of parts; with ``full`` of sets.

    ``splits`` are what :func:`~meshprep.distribute.build.figures.split_figures` gives, with
    ``increments``.
    """
    halos = [_halo_row(split) for split in splits]
    # A line for each loop, and for each set, of each split.
    loops: list[tuple[str, ...]] = []
    sets: list[tuple[str, ...]] = []
    for split in splits:
        parts = figure(split["parts"])
        for name, figures in split["loops"].items():
            cost = split["increments"].get(name)
            loops.append((parts, name, *_cells_of_loop(figures, cost)))
        for name, figures in split["sets"].items():
            sets.append((parts, name, *[figure(figures[run]) for run in _RUNS]))
    tables = [
        Table("halos", _HALO, halos),
        Table("loops, a call where every dat has changed", _LOOPS, loops),
    ]
    if full:
        tables.append(Table("sets, all parts together", ("parts", "set", *_RUNS), sets))
    return tables


def splits_table(records: Sequence[Figures]) -> Table:
    """The splits of :func:`describe_parts`: the columns of the halo table, and bytes."""
    header = (*_HALO, "bytes, mean", "bytes, most")
    rows = []
    for record in records:
        sizes = figure(record["bytes of a part"]), figure(record["most bytes"])
        rows.append((*_halo_row(record), *sizes))
    return Table("splits", header, rows)


def kept_splits(path: Path) -> list[Figures]:
    """The figures of every split that a file holds; only its tables are read."""
    return [parts_table(path, parts).description["figures"] for parts in kept(path)]


def describe_parts(path: Path) -> dict[str, Any]:
    """What a file of parts holds, as JSON values."""
    # Sets, maps and loops are the same in all splits.
    tables = [parts_table(path, parts) for parts in kept(path)]
    description = tables[0].description
    origin = about(path)
    # Name the dats and tags that travel with each set.
    sets = []
    for name, size in description["sets"].items():
        values = ", ".join(_values(tables[0], name))
        sets.append({"set": name, "elements": size, "values": values})
    return {
        "kind": "parts",
        "made from": origin["source_hash"],
        "bytes": origin["bytes"],
        "splits": [_split_record(table) for table in tables],
        "sets": sets,
        "maps": [
            {"map": name, "arity": arity, "to": to}
            for name, (_, to, arity) in description["maps"].items()
        ],
        "loops": [
            {
                "loop": name,
                "over": loop["over"],
                "increments": loop["increments"],
                "variants": ", ".join(loop["variants"]),
            }
            for name, loop in description["loops"].items()
        ],
    }


def _values(table: PartsTable, name: str) -> list[str]:
    """The names of coordinates, groups and fields of a set."""
    names = []
    for dataset in table.datasets:
        kind, *path = dataset.name.split("/")
        if kind in VALUES and path[0] == name:
            # kind/set/name, but for coordinates, which are kind/set
            names.append(path[-1] if len(path) > 1 else kind)
    return names


def _split_record(table: PartsTable) -> dict[str, Any]:
    """The main figures of a split, and the bytes of its parts."""
    figures = table.description["figures"]
    sizes = [table.part_bytes(p) for p in range(table.parts)]
    names = ("cut", "neighbours", "most neighbours", "elements", "most elements", "halo")
    record = {"parts": table.parts}
    for name in names:
        record[name] = figures[name]
    record["bytes of a part"] = sum(sizes) // table.parts
    record["most bytes"] = max(sizes)
    return record


# Columns of the tables.
_HALO = (
    "parts",
    "cut",
    "neighbours, mean",
    "neighbours, most",
    "elements, mean",
    "elements, most",
    "% copies",
)
_RECEIVED = ("MB received", "kB received, most", "messages")
_COSTS = ("increments", "why", "executed again", "MB if exec", "MB if reverse")
_LOOPS = ("parts", "loop", *_RECEIVED, *_COSTS)
_RUNS = ("owned", "least owned", "most owned", "core", "exec", "halo")


def _halo_row(split: Figures) -> tuple[str, ...]:
    """The line of a split in the table of halos; copies in percent of all elements."""
    return (
        figure(split["parts"]),
        split["cut"],
        figure(split["neighbours"]),
        figure(split["most neighbours"]),
        figure(round(split["elements"])),
        figure(split["most elements"]),
        figure(100 * split["halo"]),
    )


def _cells_of_loop(figures: Figures, cost: Figures | None) -> list[str]:
    """What a loop receives, and the cost of its increments; ``-`` where it has none."""
    # Megabytes of all parts, kilobytes of the one that receives most.
    received = [
        figure(figures["bytes"] / 1e6),
        figure(figures["most bytes"] / 1e3),
        figure(figures["messages"]),
    ]
    if cost is None:
        return received + ["-"] * len(_COSTS)
    return [
        *received,
        cost["increments"],
        cost.get("why", "-"),
        figure(cost["elements"]),
        figure(cost["exec_bytes"] / 1e6),
        figure(cost["reverse_bytes"] / 1e6),
    ]
