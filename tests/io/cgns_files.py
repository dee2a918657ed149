"""CGNS trees as other programs write them, and what is in a file whatever its numbers are."""

import h5py
import numpy as np


def node(name, label, data=None, *children):
    """A node: text, a list of whole numbers, or an array."""
    return name, label, data, children


def save(path, *nodes, version=3.3, integer=np.int32):
    """Write a tree, whole numbers as ``integer``."""
    with h5py.File(path, "w", track_order=True) as file:
        version = np.array([version], np.float32)
        for one in [node("CGNSLibraryVersion", "CGNSLibraryVersion_t", version), *nodes]:
            _save(file, one, integer)


def _save(parent, one, integer):
    name, label, data, children = one
    group = parent.create_group(name, track_order=True)
    group.attrs["label"] = np.bytes_(label)
    group.attrs["name"] = np.bytes_(name)
    if isinstance(data, str):
        data = np.frombuffer(data.encode(), np.int8)
    elif isinstance(data, list):
        data = np.array(data, integer)
    kinds = {"i1": "C1", "i4": "I4", "i8": "I8", "f4": "R4", "f8": "R8"}
    group.attrs["type"] = np.bytes_("MT" if data is None else kinds[data.dtype.str[1:]])
    if data is not None:
        group[" data"] = data
    for child in children:
        _save(group, child, integer)


def zone(name, points, n_cells, *children):
    """An unstructured zone."""
    axes = [
        node(f"Coordinate{axis}", "DataArray_t", np.array(values, float))
        for axis, values in zip("XYZ", np.transpose(points), strict=False)
    ]
    kind = node("ZoneType", "ZoneType_t", "Unstructured")
    grid = node("GridCoordinates", "GridCoordinates_t", None, *axes)
    return node(name, "Zone_t", [[len(points)], [n_cells], [0]], kind, grid, *children)


def section(name, kind, first, rows, *children, offset=None):
    """Elements of one type from number ``first``; rows of several lengths one after the other."""
    count = len(rows) if offset is None else len(offset) - 1
    found = [
        node("ElementRange", "IndexRange_t", [first, first + count - 1]),
        node("ElementConnectivity", "DataArray_t", [n for row in rows for n in row]),
    ]
    if offset is not None:
        found.append(node("ElementStartOffset", "DataArray_t", offset))
    return node(name, "Elements_t", [kind, 0], *found, *children)


def at(location):
    """Where a group or a solution is."""
    return node("GridLocation", "GridLocation_t", location)


def points(numbers):
    """A list of numbers, as groups have."""
    return node("PointList", "IndexArray_t", [[n] for n in numbers])


SIZES = {2: 1, 3: 2, 5: 3, 7: 4, 10: 4, 12: 5, 14: 6, 17: 8}


class Seen:
    """A file with one zone a base, by places in space instead of numbers."""

    def __init__(self, path):
        with h5py.File(path) as file:
            base = next(b for b in file.values() if _label(b) == "CGNSBase_t")
            self.families = {k: self.tree(v) for k, v in of_label(base, "Family_t")}
            self.zones = {name: self.zone(z) for name, z in of_label(base, "Zone_t")}

    def tree(self, group):
        """Everything below as nested names, labels and data."""
        below = {k: self.tree(v) for k, v in group.items() if isinstance(v, h5py.Group)}
        return _label(group), _values(group), below

    def zone(self, zone):
        xyz = zone["GridCoordinates"]
        xyz = (
            np.stack([xyz[f"Coordinate{a}/ data"][()] for a in "XYZ"], 1).round(12).tolist()
        )
        elements, sections = {}, {}
        for name, s in of_label(zone, "Elements_t"):
            first = int(s["ElementRange/ data"][0])
            rows = list(self.rows(s))
            places = [frozenset(tuple(xyz[n - 1]) for n in row) for row in rows]
            elements |= {first + i: place for i, place in enumerate(places)}
            sections[name] = sorted(map(sorted, places))
        groups = {}
        for parent in [zone, *(b for _, b in of_label(zone, "ZoneBC_t"))]:
            for name, bc in [
                *of_label(parent, "BC_t"),
                *of_label(parent, "ZoneSubRegion_t"),
            ]:
                location = _text(bc, "GridLocation") or "Vertex"
                known = (
                    elements
                    if location != "Vertex"
                    else dict(enumerate(map(tuple, xyz), 1))
                )
                kind = _values(bc), _text(bc, "FamilyName"), location
                groups[name] = kind, sorted(self.place(known[n]) for n in _listed(bc))
        values = {}
        for name, solution in of_label(zone, "FlowSolution_t"):
            if _text(solution, "GridLocation") == "CellCenter":
                top = [e for e in sorted(elements) if len(elements[e]) == 4]
                places = [self.place(elements[e]) for e in top]
            else:
                places = [tuple(p) for p in xyz]
            for key, array in of_label(solution, "DataArray_t"):
                rows = zip(places, array[" data"][()].tolist(), strict=True)
                values[name, key] = str(array[" data"].dtype), dict(rows)
        return sections, groups, values

    def place(self, element):
        return tuple(sorted(element)) if isinstance(element, frozenset) else element

    def rows(self, s):
        values, kind = s["ElementConnectivity/ data"][()].tolist(), int(s[" data"][0])
        if kind != 20:
            n = SIZES[kind]
            yield from (values[i : i + n] for i in range(0, len(values), n))
            return
        i = 0
        while i < len(values):
            n = SIZES[values[i]]
            yield values[i + 1 : i + 1 + n]
            i += 1 + n


def of_label(group, label):
    """The children with this label."""
    return [
        (n, g) for n, g in group.items() if isinstance(g, h5py.Group) and _label(g) == label
    ]


def _label(group):
    return group.attrs["label"].decode() if isinstance(group, h5py.Group) else ""


def _values(group):
    if " data" not in group:
        return None
    data = group[" data"][()]
    return data.tobytes().decode() if data.dtype == np.int8 else data.tolist()


def _text(group, name):
    return _values(group[name]) if name in group else None


def _listed(bc):
    if "PointList" in bc:
        return bc["PointList/ data"][()].ravel().tolist()
    first, last = bc["PointRange/ data"][()].ravel().tolist()
    return range(first, last + 1)
