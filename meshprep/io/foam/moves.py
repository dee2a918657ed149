"""Where cells, faces and points of a case go, and its files in the new order."""

import re
from dataclasses import dataclass, replace

import numpy as np

from ...kernels import Bools, Int32s, Int64s, kernel
from .case import PolyMesh
from .files import FoamFile, Pieces, as_index, put_faces

# A file of a dictionary names cells, faces or points where it selects them by number.
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_REFERENCE = re.compile(rb"\b\w*[rR]efCell\s+([0-9]{1,18})\s*;")
_SELECTS = re.compile(rb"\blabelTo(Cell|Face|Point)\b")
_SELECTED = re.compile(
    _SELECTS.pattern + rb"[^()]*?\bvalue\s+(?:List<label>\s*)?(?:[0-9]+\s*)?\(([\s0-9]*)\)"
)
# Where a region was in the whole mesh that splitMeshRegions made it from.
OF_WHOLE = {f"{one}RegionAddressing": f"{one}s" for one in ("cell", "face", "point")}
# Lists of whole numbers by the name of their file: what they are on.
LISTS = {
    **OF_WHOLE,
    "cellLevel": "cells",
    "cellDecomposition": "cells",
    "cellToRegion": "cells",
    "cellProcAddressing": "cells",
    "surfaceIndex": "faces",
    "faceProcAddressing": "faces",
    "pointLevel": "points",
    "pointProcAddressing": "points",
}
# Those on faces whose sign tells the side.
_SIGNED = ("faceProcAddressing", "faceRegionAddressing")
ZONES = {"cellZones": "cells", "faceZones": "faces", "pointZones": "points"}
SETS = {"cellSet": "cells", "faceSet": "faces", "pointSet": "points"}
ON = {"vol": "cells", "surface": "faces", "point": "points"}
_COMPONENTS = {"scalar": 1, "vector": 3, "sphericalTensor": 1, "symmTensor": 6, "tensor": 9}
FIELD = re.compile(r"(vol|surface|point)(Scalar|Vector|\w*Tensor)Field(::Internal)?")
_VALUES = re.compile(rb"\binternalField\s+(?:nonuniform\s+List<(\w+)>|uniform\s+([^;]*))")
# Of fields without patches.
_INNER = re.compile(_VALUES.pattern.replace(b"internalField", b"value"))
_LISTED = re.compile(rb"\bnonuniform\s+List<")
_ORIENTED = re.compile(rb"\boriented\s+(\w+)\s*;")
_FLUX = re.compile(rb"\bdimensions\s*\[\s*(?:0\s+3|1\s+0)\s+-1[\s0]*\]")
_ZONE = re.compile(
    rb"\b(cellLabels|faceLabels|pointLabels|flipMap)\s+(?:List<(?:label|bool)>\s*)?"
)


@dataclass(frozen=True, eq=False)
class Moves:
    """New numbers of a mesh: of its cells, interior faces and points, ``new_to_old``.

    ``turned`` tells of each interior face in the new order whether its sides change.
    """

    mesh: PolyMesh
    cells: Int32s
    faces: Int32s
    turned: Bools
    points: Int32s
    owner: Int32s
    neighbour: Int32s
    face_offset: Int64s
    face_points: Int32s

    @classmethod
    def of(cls, mesh: PolyMesh, cells: Int32s, faces: Int32s) -> "Moves":
        """Turn the faces that must be and number the points by their use. O(size)."""
        # A face looks from its owner, the lower cell, to its neighbour: turn those whose
        # cells change their order.
        new = inverse(cells)
        # both sides of a face in one visit to memory
        sides = np.stack([mesh.owner[: faces.size], mesh.neighbour], axis=1)
        first, second = new[np.take(sides, faces, axis=0).T]
        turned = first > second
        owner = np.concatenate([np.minimum(first, second), new[mesh.owner[faces.size :]]])
        number = np.full(mesh.n_points, -1, np.int32)
        order = np.empty(mesh.n_points, np.int32)
        buffers = np.empty_like(mesh.face_offset), np.empty_like(mesh.face_points)
        _put_in_order(
            mesh.face_offset, mesh.face_points, faces, turned, *buffers, number, order
        )
        return cls(
            mesh, cells, faces, turned, order, owner, np.maximum(first, second), *buffers
        )

    def order(self, of: str) -> Int32s:
        found: Int32s = {"cells": self.cells, "faces": self.faces, "points": self.points}[
            of
        ]
        return found

    def size(self, of: str) -> int:
        """All faces count, those of patches too."""
        if of == "faces":
            return self.face_offset.size - 1
        return self.order(of).size

    def new_numbers(self, of: str) -> Int32s:
        """The new number of each cell, face or point."""
        kept = np.arange(self.order(of).size, self.size(of), dtype=np.int32)
        return np.concatenate([inverse(self.order(of)), kept])


def inverse(order: Int32s) -> Int32s:
    back = np.empty_like(order)
    back[order] = np.arange(order.size, dtype=np.int32)
    return back


