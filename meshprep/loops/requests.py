"""Which loops to prepare: from ``--loop``, from loops.toml, or by default.

A request names maps before they exist (``faces->cells`` is derived later), so reading has two
steps: :func:`read_requests` or :func:`simple_request` say which maps are needed, and
:func:`resolve` makes checked :class:`Loop` objects once the mesh has them.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.file.atomic import check_input, reason
from meshprep_runtime.types.loops import Access, Arg, Loop, cut_by_shell, loop_from_dict, with_arrow

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
        ``over``, ``args`` and options (``block_size``, ``partition``, ``effort``, ``target``,
        ``own_blocks``), as in a table ``[loop.NAME]``.
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
        if not isinstance(values, Mapping) or not isinstance(values.get("args"), list | tuple):
            raise MeshprepError(f'{self.where}: needs over = "SET" and args = [ {{ ... }}, ... ]')
        unknown = sorted(set(values) - {"over", "args", *_OPTIONS})
        if unknown:
            known = ", ".join(("over", "args", *_OPTIONS))
            raise MeshprepError(f"{self.where}: unknown key '{unknown[0]}': use {known}")

    @property
    def maps(self) -> tuple[str, ...]:
        """The maps the loop needs, each once."""
        args = self.values["args"]
        named = (str(a[k]) for a in args if isinstance(a, dict) for k in _MAPS if k in a)
        return tuple(dict.fromkeys(named))


# By name, a mapping has what a table [loop.NAME] of loops.toml has.
Loops = Sequence[LoopRequest | str] | Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class LoopSpec:
    """A loop that fits the mesh, and the options that its table gives (block_size, ...).

    ``fixed`` has the groups of the mesh whose rows of a matrix are left out, by its name.
    """

    loop: Loop
    options: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, tuple[str | int, ...]] = field(default_factory=dict)


def simple_request(text: str) -> LoopRequest:
    """``"faces->cells"``: one increment of one f8 named ``value`` on every point of the map.

    ``"faces:cells"`` is the same, which needs no quotes in a shell; ``"edges->cells->nodes"`` goes
    through a map of a map.
    """
    over, *to = sets = [*map(str.strip, with_arrow(text).split("->"))]
    if not (to and all(sets)):
        raise MeshprepError(
            f"loop '{text}'{cut_by_shell(text)} must read FROM->TO or FROM:TO, "
            "for example 'faces->cells'"
        )
    name = "->".join(sets)
    arg = {"dat": "value", "map": name, "access": "inc"}
    return LoopRequest(name, {"over": over, "args": [arg]}, f"loop '{name}'")


def default_request(mesh: Mesh) -> LoopRequest:
    """The loop of a finite-volume solver: faces->cells in 3-D, edges->cells in 2-D.

    Meshes of lines get cells->nodes; meshes without cells of known types the one of these maps
    that they have, else the first.
    """
    cells = mesh.cell_sets
    if not cells:
        if not mesh.maps:
            raise MeshprepError("the mesh has no maps: there is no loop to prepare")
        usual = (m for m in ("faces->cells", "edges->cells", "cells->nodes") if m in mesh.maps)
        return simple_request(next(usual, next(iter(mesh.maps))))
    dim = max(shape_of(str(s.cell_type)).dim for s in cells)
    return simple_request({3: "faces->cells", 2: "edges->cells"}.get(dim, "cells->nodes"))


def as_requests(loops: Loops, mesh: Mesh) -> list[LoopRequest]:
    """Loops as ``prepare`` takes them: texts stand for an increment, none for the default loop."""
    if isinstance(loops, str):
        raise MeshprepError(f"loops are a list, but '{loops}' is a text: give ['{loops}']")
    if not isinstance(loops, Iterable):
        raise MeshprepError(f"loops are a list, but {loops!r} is none: give ['edges->cells']")
    if isinstance(loops, Mapping):
        loops = [LoopRequest(name, values) for name, values in loops.items()]
    requests = [simple_request(r) if isinstance(r, str) else r for r in loops]
    for one in requests:
        if not isinstance(one, LoopRequest):
            raise MeshprepError(f"loop {one!r} must be a text such as 'a->b', or a LoopRequest")
    return requests or [default_request(mesh)]


def empty_loop(loop: Loop) -> str:
    """In words, that this loop has no elements, and why."""
    facet = {"faces": "a face", "edges": "an edge"}.get(loop.over)
    shared = facet and f"{loop.over}->cells" in loop.maps
    why = f"no two cells share {facet}" if shared else f"the set '{loop.over}' is empty"
    return f"loop {loop.name} has no elements, as {why}"


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
        raise MeshprepError(f"{path}: unknown table '{unknown[0]}': use [loop.NAME] and [sets]")
    if not isinstance(loops, dict) or not loops:
        raise MeshprepError(f"{path}: holds no loops: write a table [loop.NAME] for each")
    return [_request(name, values, f"{path}, loop '{name}'") for name, values in loops.items()]


def resolve(requests: Iterable[LoopRequest], mesh: Mesh) -> list[LoopSpec]:
    """Make and check the loops against a mesh that has their maps.

    Raises
    ------
    MeshprepError
        Naming the loop and argument that uses an unknown set, map or column, or a repeated name.
    """
    specs: dict[str, LoopSpec] = {}
    for request in requests:
        if request.name in specs:
            raise MeshprepError(f"{request.where}: there are two loops of this name")
        specs[request.name] = spec = _spec(request, mesh)
        try:
            mesh.size(spec.loop.over)
            for arg in spec.loop.args:
                if arg.map is not None and max(arg.index) >= (arity := mesh.map(arg.map).arity):
                    raise MeshprepError(
                        f"argument '{arg.name}': index {max(arg.index)} is past the last column of "
                        f"map '{arg.map}', which has {arity}: use 0..{arity - 1}"
                    )
        except MeshprepError as error:
            raise MeshprepError(f"{request.where}: {error}") from None
    return [*specs.values()]


def _spec(request: LoopRequest, mesh: Mesh | None = None) -> LoopSpec:
    """The loop, checked as far as the arities of its maps tell, which are 1 without a mesh."""
    where = request.where
    values = dict(request.values)
    options = {key: values.pop(key) for key in request.values if key in _OPTIONS}
    fixed = {str(a["mat"]): _fixed(a, where) for a in values["args"] if _is_matrix(a)}
    values["args"] = [_with_index(a, mesh, where) for a in values["args"]]
    return LoopSpec(loop_from_dict(request.name, values, where), options, fixed)


def _request(name: str, values: Any, where: str) -> LoopRequest:
    if "/" in name:
        raise MeshprepError(f"{where}: a loop's name must not hold '/'")
    values = LoopRequest(name, values, where).values
    for key, kind in _OPTIONS.items():
        value = values.get(key, kind())
        if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
            raise MeshprepError(f"{where}: {key} is {value!r}, must be {kind.__name__}")
    args = [
        a | {k: with_arrow(a[k]) for k in _MAPS if _is_text(a, k)} if isinstance(a, dict) else a
        for a in values["args"]
    ]
    request = LoopRequest(name, values | {"args": args}, where)
    # what needs no mesh is refused before one is read
    _spec(request)
    return request


def _is_text(values: dict[str, Any], key: str) -> bool:
    return isinstance(values.get(key), str)


def _with_index(arg: Any, mesh: Mesh | None, where: str) -> Any:
    """An argument through a map without ``index`` means every column, in order.

    A matrix takes every column of its maps; its constraints are not the loop's.
    """
    matrix = _is_matrix(arg) and all(_is_text(arg, k) for k in ("rows", "columns"))
    if not matrix and (not isinstance(arg, dict) or "map" not in arg or "index" in arg):
        return arg
    try:
        maps = (arg["rows"], arg["columns"]) if matrix else (str(arg["map"]),)
        arity, *width = [1 if mesh is None else mesh.map(name).arity for name in maps]
    except MeshprepError as error:
        raise MeshprepError(f"{where}: {error}") from None
    found = arg | {"index": list(range(arity))}
    if matrix:
        found["dim"] = width[0]
        found.pop(FIXED, None)
    return found


def _is_matrix(arg: Any) -> bool:
    return isinstance(arg, dict) and "mat" in arg


def _fixed(arg: dict[str, Any], where: str) -> tuple[str | int, ...]:
    """The groups whose points have no row in a matrix."""
    found = arg.get(FIXED, [])
    groups = found if isinstance(found, list) else [found]
    if not all(isinstance(g, str | int) and not isinstance(g, bool) for g in groups):
        raise MeshprepError(
            f'{where}: {FIXED} is {found!r}, must be "boundary", or names or numbers of groups'
        )
    return tuple(groups)


def read_toml(path: str | Path) -> dict[str, Any]:
    """The content of a TOML file; raises MeshprepError where it cannot be read or is none."""
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
