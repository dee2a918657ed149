"""Which loops to prepare: from ``--loop``, from loops.toml, or by default.

A request names maps before they exist (``faces->cells`` is derived later), so reading has
two steps: :func:`read_requests` or :func:`simple_request` say which maps are needed, and
:func:`resolve` makes checked :class:`Loop` objects once the mesh has them.
"""

import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.file.atomic import check_input, reason
from meshprep_runtime.types.loops import (
    Access,
    Arg,
    Loop,
    cut_by_shell,
    loop_from_dict,
    with_arrow,
)

from ..mesh import Mesh
from ..mesh.cells import shape_of
from .options import loop_options

__all__ = ["Access", "Arg", "Loop", "LoopRequest", "LoopSpec", "default_request"]

_OPTIONS = loop_options()
FIXED = "fixed"
# The keys of an argument that name maps.
_MAPS = ("map", "rows", "columns")


@dataclass(frozen=True)
class LoopRequest:
    """A loop as asked for, in the words of loops.toml; its maps need not exist yet.

    Parameters
    ----------
    name : str
    values : mapping
        ``over``, ``args`` and options (``block_size``, ``partition``, ``effort``,
        ``target``, ``own_blocks``), as in a table ``[loop.NAME]``.
    where : str, optional
        Begins the message of an error; default: the name.

    Raises
    ------
    MeshprepError
        Without a list of arguments, and for a key that is none of these.
    """

    name: str
    values: Mapping[str, Any]
    where: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "where", self.where or f"loop '{self.name}'")
        values = self.values
        args = None
        if isinstance(values, Mapping):
            args = values.get("args")
        if not isinstance(args, list | tuple):
            raise MeshprepError(
                f'{self.where}: needs over = "SET" and args = [ {{ ... }}, ... ]'
            )
        unknown = sorted(set(values) - {"over", "args", *_OPTIONS})
        if unknown:
            known = ", ".join(("over", "args", *_OPTIONS))
            raise MeshprepError(f"{self.where}: unknown key '{unknown[0]}': use {known}")

    @property
    def maps(self) -> tuple[str, ...]:
        """The maps the loop needs, each once."""
        args = self.values["args"]
        names = dict[str, None]()
        for arg in args:
            if isinstance(arg, dict):
                for key in _MAPS:
                    if key in arg:
                        names[str(arg[key])] = None
        return tuple(names)


# By name, a mapping has what a table [loop.NAME] of loops.toml has.
Loops = Sequence[LoopRequest | str] | Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class LoopSpec:
    """A loop that fits the mesh, and what its table says besides."""

    loop: Loop
    options: Mapping[str, Any] = field(default_factory=dict)  # block_size and the like
    # By matrix, the groups of the mesh whose points have no row.
    fixed: Mapping[str, tuple[str | int, ...]] = field(default_factory=dict)
    # Why it is this loop, where it took the place of the default one.
    note: str = ""


def simple_request(text: str) -> LoopRequest:
    """One increment of one f8 named ``value`` on every point of a map: ``"faces->cells"``.

    ``"faces:cells"`` is the same, which needs no quotes in a shell;
    ``"edges->cells->nodes"`` goes through a map of a map.
    """
    sets = [name.strip() for name in with_arrow(text).split("->")]
    if len(sets) < 2 or not all(sets):
        raise MeshprepError(
            f"loop '{text}'{cut_by_shell(text)} must read FROM->TO or FROM:TO, "
            "for example 'faces->cells'"
        )
    name = "->".join(sets)
    arg = {"dat": "value", "map": name, "access": "inc"}
    return LoopRequest(name, {"over": sets[0], "args": [arg]}, f"loop '{name}'")


def default_request(mesh: Mesh) -> LoopRequest:
    """The loop of a finite-volume solver: faces->cells in 3-D, edges->cells in 2-D.

    Meshes of lines get cells->nodes. Meshes without cells of known types get the first of
    these maps that they have, else their first map.
    """
    # By the dimension of the cells.
    cells = mesh.cell_sets
    if cells:
        dim = max(shape_of(str(s.cell_type)).dim for s in cells)
        by_dimension = {3: "faces->cells", 2: "edges->cells"}
        return simple_request(by_dimension.get(dim, "cells->nodes"))

    # Without cells of known types, by the maps of the mesh.
    if not mesh.maps:
        raise MeshprepError("the mesh has no maps: there is no loop to prepare")
    for name in ("faces->cells", "edges->cells", "cells->nodes"):
        if name in mesh.maps:
            return simple_request(name)
    return simple_request(next(iter(mesh.maps)))