@kernel
def _put_in_order(
    offset: Int64s,
    points: Int32s,
    order: Int32s,
    turned: Bools,
    new_offset: Int64s,
    new_points: Int32s,
    number: Int32s,
    new_to_old: Int32s,
) -> None:
    """Copy the points of all faces and number them by first use, unused ones last.

    A face that turns keeps its first point, as OpenFOAM's own do.
    """
    next_entry = new_offset[0] = np.int64(0)
    for f in range(offset.size - 1):
        old = np.int64(order[f]) if f < order.size else f
        begin = offset[old]
        end = offset[old + 1]
        turns = f < order.size and turned[f]
        new_points[next_entry] = points[begin]
        next_entry += 1
        for i in range(begin + 1, end):
            new_points[next_entry] = points[begin + end - i if turns else i]
            next_entry += 1
        new_offset[f + 1] = next_entry
    # by themselves: where a point is found needs no number, so that these are fetched
    # meanwhile
    count = np.int64(0)
    for i in range(new_points.size):
        point = new_points[i]
        if number[point] < 0:
            number[point] = count
            new_to_old[count] = point
            count += 1
        new_points[i] = number[point]
    for point in range(number.size):
        if number[point] < 0:
            new_to_old[count] = point
            count += 1


def moved_points(file: FoamFile, moves: Moves) -> Pieces:
    """Points in the new order, those of a mesh that moves too."""
    begin = file.behind_blank(file.start)
    if file.count(begin)[0] != moves.points.size:
        raise file.error(f"must hold {moves.points.size} points: take the file away", begin)
    width = 3 * file.kind("scalar").itemsize
    lists, end = file.moved_rows(begin, width, moves.points)
    return [file.part(0, begin), *lists, file.part(end)]


def moved_mesh(moves: Moves, name: str) -> tuple[FoamFile, Pieces]:
    """The file of the faces, owners or neighbours, and what it is to hold."""
    file, begin = moves.mesh.files[name]
    # Owners and neighbours are plain lists; faces in binary are offsets and points, in
    # text a size and points in brackets each.
    if name != "faces":
        lists = file.list_of(moves.owner if name == "owner" else moves.neighbour)
    elif file.binary:
        lists = [
            *file.list_of(moves.face_offset),
            b"\n\n",
            *file.list_of(moves.face_points),
        ]
    else:
        out = np.empty(22 * moves.size("faces") + 11 * moves.face_points.size, np.uint8)
        size = put_faces(moves.face_offset, moves.face_points, out)
        lists = [b"%d\n(\n" % moves.size("faces"), out[:size].data, b")"]
    return file, [file.part(0, begin), *lists, file.part(begin)]


def moved_labels(file: FoamFile, moves: Moves, name: str) -> Pieces:
    """A list with a whole number a cell, face or point; of some its sign is the side."""
    of = LISTS[name]
    begin = file.behind_blank(file.start)
    if file.count(begin)[0] != moves.size(of):
        raise file.error(
            f"must hold {moves.size(of)} numbers, one for each of the {of}", begin
        )
    signs = moves.turned if name in _SIGNED else None
    width = file.kind("label").itemsize
    rows, end = file.moved_rows(begin, width, moves.order(of), signs)
    return [file.part(0, begin), *rows, file.part(end)]


def moved_set(file: FoamFile, moves: Moves) -> Pieces:
    """A cellSet, faceSet or pointSet with new numbers."""
    of = SETS.get(file.header.get("class", ""))
    if of is None:
        raise file.error("is no cellSet, faceSet or pointSet: take it away", 0)
    # the elements of hashed sets are text in binary files, too
    text = replace(file, header={**file.header, "format": "ascii"})
    begin = file.behind_blank(file.start)
    values, end = text.numbers(begin, "label", limit=moves.size(of))
    numbers = moves.new_numbers(of)[as_index(file, values[:, 0], moves.size(of))]
    return [file.part(0, begin), *text.list_of(np.sort(numbers)), file.part(end)]


def moved_zones(file: FoamFile, moves: Moves, of: str) -> Pieces:
    """Zones with new numbers; the sides of faces that turn are flipped."""
    numbers = moves.new_numbers(of)
    size = moves.size(of)
    # A flipMap says of each face of the zone before it whether the zone looks against it:
    # it changes where the face turns.
    turned = np.zeros(moves.size("faces"), np.bool_)
    turned[moves.faces] = moves.turned
    labels = np.empty(0, np.int32)
    pieces = Pieces()
    pos = file.start
    while zone := _ZONE.search(file.raw, pos):
        pieces.append(file.part(pos if pieces else 0, zone.end()))
        if zone[1] == b"flipMap":
            values, end = file.numbers(zone.end(), "bool", limit=labels.size)
            if len(values) != labels.size or values.max(initial=0) > 1 or of != "faces":
                raise file.error(
                    "a flipMap does not fit its faces: repair it", zone.start()
                )
            pieces += file.list_of(values[:, 0].astype(np.int64) ^ turned[labels], "bool")
            labels = labels[:0]
        else:
            values, end = file.numbers(zone.end(), "label", limit=size)
            labels = as_index(file, values[:, 0], size)
            pieces += file.list_of(numbers[labels])
        pos = end
    return [*pieces, file.part(pos if pieces else 0)]


