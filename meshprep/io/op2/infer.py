"""Which sets maps and dats belong to: declared, or the only ones that fit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from meshprep_runtime.errors import MeshprepError

from ..declared import BASE, NO_SET, rows_of, values_of
from .layout import ORIGINAL_ID
from .objects import DatasetInfo

# Smallest and largest index of a map, or None where it has no rows.
Range = tuple[int, int] | None


@dataclass(frozen=True)
class InferredSets:
    """Where everything belongs."""

    maps: Mapping[str, tuple[str, str]]  # by path, (from-set, to-set)
    dats: Mapping[str, str]  # by path
    base: int  # the index that stands for the first element, 0 or 1


def infer(
    found: Sequence[DatasetInfo],
    sizes: Mapping[str, int],
    declared: Mapping[str, str],
    range_of: Callable[[str], Range],
) -> InferredSets:
    """Find the sets of every map and dat.

    A row count names the from-set of a map and the set of a dat. The to-set is the only set that is
    large enough; else the only one whose last element the map reaches, if it is not the from-set,
    since maps of boundary elements often reach as many nodes as there are of them; else the only
    large one beside the from-set. Arrays that have as many rows as a set belong to it, others to
    none. What is ``declared`` by path (``SET`` or ``FROM->TO``, ``base`` among them) goes before
    everything. ``range_of(path)`` gives the smallest and largest index of a map. Raises a
    MeshprepError that names everything that has several choices, with what to declare.
    """
    maps = [f for f in found if f.kind == "map"]
    ranges = {m.path: range_of(m.path) for m in maps}
    base = _base(ranges, sizes, declared)
    # What sets may be meant: one list, and for maps another behind it.
    open_: dict[str, tuple[Sequence[str], ...]] = {}
    placed: dict[str, tuple[str, str]] = {}
    for m in maps:
        place = declared.get(m.path, "")
        source = _one(m, [rows_of(place)] if place else _of_size(sizes, m), sizes)
        targets = [str(values_of(place))]
        if not place:
            targets = _targets(m, ranges[m.path], base, sizes, source)
        if source is None or len(targets) != 1:
            sources = [source] if source else _of_size(sizes, m)
            open_[m.path] = (sources, targets)
        else:
            placed[m.path] = (source, targets[0])
    dats: dict[str, str] = {}
    for d in (f for f in found if f.kind in ("dat", "array")):
        choices = _choices(d, sizes, declared)
        if not choices and d.kind == "array":
            continue
        at = _one(d, choices, sizes)
        if at is None:
            open_[d.path] = (choices,)
        else:
            dats[d.path] = at
    _refuse(open_, sizes)
    _refuse_variable(found, sizes)
    return InferredSets(placed, dats, base)


def _of_size(sizes: Mapping[str, int], f: DatasetInfo) -> list[str]:
    return [name for name, size in sizes.items() if size == f.rows]


def _choices(d: DatasetInfo, sizes: Mapping[str, int], declared: Mapping[str, str]) -> list[str]:
    given = rows_of(declared.get(d.path, ""))
    # meshprep's own say it by their names.
    own = d.path.removeprefix(f"{ORIGINAL_ID}_") if d.path.startswith(ORIGINAL_ID) else ""
    chosen = next((name for name in (given, own) if name in sizes), None)
    return _of_size(sizes, d) if chosen is None else [chosen]


def _one(f: DatasetInfo, choices: Sequence[str], sizes: Mapping[str, int]) -> str | None:
    """The only choice; None where there are several that differ."""
    if not choices:
        given = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise MeshprepError(
            f"{f.kind} '{f.path}' has {f.rows} rows, which is the size of no set ({given}): "
            "repair the file, or declare what it is on"
        )
    if sizes[choices[0]] != f.rows:
        raise MeshprepError(
            f"{f.kind} '{f.path}' has {f.rows} rows, but set '{choices[0]}' that it is declared "
            f"on has {sizes[choices[0]]} elements"
        )
    # With a single row nothing can move.
    return choices[0] if len(choices) == 1 or f.rows <= 1 else None


def _targets(
    m: DatasetInfo, found: Range, base: int, sizes: Mapping[str, int], source: str | None
) -> list[str]:
    if found is None:
        return list(sizes)[:1]
    reached = found[1] - base + 1
    able = [name for name, size in sizes.items() if size >= reached]
    if not able:
        raise MeshprepError(f"map '{m.path}' holds index {found[1]}, but no set is so large")
    exact = [name for name in able if sizes[name] == reached]
    others = [name for name in able if name != source]
    if len(able) == 1 or source in exact:
        return able
    return exact if len(exact) == 1 else others


def _base(
    ranges: Mapping[str, Range], sizes: Mapping[str, int], declared: Mapping[str, str]
) -> int:
    """0, or 1 for files of Fortran programs: no index is 0, and one is the size of a set."""
    if BASE in declared:
        return int(declared[BASE])
    held = [r for r in ranges.values() if r is not None]
    if not held or any(low < 1 for low, _ in held):
        return 0
    tops = set(sizes.values())
    if any(high in tops for _, high in held):
        return 1
    raise MeshprepError(
        "no map holds the index 0, so that they may begin at 0 or at 1: "
        "declare it with --sets base=0 or --sets base=1"
    )


def _refuse_variable(found: Sequence[DatasetInfo], sizes: Mapping[str, int]) -> None:
    """Text of variable length that would stay where it is while its elements move."""
    for f in found:
        if f.kind == "variable" and f.rows > 1 and (names := _of_size(sizes, f)):
            raise MeshprepError(
                f"dataset '{f.path}' has rows of variable length, one for each element of "
                f"'{names[0]}': declare it as --sets '{f.path}={names[0]}', or '{f.path}={NO_SET}' "
                "where it is on no set"
            )


def _refuse(choices: Mapping[str, tuple[Sequence[str], ...]], sizes: Mapping[str, int]) -> None:
    """Ask for what has several choices; which of them is right, nobody can know from the sizes."""
    if not choices:
        return
    told = ", ".join(
        f"{path} ({'->'.join(' or '.join(names) for names in sets)})"
        for path, sets in choices.items()
    )
    words = (
        f"{path}={'->'.join(names[0] if len(names) == 1 else 'SET' for names in sets)}"
        for path, sets in choices.items()
    )
    of_size = ", ".join(f"{name} {size}" for name, size in sizes.items())
    raise MeshprepError(
        f"the file does not say which sets these belong to: {told}; sizes are {of_size}: "
        f"declare it as --sets '{' '.join(words)}', with the right name for each SET"
    )
