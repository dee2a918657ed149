"""Loops over a set and their arguments: OP2's abstraction, as data [G12 section 2]."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Any

import numpy as np

from ..errors import MeshprepError, check_choice, check_integer


class Access(StrEnum):
    """How a loop touches an argument.

    Notes
    -----
    READ, WRITE (every component is set), RW (read and set) and INC (added to; the old
    value is not read) are for dats; READ and INC are also for globals. MIN and MAX are
    reductions of globals only [G12 section 2].
    """

    READ = "read"
    WRITE = "write"
    RW = "rw"
    INC = "inc"
    MIN = "min"
    MAX = "max"


ARROW = "->"  # in the names of maps
# What a loop writes through a map must not be written by two elements at once.
CONFLICTING = frozenset({Access.WRITE, Access.RW, Access.INC})


@dataclass(frozen=True)
class Arg:
    """One argument of a loop.

    Parameters
    ----------
    name : str
        The dat, or the global when ``is_global``.
    access : Access
        Or its value: ``"inc"``.
    dim : int
        Components an element.
    dtype : str
        NumPy's short name: ``f4``, ``f8``, ``i4``, ``i8``, ...
    map : str or None
        The map (``"edges->cells"``), or None for a direct argument.
    index : tuple of int
        The columns of the map that the kernel receives, each as one argument.
    is_global : bool
        A value of the whole loop: a constant (READ) or a reduction (INC, MIN, MAX).
    full : bool
        Every element sets every component, whatever happens: values from before are not
        needed. For WRITE without a map. Tiles and checkpoints rely on it.
    columns : str or None
        Of a matrix: the map to its columns. ``map`` leads to its rows then, ``index`` lists
        all of its columns, and ``dim`` is the arity of this map: the kernel gets the matrix
        of the element, row after row, as one argument, and adds to it.

    Raises
    ------
    MeshprepError
        For a dim below 1, a type that is no number, an access that is unknown or does not
        go with a global or a dat, columns that are negative or repeated, ``full`` where it
        means nothing, a matrix that is not added to, and one that has the name of a map.
    """

    name: str
    access: Access
    dim: int = 1
    dtype: str = "f8"
    map: str | None = None
    index: tuple[int, ...] = ()
    is_global: bool = False
    full: bool = False
    columns: str | None = None

    def __post_init__(self) -> None:
        where = f"argument '{self.name}'"
        check_choice(f"{where}: access", self.access, list(Access))
        # Store the member of the enumeration, also for a plain text: `is` compares members.
        object.__setattr__(self, "access", Access(self.access))
        # A matrix is added to by rows and columns of maps.
        if self.columns is not None and (self.map is None or self.access is not Access.INC):
            raise MeshprepError(
                f"matrix '{self.name}' takes "
                'rows = "MAP", columns = "MAP" and access "inc"'
            )
        if self.columns is not None and ARROW in self.name:
            raise MeshprepError(
                f"matrix '{self.name}' has the name of a map: leave '->' out"
            )
        # A row has a number of values of one type.
        check_integer(f"{where}: dim", self.dim)
        try:
            kind: str = np.dtype(self.dtype).kind
        except TypeError:
            kind = "?"
        if kind not in "fiu":
            raise MeshprepError(
                f"{where}: dtype '{self.dtype}' is unknown: use f4, f8, i4 or i8"
            )
        # Only globals are reduced; dats are read and changed.
        if self.access in (Access.MIN, Access.MAX) and not self.is_global:
            raise MeshprepError(
                f"{where}: access '{self.access}' is for globals: "
                "a dat takes read, write, rw or inc"
            )
        if self.is_global and (
            self.map is not None or self.access in (Access.WRITE, Access.RW)
        ):
            raise MeshprepError(
                f"global '{self.name}' takes no map and one of read, inc, min, max, "
                f"not '{self.access}'"
            )
        if self.full and (self.access is not Access.WRITE or self.map is not None):
            raise MeshprepError(
                f"{where}: full goes with access 'write' and no map: "
                "only there no value from before is left"
            )
        # Columns say which points of an element the kernel gets.
        if (self.map is None) != (not self.index):
            raise MeshprepError(
                f"{where}: 'map' and 'index' belong together: "
                "index lists the columns of the map that the kernel gets"
            )
        for column in self.index:
            check_integer(f"{where}: a column in index", column, 0)
        if len(set(self.index)) != len(self.index):
            raise MeshprepError(
                f"{where}: index {list(self.index)} must be distinct columns"
            )

    @property
    def conflicts(self) -> bool:
        """True when two elements of the loop may write one value of this argument."""
        return self.map is not None and self.access in CONFLICTING

    @property
    def nbytes(self) -> int:
        """Bytes of one element of the dat.

        Of a matrix: bytes of one row of the matrix of an element.
        """
        return self.dim * np.dtype(self.dtype).itemsize

    @property
    def kernel_columns(self) -> tuple[int, ...]:
        """The column of the map behind each parameter of the kernel; 0 for a matrix."""
        if self.columns is not None:
            return (0,)
        return self.index or (0,)

    def to_dict(self) -> dict[str, Any]:
        """The argument as plain values.

        Returns
        -------
        dict
            JSON values, in the words of loops.toml.
        """
        # A matrix, a global or a dat is named by the key that tells which it is.
        if self.columns is not None:
            return {
                "mat": self.name,
                "rows": self.map,
                "columns": self.columns,
                "index": list(self.index),
                "dim": self.dim,
                "dtype": self.dtype,
                "access": str(self.access),
            }
        words: dict[str, Any] = {}
        if self.is_global:
            words["global"] = self.name
        else:
            words["dat"] = self.name
        if self.map is not None:
            words["map"] = self.map
            words["index"] = list(self.index)
        words["dim"] = self.dim
        words["dtype"] = self.dtype
        words["access"] = str(self.access)
        if self.full:
            words["full"] = True
        return words


@dataclass(frozen=True)
class Loop:
    """A loop over one set; the result must not depend on the order of the elements.

    Parameters
    ----------
    name : str
    over : str
        The set.
    args : tuple of Arg
        In the order in which the kernel takes them; one parameter a column of a map.

    Raises
    ------
    MeshprepError
        Without arguments, for a map that does not start at ``over``, and for one dat with
        accesses that conflict: an element could see what another one has or has not written
        yet.

    Examples
    --------
    >>> from meshprep_runtime import Access, Arg, Loop
    >>> q = Arg("q", Access.READ, 4, "f8", "edges->cells", (0, 1))
    >>> res = Arg("res", Access.INC, 4, "f8", "edges->cells", (0, 1))
    >>> loop = Loop("res_calc", "edges", (q, res))
    >>> loop.maps, loop.leading_map
    (('edges->cells',), 'edges->cells')
    >>> loop.conflict_columns
    {'edges->cells': (0, 1)}
    """

    name: str
    over: str
    args: tuple[Arg, ...]

    def __post_init__(self) -> None:
        if not self.args:
            raise MeshprepError(
                f"loop '{self.name}' has no arguments: list at least one in args"
            )
        for arg in self.args:
            for name in (arg.map, arg.columns):
                if name is not None and name.partition("->")[0] != self.over:
                    raise MeshprepError(
                        f"loop '{self.name}' runs over '{self.over}' "
                        f"but argument '{arg.name}' uses map '{name}': "
                        f"its maps must start at '{self.over}'"
                    )
        # A name twice is the same dat reached in two ways, which must agree.
        for first, second in combinations(self.args, 2):
            if first.name == second.name:
                self._check_together(first, second)

    def _check_together(self, a: Arg, b: Arg) -> None:
        if a.columns is not None or b.columns is not None:
            raise MeshprepError(f"loop '{self.name}': a matrix stands twice: name it once")
        where = f"loop '{self.name}': argument '{a.name}' stands twice"
        kind_of_a = (np.dtype(a.dtype), a.dim, a.is_global)
        kind_of_b = (np.dtype(b.dtype), b.dim, b.is_global)
        if kind_of_a != kind_of_b:
            raise MeshprepError(f"{where}, with different dtypes or dims: they must agree")
        # Two accesses go together where both read, or where both are the same and through
        # maps: colours keep elements apart only where they write through maps.
        same_through_maps = a.access is b.access and None not in (a.map, b.map)
        if not same_through_maps and {a.access, b.access} != {Access.READ}:
            raise MeshprepError(
                f"{where}, with accesses that conflict ({a.access} and {b.access}): "
                "use another dat for one of them, or one access for both through maps"
            )

    @property
    def maps(self) -> tuple[str, ...]:
        """The maps the loop uses, each once, in the order of the arguments."""
        names: list[str] = []
        for arg in self.args:
            for name in (arg.map, arg.columns):
                if name is not None and name not in names:
                    names.append(name)
        return tuple(names)

    @property
    def written(self) -> tuple[str, ...]:
        """The dats and matrices that the loop changes, each once."""
        args = (a for a in self.args if not a.is_global and a.access is not Access.READ)
        return tuple(dict.fromkeys(a.name for a in args))

    @property
    def reduces(self) -> bool:
        """True when the loop reduces a global."""
        return any(a.is_global and a.access is not Access.READ for a in self.args)

    @property
    def matrices(self) -> tuple[Arg, ...]:
        """The arguments that are matrices."""
        return tuple(a for a in self.args if a.columns is not None)

    @property
    def conflict_columns(self) -> dict[str, tuple[int, ...]]:
        """For each map written through, the columns written, ascending."""
        columns: dict[str, tuple[int, ...]] = {}
        for arg in self.args:
            if arg.conflicts and arg.map is not None:
                columns[arg.map] = tuple(sorted({*columns.get(arg.map, ()), *arg.index}))
        return columns

    @property
    def leading_map(self) -> str | None:
        """The map that leads to the set whose order matters most.

        The first map that the loop writes through, or else the first that it reads through.
        """
        written = next(iter(self.conflict_columns), None)
        if written is not None:
            return written
        return next(iter(self.maps), None)

    def to_dict(self) -> dict[str, Any]:
        """The loop as plain values.

        Returns
        -------
        dict
            JSON values, in the words of loops.toml; without the name.
        """
        return {"over": self.over, "args": [a.to_dict() for a in self.args]}


def with_arrow(text: str) -> str:
    """``FROM:TO`` as ``FROM->TO``; other text as it is.

    For commands: in a shell, ``>`` would need quotes.
    """
    if ARROW in text:
        return text
    return text.replace(":", ARROW, 1)


def among(name: str, known: Collection[str]) -> str:
    """The name as it is among ``known``: ``FROM:TO`` may stand for ``FROM->TO``.

    A name that is known neither way comes back as it is.
    """
    with_its_arrow = with_arrow(name)
    if name not in known and with_its_arrow in known:
        return with_its_arrow
    return name


def cut_by_shell(text: str) -> str:
    """Explain, for a message, that the shell cut ``FROM->TO`` at its ``>``; else empty."""
    if not text.endswith("-"):
        return ""
    return (
        f" (the shell took > for its own and has made a file, which is left to remove: "
        f"put '{text}>...' into quotes, or write {text.removesuffix('-')}:...)"
    )


def arg_from_dict(values: dict[str, Any], where: str) -> Arg:
    """Build an argument from the words of loops.toml.

    ``where`` begins the message of an error.
    """
    is_matrix = "mat" in values
    allowed = ARG_KEYS
    if is_matrix:
        allowed = MATRIX_KEYS
    unknown = sorted(set(values) - allowed)
    if unknown:
        raise MeshprepError(
            f"{where}: unknown key '{unknown[0]}': use {', '.join(sorted(allowed))}"
        )
    if is_matrix + ("dat" in values) + ("global" in values) != 1:
        raise MeshprepError(f"{where}: give either 'dat' or 'global', or 'mat': its name")
    try:
        return _arg_from_checked_keys(values, is_matrix)
    except MeshprepError as error:
        raise MeshprepError(f"{where}: {error}") from None


# The keys of a table of loops.toml that describes one argument.
ARG_KEYS = frozenset({"dat", "global", "map", "index", "dim", "dtype", "access", "full"})
MATRIX_KEYS = frozenset({"mat", "rows", "columns", "index", "dim", "dtype", "access"})


def _arg_from_checked_keys(values: dict[str, Any], is_matrix: bool) -> Arg:
    name = values.get("dat", values.get("global", values.get("mat")))
    # The map is called `map`, or `rows` where the argument is a matrix.
    map_key = "map"
    columns = None
    if is_matrix:
        map_key = "rows"
        columns = _of_kind(str, values.get("columns"), "columns")
    map_name = None
    if map_key in values:
        map_name = _of_kind(str, values[map_key], map_key)
    # One column may be given as a number instead of a list.
    index = values.get("index", [])
    if not isinstance(index, list):
        index = [index]
    return Arg(
        name=_of_kind(str, name, "name"),
        access=values.get("access", "read"),
        dim=_of_kind(int, values.get("dim", 1), "dim"),
        dtype=_of_kind(str, values.get("dtype", "f8"), "dtype"),
        map=map_name,
        index=tuple(_of_kind(int, column, "index") for column in index),
        is_global="global" in values,
        full=_of_kind(bool, values.get("full", False), "full"),
        columns=columns,
    )


def loop_from_dict(name: str, values: Mapping[str, Any], where: str) -> Loop:
    """Build a loop from the words of loops.toml.

    ``where`` begins the message of an error.
    """
    over = values.get("over")
    tables = values.get("args")
    if not isinstance(over, str) or not isinstance(tables, list):
        raise MeshprepError(f'{where}: needs over = "SET" and args = [ {{ ... }}, ... ]')
    args = []
    for i, table in enumerate(tables):
        if not isinstance(table, dict):
            raise MeshprepError(
                f"{where}: argument {i} is not a table {{ dat = ..., ... }}"
            )
        args.append(arg_from_dict(table, f"{where}, argument {i}"))
    try:
        return Loop(name, over, tuple(args))
    except MeshprepError as error:
        raise MeshprepError(f"{where}: {error}") from None


# How a message names the kinds of values.
KIND_WORDS = {bool: "true or false", int: "a whole number", str: "text"}


def _of_kind(kind: type, value: Any, key: str) -> Any:
    """The value; raises MeshprepError for one of another kind and for an empty text."""
    # A bool is also an int in Python, but true is no number of columns.
    is_of_kind = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
    if not is_of_kind or (kind is str and not value):
        raise MeshprepError(f"{key} is {value!r}, must be {KIND_WORDS[kind]}")
    return value
