"""A loops.toml to start from: a loop over each set, through all maps that lead from it."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence

from meshprep_runtime.errors import MeshprepError, printable

from ..mesh import Dat, Mesh
from ..mesh.cells import shape_of
from ..mesh.model import GMSH_ENTITY
from ..topology import derivable, derive
from .requests import default_request, finite_element_requests

HEAD = """\
# Loops of a solver over {name}, for meshprep reorder MESH --loops FILE.
#
# Keep the loops that the solver has, name them, and list what each of them touches: "dat"
# through the columns "index" of a "map", or without a map where it belongs to the element
# itself. "access" is read, write, rw (read and write) or inc (add to). A value of the whole
# loop is "global" instead of "dat", and takes read, inc, min or max. The first loop over a
# set decides its order; of its maps, the first one that is written through.
"""
# Dats that no solver reads: they are about the file, or a solver has its own.
_OWN = ("label", "original_id", *GMSH_ENTITY)
# The types of values that an argument may have here.
_TYPES = ("f4", "f8", "i4", "i8")


def template(mesh: Mesh, name: str) -> str:
    """The text of a loops.toml for the maps that a mesh has or can give.

    Where the mesh has values on the sets, they are listed as read, else ``value``; through
    the first map of each loop a sum is added to. The text is valid as it is. ``name`` is
    that of the file, for the heading.
    """
    # The maps of the mesh, and those that it can give, with arity, from-set and to-set.
    maps = {m.name: (m.arity, m.from_set, m.to_set) for m in mesh.maps.values()}
    refused = _refused(mesh)
    for possible in derivable(mesh):
        source, _, target = possible.partition("->")
        # Interior facets and all of them exclude each other: those of finite volumes go
        # first.
        if source != "cells" and possible not in refused:
            maps[possible] = (_arity(source, target), source, target)

    # A loop over each set, through the maps that lead from it.
    maps_from: dict[str, list[str]] = {}
    for map_name, (_, source, _) in maps.items():
        maps_from.setdefault(source, []).append(map_name)
    sources = _sets_in_order(mesh, maps_from, refused)
    loops = [_text_of_loop(mesh, over, maps_from[over], maps) for over in sources]

    # The name without its quotes stands in the heading.
    head = HEAD.format(name=_quoted(name)[1:-1])
    left_out = [f"# Without {possible}: {why}\n" for possible, why in refused.items()]
    return "\n".join([head, *left_out, *_table_of_sets(mesh), *loops])


def _refused(mesh: Mesh) -> dict[str, str]:
    """Maps of facets to their two cells, where some facet has more, and why."""
    refusals = {}
    for name in {"edges->cells", "faces->cells"}.intersection(derivable(mesh)):
        try:
            derive(mesh, [name])
        except MeshprepError as error:
            refusals[name] = str(error).partition(": ")[0]
    return refusals


def _sets_in_order(
    mesh: Mesh, sources: Iterable[str], refused: Collection[str]
) -> list[str]:
    """The set of the default loop first, since the first loop leads; then the largest."""
    leading = default_request(mesh)
    if leading.name in refused:
        # as where no loop is named
        leading = next(iter(finite_element_requests(mesh)), leading)
    first = leading.values["over"]
    size = {s: mesh.sets[s].size if s in mesh.sets else 0 for s in sources}
    return sorted(size, key=lambda s: (s != first, -size[s]))


def _arity(source: str, target: str) -> int:
    """The arity of a map that can be derived; 0 where it is not known beforehand."""
    if target == "cells":
        return 1 if source.startswith("boundary_") else 2
    return 0


def _text_of_loop(
    mesh: Mesh,
    over: str,
    names: Sequence[str],
    maps: dict[str, tuple[int, str, str]],
) -> str:
    """The table of a loop over a set, through the maps with these names."""
    # Values of the elements themselves.
    lines = [f"[loop.{_toml_key(f'over_{over}')}]", f'over = "{over}"', "args = ["]
    lines += [_arg(d) for d in mesh.dats if d.set == over and _is_listed(d)]
    if over in ("boundary_edges", "boundary_faces") and over not in mesh.sets:
        lines += _group_argument(mesh, over)
    # Values of what each map reaches.
    for position, name in enumerate(names):
        arity, _, target = maps[name]
        if arity:
            index = f", index = {list(range(arity))}"
        else:
            index = ""
        through = f', map = "{name}"{index}'
        dats = [d for d in mesh.dats if d.set == target and _is_listed(d)]
        lines += [_arg(d, through) for d in dats]
        if not dats:
            lines.append(f'  {{ dat = "value"{through}, access = "read" }},')
        if position == 0:
            lines.append(f'  {{ dat = "sum_{target}"{through}, access = "inc" }},')
    return "\n".join([*lines, "]", ""])


def _group_argument(mesh: Mesh, over: str) -> list[str]:
    """An argument for the group of each boundary facet, where the mesh has such groups."""
    dim_of_set = {s.name: shape_of(str(s.cell_type)).dim for s in mesh.cell_sets}
    dim_of_facets = max(dim_of_set.values(), default=0) - 1
    tags = [t for t in mesh.tags if dim_of_set.get(t.set) == dim_of_facets]
    line = '  { dat = "group", dtype = "i8", access = "read" },'
    if not tags:
        return []
    # A group with names comes first: an entity of Gmsh is no group of a solver.
    tag = min(tags, key=lambda t: not t.names)
    return [f'{line}  # plan.tags["{over}"][{_quoted(tag.name)}]']


def _is_listed(d: Dat) -> bool:
    """Whether a dat can be an argument: numbers of all elements that a solver may read."""
    is_plain = d.values.ndim <= 2 and d.values.dtype.str[1:] in _TYPES
    has_all_elements = d.index is None and d.values[:1].size > 0
    return is_plain and d.name not in _OWN and has_all_elements


def _arg(d: Dat, through: str = "") -> str:
    """The line of an argument that reads a dat, through a map where ``through`` has one."""
    dim = d.values.shape[1] if d.values.ndim == 2 else 1
    name = _quoted(d.name)
    kind = d.values.dtype.str[1:]
    return f'  {{ dat = {name}{through}, dim = {dim}, dtype = "{kind}", access = "read" }},'


def _toml_key(name: str) -> str:
    """A key of TOML: bare where it may be, else quoted."""
    bare = name.replace("_", "").replace("-", "")
    if bare.isascii() and bare.isalnum():
        return name
    return _quoted(name)


def _quoted(name: str) -> str:
    """A text of TOML, on one line."""
    return printable(json.dumps(name, ensure_ascii=False))


def _table_of_sets(mesh: Mesh) -> Iterator[str]:
    """What was found out about a file that does not say which sets its datasets are on."""
    # Collect what the readers have concluded.
    entries = []
    for key, texts in mesh.extras.items():
        if key.endswith(":inferred"):
            entries += texts
    if entries:
        yield "# Found by sizes and index ranges; correct it where it is wrong."
        yield "[sets]"
        for entry in entries:
            name, _, place = entry.partition("=")
            if name == "base":
                value = place
            else:
                value = f'"{place}"'
            yield f"{_toml_key(name)} = {value}"
        yield ""