def finite_element_requests(mesh: Mesh) -> list[LoopRequest]:
    """The loops from cells to their nodes, one for each type; empty without cells."""
    if "cells" not in mesh.sets:
        return []
    names = [f"{part}->nodes" for part in mesh.sets["cells"].parts] or ["cells->nodes"]
    return [simple_request(name) for name in names if name in mesh.maps]


def as_requests(loops: Loops, mesh: Mesh) -> list[LoopRequest]:
    """Requests of the loops that ``prepare`` takes; no loop at all is the default loop."""
    return given_requests(loops) or [default_request(mesh)]


def given_requests(loops: Loops) -> list[LoopRequest]:
    """Requests of the loops that are given; a text stands for an increment."""
    # A text alone would be taken apart into letters.
    if isinstance(loops, str):
        raise MeshprepError(f"loops are a list, but '{loops}' is a text: give ['{loops}']")
    if not isinstance(loops, Iterable):
        raise MeshprepError(
            f"loops are a list, but {loops!r} is none: give ['edges->cells']"
        )
    if isinstance(loops, Mapping):
        loops = [LoopRequest(name, values) for name, values in loops.items()]
    requests = [simple_request(r) if isinstance(r, str) else r for r in loops]
    for one in requests:
        if not isinstance(one, LoopRequest):
            raise MeshprepError(
                f"loop {one!r} must be a text such as 'a->b', or a LoopRequest"
            )
    return requests


def empty_loop(loop: Loop) -> str:
    """In words, that this loop has no elements, and why."""
    return f"loop {loop.name} has no elements, as {no_elements(loop.over, loop.maps)}"


def no_elements(over: str, maps: Collection[str]) -> str:
    """In words, why a loop over this set, with these maps, has no elements."""
    facet = {"faces": "a face", "edges": "an edge"}.get(over)
    is_between_cells = facet and f"{over}->cells" in maps
    if is_between_cells:
        return f"no two cells share {facet}"
    return f"the set '{over}' is empty"


def read_requests(path: str | Path) -> list[LoopRequest]:
    """The loops of a loops.toml.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    list of LoopRequest
        In the order of the file: the first one leads.

    Raises
    ------
    MeshprepError
        Where the file cannot be read, is no TOML, or holds no ``[loop.NAME]`` tables.
    """
    content = read_toml(path)
    loops = content.get("loop")
    unknown = sorted(set(content) - {"loop", "sets"})
    if unknown:
        raise MeshprepError(
            f"{path}: unknown table '{unknown[0]}': use [loop.NAME] and [sets]"
        )
    if not isinstance(loops, dict) or not loops:
        raise MeshprepError(f"{path}: holds no loops: write a table [loop.NAME] for each")
    return [
        _request(name, values, f"{path}, loop '{name}'") for name, values in loops.items()
    ]


def resolve(requests: Iterable[LoopRequest], mesh: Mesh) -> list[LoopSpec]:
    """Make and check the loops against a mesh that has their maps.

    Raises
    ------
    MeshprepError
        Naming the loop and argument that uses an unknown set, map or column, or a repeated
        name.
    """
    specs: dict[str, LoopSpec] = {}
    for request in requests:
        if request.name in specs:
            raise MeshprepError(f"{request.where}: there are two loops of this name")
        specs[request.name] = spec = _spec(request, mesh)
        # Name the loop in each error: a mesh may have many.
        try:
            _check_over(spec.loop, mesh)
            for arg in spec.loop.args:
                _check_index(arg, mesh)
        except MeshprepError as error:
            raise MeshprepError(f"{request.where}: {error}") from None
    return [*specs.values()]


