"""A loops.toml to start from: a loop over each set, through every map that leads away from it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from meshprep_runtime.errors import MeshprepError, printable
from meshprep_runtime.plan.file.atomic import together

from ..io.gmsh.layout import ENTITY_DIM, ENTITY_TAG
from ..io.outputs import check_targets
from ..io.source import MeshSource
from ..mesh import Dat, Mesh
from ..mesh.cells import shape_of
from ..topology import derivable, derive
from .requests import default_request

HEAD = """\
# Loops of a solver over {name}, for meshprep reorder MESH --loops FILE.
#
# Keep the loops that the solver has, name them, and list what each of them touches: "dat" through
# the columns "index" of a "map", or without a map where it belongs to the element itself. "access"
# is read, write, rw (read and write) or inc (add to). A value of the whole loop is "global"
# instead of "dat", and takes read, inc, min or max. The first loop over a set decides its order;
# of its maps, the first one that is written through.
"""
# Values that are about the file, or of which a solver has its own.
_OWN = ("label", "original_id", ENTITY_DIM, ENTITY_TAG)
_TYPES = ("f4", "f8", "i4", "i8")


def template(mesh: Mesh, name: str) -> str:
    """The text of a loops.toml for the maps that a mesh has or can give.

    Where the mesh has values on the sets, they are listed as read, else ``value``; through the
    first map of each loop a sum is added to. The text is valid as it is. ``name`` is that of the
    file, for the heading.
    """
    maps = {m.name: (m.arity, m.from_set, m.to_set) for m in mesh.maps.values()}
    refused = _refused(mesh)
    for possible in derivable(mesh):
        source, _, target = possible.partition("->")
        # Interior facets and all of them exclude each other: those of finite volumes go first.
        if source != "cells" and possible not in refused:
            maps[possible] = (_arity(source, target), source, target)
    sources = _in_order(mesh, dict.fromkeys(source for _, source, _ in maps.values()))
    blocks = [_loop(mesh, s, [m for m, (_, f, _) in maps.items() if f == s], maps) for s in sources]
    left = [f"# Without {possible}: {why}\n" for possible, why in refused.items()]
    return "\n".join([HEAD.format(name=_quoted(name)[1:-1]), *left, *_sets(mesh), *blocks])


def _refused(mesh: Mesh) -> dict[str, str]:
    """Maps of facets to their two cells, where some facet has more, and why."""
    found = {}
    for name in {"edges->cells", "faces->cells"}.intersection(derivable(mesh)):
        try:
            derive(mesh, [name])
        except MeshprepError as error:
            found[name] = str(error).partition(": ")[0]
    return found


def template_of(source: MeshSource, output: Path | None = None, *, overwrite: bool = False) -> str:
    """The template for a mesh file; written to ``output`` where there is one."""
    if output is not None:
        check_targets([output], overwrite=overwrite, inputs=[source.path])
    text = template(source.read(), source.path.name)
    if output is not None:
        with together([output], overwrite=overwrite) as (staged,):
            staged.write_text(text, encoding="utf-8")
    return text


def _in_order(mesh: Mesh, sources: Iterable[str]) -> list[str]:
    """The set of the default loop first, since the first loop leads; then the largest."""
    first = default_request(mesh).values["over"]
    size = {s: mesh.sets[s].size if s in mesh.sets else 0 for s in sources}
    return sorted(size, key=lambda s: (s != first, -size[s]))


def _arity(source: str, target: str) -> int:
    if target == "cells":
        return 1 if source.startswith("boundary_") else 2
    return 0


def _loop(
    mesh: Mesh, over: str, names: Sequence[str], maps: dict[str, tuple[int, str, str]]
) -> str:
    lines = [f"[loop.{_key(f'over_{over}')}]", f'over = "{over}"', "args = ["]
    lines += [_arg(d) for d in mesh.dats if d.set == over and _is_listed(d)]
    if over in ("boundary_edges", "boundary_faces") and over not in mesh.sets:
        lines += _groups(mesh, over)
    for position, name in enumerate(names):
        arity, _, target = maps[name]
        index = f", index = {list(range(arity))}" if arity else ""
        through = f', map = "{name}"{index}'
        dats = [d for d in mesh.dats if d.set == target and _is_listed(d)]
        lines += [_arg(d, through) for d in dats]
        if not dats:
            lines.append(f'  {{ dat = "value"{through}, access = "read" }},')
        if position == 0:
            lines.append(f'  {{ dat = "sum_{target}"{through}, access = "inc" }},')
    return "\n".join([*lines, "]", ""])


def _groups(mesh: Mesh, over: str) -> list[str]:
    """An argument for the group of each boundary facet, where the mesh has groups of facets."""
    dim = {s.name: shape_of(str(s.cell_type)).dim for s in mesh.cell_sets}
    tags = [t for t in mesh.tags if dim.get(t.set) == max(dim.values()) - 1]
    line = '  { dat = "group", dtype = "i8", access = "read" },'
    # what Gmsh calls an entity is no group of a solver, and has no names
    found = sorted(tags, key=lambda t: not t.names)
    return [f'{line}  # plan.tags["{over}"][{_quoted(t.name)}]' for t in found[:1]]


def _is_listed(d: Dat) -> bool:
    plain = d.values.ndim <= 2 and d.values.dtype.str[1:] in _TYPES
    return plain and d.name not in _OWN and d.index is None and d.values[:1].size > 0


def _arg(d: Dat, through: str = "") -> str:
    dim = d.values.shape[1] if d.values.ndim == 2 else 1
    name, kind = _quoted(d.name), d.values.dtype.str[1:]
    return f'  {{ dat = {name}{through}, dim = {dim}, dtype = "{kind}", access = "read" }},'


def _key(name: str) -> str:
    bare = name.replace("_", "").replace("-", "")
    return name if bare.isascii() and bare.isalnum() else _quoted(name)


def _quoted(name: str) -> str:
    """A text of TOML, on one line."""
    return printable(json.dumps(name, ensure_ascii=False))


def _sets(mesh: Mesh) -> Iterator[str]:
    """What was found out about a file that does not say which sets its datasets are on."""
    found = [entry for k, v in mesh.extras.items() if k.endswith(":inferred") for entry in v]
    if found:
        yield "# Found by sizes and index ranges; correct it where it is wrong."
        yield "[sets]"
        for entry in found:
            name, _, place = entry.partition("=")
            value = place if name == "base" else f'"{place}"'
            yield f"{_key(name)} = {value}"
        yield ""
