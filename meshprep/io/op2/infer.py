"""The sets that the datasets of an OP2 file belong to: declared, or the only fitting ones.

Numbers from 0 fit every set that is large enough, so a wrong declaration reads without an
error, and what runs on the file computes nonsense. What contradicts itself is refused here.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..declared import BASE, COORDINATES, NO_SET, rows_of, values_of
from ..hdf.dump import check_dataset
from .layout import ORIGINAL_ID

# OP2 stores the type of a map as a text of this length, that of a dat in its own length.
MAP_TEXT = 10
MAX_DEPTH = 32
# Rows that are read at once where not all are needed together.
ROWS = 1 << 20
# OP2's names of the types that a dat may have.
TYPE_NAME = {"f8": "double", "f4": "float", "i4": "int", "i8": "long"}


@dataclass(frozen=True)
class DatasetInfo:
    """A dataset: its path without the leading slash, what it is, its shape and type.

    ``kind`` is ``"set"``, ``"map"``, ``"dat"`` (OP2 says so, or the user), ``"array"``
    (rows of something, perhaps of a set), ``"variable"`` (rows of variable length) or
    ``"other"``.
    """

    path: str
    kind: str
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def rows(self) -> int:
        return self.shape[0]


def datasets(group: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Every dataset with its path, by hard links only, in the order of the names.

    Raises MeshprepError for a link into another file: values there would keep their order.
    """
    if depth > MAX_DEPTH:
        raise MeshprepError(f"group '{prefix}' is nested too deep or linked into itself")
    for name in sorted(group):
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            raise MeshprepError(
                f"link '{prefix}{name}' leads into another file: copy what is there into "
                "this one"
            )
        if not isinstance(link, h5py.HardLink):
            continue
        item = group[name]
        if isinstance(item, h5py.Group):
            yield from datasets(item, f"{prefix}{name}/", depth + 1)
        elif isinstance(item, h5py.Dataset):
            yield f"{prefix}{name}", item


def classify(file: Any, declared: Mapping[str, str]) -> list[DatasetInfo]:
    """Every dataset of the file and what it is, as far as it says itself."""
    return [
        DatasetInfo(
            path=path,
            kind=_kind_of_dataset(path, item, declared),
            shape=tuple(item.shape or ()),
            dtype=item.dtype,
        )
        for path, item in datasets(file)
    ]


def _kind_of_dataset(path: str, item: Any, declared: Mapping[str, str]) -> str:
    place = declared.get(path, "")
    if place == NO_SET:
        return "other"
    if place and path != COORDINATES:
        if values_of(place):
            return "map"
        return "dat"
    # Numbers and fixed text; a dataset without a shape has no rows.
    if item.shape is None or item.ndim == 0:
        return "other"
    if item.dtype.kind not in "iufcbSV":
        return "variable"
    if not len(item.attrs):
        single = item.shape == (1,) and item.dtype.kind in "iu"
        if single:
            return "set"
        return "array"
    if {"dim", "type"} <= set(item.attrs):
        if "size" not in item.attrs:
            return "other"
        if _is_map(item):
            return "map"
        return "dat"
    return "array"


def _is_map(item: Any) -> bool:
    """Tell maps from integer dats, which have the same attributes, by size and values."""
    if item.dtype.kind not in "iu" or item.ndim != 2:
        return False
    size = np.asarray(item.attrs["size"]).reshape(-1)
    of_map = size.size == 1 and int(size[0]) == item.shape[0]
    of_dat = size.size == 1 and int(size[0]) == item.dtype.itemsize * item.shape[1]
    if of_map != of_dat:
        return of_map
    kind = item.attrs.get_id("type").get_type()
    return isinstance(kind, h5py.h5t.TypeStringID) and kind.get_size() == MAP_TEXT