def moved_field(file: FoamFile, moves: Moves) -> Pieces:
    """A field with its inner values in the new order; those of patches stay.

    Fluxes change their sign where a face turns: fields that say ``oriented``, and of older
    versions surface scalars of m^3/s or kg/s.
    """
    kind = FIELD.fullmatch(file.header.get("class", ""))
    if kind is None:
        raise file.error("is no field on cells, faces or points: take the file away", 0)
    # Fields name what they are on by their class: volScalarField on cells, surface on
    # faces, point on points.
    of = ON[kind[1]]
    match = (_INNER if kind[3] else _VALUES).search(file.raw, file.start)
    if match is None and _LISTED.search(file.raw, file.start):
        raise file.error("has no inner values, but lists: write them in full", 0)
    if match is None:
        return [file.part(0)]
    # Find out whether values are of a side, so that they turn with their face.
    oriented = _ORIENTED.search(file.raw, file.start, match.start())
    flux = kind[1] + kind[2] == "surfaceScalar" and _FLUX.search(
        file.raw, file.start, match.start()
    )
    turns = of == "faces" and (oriented[1] == b"oriented" if oriented else bool(flux))
    if match[1] is None:
        if turns and moves.turned.any() and re.search(rb"[1-9]", match[2]):
            raise file.error(
                "a flux that is uniform cannot be turned: write each", match.start()
            )
        return [file.part(0)]
    name = match[1].decode()
    if name not in _COMPONENTS:
        raise file.error(f"a list of {name} is unknown: leave the file out", match.start())
    # Take the rows in their new order; what stands before and behind them stays.
    order = moves.order(of)
    if file.count(match.end())[0] != order.size:
        raise file.error(
            f"must hold {order.size} values, one for each of the {of}", match.start()
        )
    width = _COMPONENTS[name] * file.kind("scalar").itemsize
    begin = file.behind_blank(match.end())
    rows, end = file.moved_rows(begin, width, order, moves.turned if turns else None)
    return [file.part(0, begin), *rows, file.part(end)]


def inner_size(head: bytes, kind: re.Match[str]) -> int | None:
    """How many inner values a field has; None where its head does not hold their number."""
    found = (_INNER if kind[3] else _VALUES).search(head)
    if found is None or found[1] is None:
        return None
    size = re.compile(rb"\s*([0-9]{1,18})\b").match(head, found.end())
    if size is None:
        return None
    return int(size[1])


def names_reference(raw: bytes) -> bool:
    """Whether a dictionary names the cell of a reference value, as ``pRefCell``."""
    return _REFERENCE.search(_blank_comments(raw)) is not None


def names_by_label(raw: bytes | bytearray) -> bool:
    """Whether a dictionary names cells, faces or points by their numbers."""
    text = _blank_comments(raw)
    return bool(_REFERENCE.search(text) or _SELECTS.search(text))


def _blank_comments(raw: bytes | bytearray) -> bytes:
    """The text with blanks in place of comments."""
    return _COMMENT.sub(lambda found: b" " * len(found[0]), bytes(raw))


def moved_dictionary(file: FoamFile, moves: Moves) -> Pieces:
    """A dictionary with new numbers where it selects cells, faces or points by number.

    That is the cell of a reference value, as ``pRefCell``, and what ``labelToCell``,
    ``labelToFace`` and ``labelToPoint`` list. A reference that there is not stays: no
    solver that runs reads it.
    """
    text = _blank_comments(file.raw)
    changes = dict[tuple[int, int], bytes]()
    # A reference cell of the pressure, such as pRefCell, is one number.
    for found in _REFERENCE.finditer(text):
        cell = int(found[1])
        if cell < moves.size("cells"):
            changes[found.span(1)] = b"%d" % moves.new_numbers("cells")[cell]
    selected = {chosen.start(): chosen for chosen in _SELECTED.finditer(text)}
    # Sources of topoSet that select by number have a list of them.
    for place in _SELECTS.finditer(text):
        chosen = selected.get(place.start())
        if chosen is None:
            raise file.error(
                f"{place[0].decode()} needs its numbers as value (1 2 3)", place.start()
            )
        of = f"{chosen[1].decode().lower()}s"
        labels = np.array([int(word) for word in chosen[2].split()], np.int64)
        numbers = moves.new_numbers(of)[as_index(file, labels, moves.size(of))]
        changes[chosen.span(2)] = " ".join(str(n) for n in numbers.tolist()).encode()
    pieces = Pieces()
    pos = 0
    for (begin, end), new in sorted(changes.items()):
        pieces += [file.part(pos, begin), new]
        pos = end
    return [*pieces, file.part(pos)]