def loop_of_kernel(request: LoopRequest, parameters: int) -> Loop:
    """A loop without a mesh, for a kernel with so many parameters.

    Maps without ``index`` all get the number of columns with which the loop has as many
    rows as the kernel has parameters; where there is none, a single one. Raises
    MeshprepError for arguments that cannot be.
    """
    values = {key: v for key, v in request.values.items() if key not in _OPTIONS}
    args = [_with_index(arg, None, request.where) for arg in values["args"]]
    whole = [
        isinstance(arg, dict) and "map" in arg and "index" not in arg
        for arg in values["args"]
    ]
    one_column = loop_from_dict(request.name, values | {"args": args}, request.where)
    rows = sum(len(arg.kernel_columns) for arg in one_column.args)
    missing = parameters - rows
    if not any(whole) or missing <= 0 or missing % sum(whole):
        return one_column
    columns = [*range(1 + missing // sum(whole))]
    args = [
        arg | {"index": columns} if is_whole else arg
        for arg, is_whole in zip(args, whole, strict=True)
    ]
    return loop_from_dict(request.name, values | {"args": args}, request.where)


def _check_index(arg: Arg, mesh: Mesh) -> None:
    """Raise MeshprepError for a column that the map of an argument has not."""
    if arg.map is None:
        return
    arity = mesh.map(arg.map).arity
    last = max(arg.index)
    if last >= arity:
        raise MeshprepError(
            f"argument '{arg.name}': index {last} is past the last "
            f"column of map '{arg.map}', which has {arity}: use 0..{arity - 1}"
        )


def _check_over(loop: Loop, mesh: Mesh) -> None:
    """Raise MeshprepError where there is no set to loop over."""
    if loop.over not in mesh.sets and not loop.maps:
        has = ", ".join(mesh.sets)
        raise MeshprepError(
            f"needs the map of an argument: the mesh has {has}, and '{loop.over}' is made "
            f'only by a map, such as map = "{loop.over}->nodes"'
        )
    mesh.size(loop.over)


def _spec(request: LoopRequest, mesh: Mesh | None = None) -> LoopSpec:
    """The loop, checked against the arities of its maps, which are 1 without a mesh."""
    where = request.where
    values = dict(request.values)
    # Options and fixed dofs stand in the table, but are not the loop's.
    options = {key: values.pop(key) for key in request.values if key in _OPTIONS}
    fixed = {
        str(a["mat"]): _groups_without_rows(a, where)
        for a in values["args"]
        if _is_matrix(a)
    }
    values["args"] = [_with_index(a, mesh, where) for a in values["args"]]
    return LoopSpec(loop_from_dict(request.name, values, where), options, fixed)


def _request(name: str, values: Any, where: str) -> LoopRequest:
    """The request of a table ``[loop.NAME]``, with what needs no mesh checked."""
    if "/" in name:
        raise MeshprepError(f"{where}: a loop's name must not hold '/'")
    values = LoopRequest(name, values, where).values
    for key, kind in _OPTIONS.items():
        value = values.get(key, kind())
        # True is an int in Python, but no number of TOML.
        if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
            raise MeshprepError(f"{where}: {key} is {value!r}, must be {kind.__name__}")
    args = [_with_arrows(arg) for arg in values["args"]]
    request = LoopRequest(name, values | {"args": args}, where)
    # what needs no mesh is refused before one is read
    _spec(request)
    return request


def _with_arrows(arg: Any) -> Any:
    """An argument with its maps written with arrows: ``a->b`` for ``a:b``."""
    if not isinstance(arg, dict):
        return arg
    return arg | {key: with_arrow(arg[key]) for key in _MAPS if _is_text(arg, key)}


def _is_text(values: dict[str, Any], key: str) -> bool:
    return isinstance(values.get(key), str)


def _with_index(arg: Any, mesh: Mesh | None, where: str) -> Any:
    """An argument through a map without ``index`` means every column, in order.

    A matrix takes every column of its maps; its constraints are not the loop's.
    """
    # A matrix has two maps, which give the rows and columns of each element's matrix.
    is_matrix = _is_matrix(arg) and all(_is_text(arg, k) for k in ("rows", "columns"))
    if is_matrix:
        maps = [arg["rows"], arg["columns"]]
    elif isinstance(arg, dict) and "map" in arg and "index" not in arg:
        maps = [str(arg["map"])]
    else:
        return arg
    # Without a mesh, whose maps may not be known yet, every arity counts as 1.
    try:
        arities = [1 if mesh is None else mesh.map(name).arity for name in maps]
    except MeshprepError as error:
        raise MeshprepError(f"{where}: {error}") from None
    # Take all columns of the map; a matrix is as wide as its second map.
    completed = arg | {"index": list(range(arities[0]))}
    if is_matrix:
        completed["dim"] = arities[1]
        completed.pop(FIXED, None)
    return completed


def _is_matrix(arg: Any) -> bool:
    return isinstance(arg, dict) and "mat" in arg


def _groups_without_rows(arg: dict[str, Any], where: str) -> tuple[str | int, ...]:
    """The groups whose points have no row in a matrix."""
    given = arg.get(FIXED, [])
    groups = given if isinstance(given, list) else [given]
    if not all(isinstance(g, str | int) and not isinstance(g, bool) for g in groups):
        raise MeshprepError(
            f'{where}: {FIXED} is {given!r}, must be "boundary", '
            "or names or numbers of groups"
        )
    return tuple(groups)


def read_toml(path: str | Path) -> dict[str, Any]:
    """The content of a TOML file; raises MeshprepError where it cannot be read."""
    path = Path(path)
    try:
        check_input(path)
        with path.open("rb") as file:
            return tomllib.load(file)
    except MeshprepError as error:
        raise MeshprepError(f"{path}: cannot be read: {error}") from None
    except OSError as error:
        raise MeshprepError(f"{path}: cannot be read: {reason(error)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        text = str(error).splitlines()[0]
        raise MeshprepError(f"{path}: not valid TOML: {text}") from None