def load(item: Any) -> np.ndarray:
    """The values of a dataset in native order; refused if the file is too small."""
    check_held(item)
    listed = item.dtype.kind == "O" and h5py.check_string_dtype(item.dtype) is None
    if listed or item.id.get_type().detect_class(h5py.h5t.REFERENCE):
        raise MeshprepError(
            f"dataset '{item.name[1:]}' holds lists or references, which cannot be moved: "
            f"say that it is on no set by --sets '{item.name[1:]}={NO_SET}'"
        )
    return native(item[()])


def check_held(item: Any) -> None:
    """Refuse a dataset whose values are not in this file."""
    check_dataset(item.name[1:], item)


def native(values: np.ndarray) -> np.ndarray:
    if values.dtype.isnative:
        return values
    return values.astype(values.dtype.newbyteorder("="))


def pieces(item: Any) -> Iterator[np.ndarray]:
    """The values of a dataset, some rows at a time; refused as by :func:`load`."""
    check_held(item)
    for begin in range(0, item.shape[0], ROWS):
        yield native(item[begin : begin + ROWS])


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

    A row count names the from-set of a map and the set of a dat. The to-set is the only set
    that is large enough; else the only one whose last element the map reaches, if it is not
    the from-set, since maps of boundary elements often reach as many nodes as there are of
    them; else the only large one beside the from-set. Arrays that have as many rows as a
    set belong to it, others to none. What is ``declared`` by path (``SET`` or ``FROM->TO``,
    ``base`` among them) goes before everything. ``range_of(path)`` gives the smallest and
    largest index of a map. Raises a MeshprepError that names everything that has several
    choices, with what to declare.
    """
    maps = [f for f in found if f.kind == "map"]
    ranges = {m.path: range_of(m.path) for m in maps}
    base = _base(ranges, sizes, declared)
    # What sets may be meant: one list, and for maps another behind it.
    open_: dict[str, tuple[Sequence[str], ...]] = {}
    placed: dict[str, tuple[str, str]] = {}
    for m in maps:
        declaration = declared.get(m.path, "")
        source = _one(
            m, [rows_of(declaration)] if declaration else _of_size(sizes, m), sizes
        )
        targets = [str(values_of(declaration))]
        if not declaration:
            targets = _targets(
                m=m, found=ranges[m.path], base=base, sizes=sizes, source=source
            )
        if source is None or len(targets) != 1:
            if source:
                sources = [source]
            else:
                sources = _of_size(sizes, m)
            open_[m.path] = (sources, targets)
        else:
            placed[m.path] = (source, targets[0])
    # A dat is on the set of as many rows.
    dats: dict[str, str] = {}
    for d in (f for f in found if f.kind in ("dat", "array")):
        choices = _choices(d, sizes, declared)
        if not choices and d.kind == "array":
            continue
        chosen_set = _one(d, choices, sizes)
        if chosen_set is None:
            open_[d.path] = (choices,)
        else:
            dats[d.path] = chosen_set
    _refuse_ambiguous(open_, sizes)
    _refuse_variable(found, sizes)
    return InferredSets(placed, dats, base)


def _of_size(sizes: Mapping[str, int], f: DatasetInfo) -> list[str]:
    return [name for name, size in sizes.items() if size == f.rows]


def _choices(
    d: DatasetInfo, sizes: Mapping[str, int], declared: Mapping[str, str]
) -> list[str]:
    declared_set = rows_of(declared.get(d.path, ""))
    # meshprep's own say it by their names.
    if d.path.startswith(ORIGINAL_ID):
        own = d.path.removeprefix(f"{ORIGINAL_ID}_")
    else:
        own = ""
    chosen = next((name for name in (declared_set, own) if name in sizes), None)
    if chosen is None:
        return _of_size(sizes, d)
    return [chosen]


def _one(f: DatasetInfo, choices: Sequence[str], sizes: Mapping[str, int]) -> str | None:
    """The only choice; None where there are several that differ."""
    if not choices:
        given = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise MeshprepError(
            f"{f.kind} '{f.path}' has {f.rows} rows, which is the size of no set "
            f"({given}): repair the file, or declare what it is on"
        )
    if sizes[choices[0]] != f.rows:
        raise MeshprepError(
            f"{f.kind} '{f.path}' has {f.rows} rows, but set '{choices[0]}' that it is "
            f"declared on has {sizes[choices[0]]} elements"
        )
    # With a single row nothing can move.
    if len(choices) == 1 or f.rows <= 1:
        return choices[0]
    return None


def _targets(
    m: DatasetInfo, found: Range, base: int, sizes: Mapping[str, int], source: str | None
) -> list[str]:
    if found is None:
        return list(sizes)[:1]
    # A set is large enough if it has the highest index; a map as a rule reaches the last
    # element of its set.
    reached = found[1] - base + 1
    able = [name for name, size in sizes.items() if size >= reached]
    if not able:
        raise MeshprepError(
            f"map '{m.path}' holds index {found[1]}, but no set is so large"
        )
    exact = [name for name in able if sizes[name] == reached]
    others = [name for name in able if name != source]
    if len(able) == 1 or source in exact:
        return able
    if len(exact) == 1:
        return exact
    return others


def _base(
    ranges: Mapping[str, Range], sizes: Mapping[str, int], declared: Mapping[str, str]
) -> int:
    """The base of indices: 1 for files of Fortran programs, where no index is 0; else 0."""
    if BASE in declared:
        return int(declared[BASE])
    held = [r for r in ranges.values() if r is not None]
    if not held or any(low < 1 for low, _ in held):
        return 0
    # In a file of a Fortran program the highest index is the size of a set.
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
                f"'{names[0]}': declare it as --sets '{f.path}={names[0]}', or "
                f"'{f.path}={NO_SET}' where it is on no set"
            )


def _refuse_ambiguous(
    choices: Mapping[str, tuple[Sequence[str], ...]], sizes: Mapping[str, int]
) -> None:
    """Ask the user to choose where several sets fit: sizes alone cannot decide."""
    if not choices:
        return
    fitting = []
    declarations = []
    for path, sets in choices.items():
        fitting_sets = "->".join(" or ".join(names) for names in sets)
        fitting.append(f"{path} ({fitting_sets})")
        declared_sets = "->".join(names[0] if len(names) == 1 else "SET" for names in sets)
        declarations.append(f"{path}={declared_sets}")
    of_size = ", ".join(f"{name} {size}" for name, size in sizes.items())
    raise MeshprepError(
        "the file does not say which sets these belong to: "
        f"{', '.join(fitting)}; sizes are {of_size}: declare it as --sets "
        f"'{' '.join(declarations)}', with the right name for each SET"
    )


# Fewer rows prove nothing; more than these are not looked at.
_LEAST_ROWS, _MOST_ROWS = 8, 1000
Sizes = Mapping[str, int]


# A map, or what has its sets, size and arity, and a table that gives rows by a slice or by
# numbers.
MapRows = Any


def check_fit(
    maps: Mapping[str, MapRows], sizes: Sizes, declared: Mapping[str, str]
) -> None:
    """Raise MeshprepError for a map that cannot be what it is declared or taken as.

    Refused is a map whose name says another set as OP2's names do (``pecell``: from edges
    to cells), one most of whose rows hold an index twice, and one whose rows are no
    neighbours in its set by way of the other maps, while in another set all of them are.
    O(maps^3) on a sample of the rows.
    """
    for path, m in maps.items():
        others = [other for other in maps.values() if other is not m]
        # Where nothing speaks for a set or against it, a declaration is believed, a guess
        # is not.
        is_declared = path in declared
        problem = (
            _by_name(path, m, sizes)
            or _by_rows(m, sizes)
            or _by_others(
                m=m, others=others, sizes=sizes, unknown=1.0 if is_declared else 0.0
            )
        )
        if problem:
            how = "declared as" if is_declared else "taken for"
            raise MeshprepError(
                f"map '{path}' is {how} {m.from_set}->{m.to_set}, but {problem}"
            )


def _by_name(path: str, m: MapRows, sizes: Sizes) -> str:
    """The map that a name of OP2 says: p, start of the from-set, to-set in the singular."""
    # OP2 names maps after their sets: pecell leads from edges to cells, pbecell from
    # bedges to cells.
    name = path.rpartition("/")[2]
    if name == f"p{m.from_set.removesuffix('s')}":
        return ""
    for target in sizes:
        one = target.removesuffix("s")
        start = name.removeprefix("p").removesuffix(one)
        full = f"p{start}{one}"
        if name == full and start and m.from_set.startswith(start) and target != m.to_set:
            return (
                f"its name says {m.from_set}->{target}: declare that, "
                "or give the dataset another name"
            )
    return ""


def _by_rows(m: MapRows, sizes: Sizes) -> str:
    """Whether the indices of nearly every row are distinct, as in an element."""
    if m.arity < 2 or m.size < _LEAST_ROWS or sizes[m.to_set] < 4 * m.arity**2:
        return ""
    twice = 0
    for rows in _in_turn(m):
        # Compare the columns in pairs: no element has a node twice.
        pairs = itertools.combinations(np.ascontiguousarray(rows.T), 2)
        twice += int(np.count_nonzero(reduce(or_, (one == other for one, other in pairs))))
    if 2 * twice <= m.size:
        return ""
    return (
        f"{twice} of its {m.size} rows hold an index twice: "
        "declare it as what it is, or as none"
    )


def _in_turn(m: MapRows) -> Iterator[NDArray[np.integer]]:
    for begin in range(0, m.size, ROWS):
        yield m.table[begin : begin + ROWS]


def _by_others(
    m: MapRows, others: Sequence[MapRows], sizes: Sizes, *, unknown: float
) -> str:
    """Whether the elements of a row are neighbours by other maps, as in the right set."""
    if (
        m.size < _LEAST_ROWS
        or min(_shares(m=m, target=m.to_set, others=others, sizes=sizes), default=unknown)
        >= 0.5
    ):
        return ""
    # Look for another set in which all rows are neighbours.
    top = max(int(rows.max()) for rows in _in_turn(m))
    for target, size in sizes.items():
        if target != m.to_set and size > top:
            shares = list(_shares(m=m, target=target, others=others, sizes=sizes))
            if shares and min(shares) == 1.0:
                return (
                    f"the other maps of '{m.from_set}' say that its rows hold {target}: "
                    f"declare {m.from_set}->{target}"
                )
    return ""


def _shares(
    m: MapRows, target: str, others: Sequence[MapRows], sizes: Sizes
) -> Iterator[float]:
    """The shares of rows that fit, by every pair of maps that constrains the target."""
    rows = np.linspace(0, m.size - 1, min(m.size, _MOST_ROWS)).astype(np.int64)
    sample = m.table[rows]
    for other_map in (other for other in others if other.from_set == m.from_set):
        for other in others:
            near = other_map.table[rows]
            if (other.from_set, other.to_set) == (other_map.to_set, target):
                # Nodes of a boundary edge are among the nodes of its cell.
                around = other.table[near].reshape(len(rows), -1)
                if sizes[target] > 2 * around.shape[1]:
                    yield float(
                        (sample[:, :, None] == around[:, None, :]).any(2).all(1).mean()
                    )
            says_something = sizes[other_map.to_set] > 2 * other.arity * near.shape[1]
            if says_something and (other.from_set, other.to_set) == (
                target,
                other_map.to_set,
            ):
                # The cell of a boundary edge has nodes of the edge.
                around = other.table[sample]
                met = around[:, :, :, None] == near[:, None, None, :]
                yield float(met.any((2, 3)).all(1).mean())
