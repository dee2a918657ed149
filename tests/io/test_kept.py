"""Files of other programs, reordered: every name, tag and value is at the place where it was.

Each file is made and read here without meshprep, and what it holds is told by places in space.
"""

from pathlib import Path

import cgns_files
import netCDF4
import numpy as np
import pytest
from test_cgns import TETS, XYZ, tree

from meshprep import io
from meshprep_cli.main import main

pytestmark = pytest.mark.usefixtures("read_here")

LEFT = [[1, 2, 4], [1, 4, 3]]
RIGHT = [[9, 12, 10], [9, 11, 12]]


def places(rows, points):
    return sorted(sorted(points[n] for n in row) for row in rows)


def write_cgns(path):
    cgns_files.save(path, tree())


def cgns(path):
    seen = cgns_files.Seen(path)
    return seen.families, seen.zones


def write_su2(path):
    cells = "".join(f"10 {' '.join(str(n - 1) for n in t)}\n" for t in TETS)
    nodes = "".join(f"{x} {y} {z}\n" for x, y, z in XYZ.tolist())
    markers = ""
    for name, rows in (("the inlet", LEFT), ("Out-2", RIGHT)):
        lines = "".join(f"5 {' '.join(str(n - 1) for n in row)}\n" for row in rows)
        markers += f"MARKER_TAG= {name}\nMARKER_ELEMS= {len(rows)}\n{lines}"
    path.write_text(f"NDIME= 3\nNELEM= 12\n{cells}NPOIN= 12\n{nodes}NMARK= 2\n{markers}")


def su2(path):
    points, cells, markers, rows = {}, [], {}, None
    for line in path.read_text().splitlines():
        key, equals, value = (w.strip() for w in line.partition("="))
        if equals:
            rows = {"NPOIN": points, "NELEM": cells, "MARKER_TAG": None}.get(key, rows)
            if key == "MARKER_TAG":
                rows = markers.setdefault(value, [])
        elif rows is points:
            points[len(points)] = tuple(map(float, line.split()[:3]))
        else:
            kind, *nodes = map(int, line.split())
            rows.append(nodes[: {10: 4, 5: 3}[kind]])
    return places(cells, points), {name: places(m, points) for name, m in markers.items()}


def write_abaqus(path):
    nodes = "".join(
        f"{10 * i}, {x}, {y}, {z}\n" for i, (x, y, z) in enumerate(XYZ.tolist(), 1)
    )
    cells = "".join(
        f"{i + 100}, {', '.join(str(10 * n) for n in t)}\n" for i, t in enumerate(TETS)
    )
    path.write_text(
        f"*HEADING\na model\n*NODE, NSET=Nall\n{nodes}*ELEMENT, TYPE=C3D4, ELSET=Body\n{cells}"
        "*ELSET, ELSET=first, GENERATE\n100, 105, 1\n*NSET, NSET=Fix\n10, 20,\n30, 40\n"
        "*MATERIAL, NAME=Steel 1\n*ELASTIC\n 2.1e5, .3\n*SOLID SECTION, ELSET=Body, MATERIAL=S\n"
        "*BOUNDARY\nFix, 1, 3\n 50, 2\n*STEP\n*STATIC\n*CLOAD\n120, 3, -1.5\n*DLOAD\n111, P3, 4.\n"
        "** the end\n*END STEP\n"
    )


def abaqus(path):
    """Sets and loads by place; each other line as it is."""
    points, cells, sets, loads, rest = {}, {}, {}, [], []
    rows = []
    for line in path.read_text().splitlines():
        if line.startswith("*") and not line.startswith("**"):
            keyword, *options = line.upper().split(",")
            rows, words = rest, dict(o.strip().split("=") for o in options if "=" in o)
            rows = {
                "*NODE": points,
                "*ELEMENT": cells,
                "*CLOAD": loads,
                "*DLOAD": loads,
            }.get(keyword, rest)
            rows = loads if keyword == "*BOUNDARY" else rows
            for kind in ("NSET", "ELSET"):
                if kind in words and keyword in ("*NODE", "*ELEMENT", f"*{kind}"):
                    named = sets.setdefault((kind, words[kind]), [])
                    rows = named if keyword == f"*{kind}" else rows
                    if keyword != f"*{kind}":
                        named.append(rows)
            generate = "GENERATE" in line
            if keyword not in ("*NODE", "*ELEMENT", "*NSET", "*ELSET"):
                rest.append(line)
            continue
        words = [w.strip() for w in line.split(",") if w.strip()]
        if rows is points:
            points[int(words[0])] = tuple(map(float, words[1:]))
        elif rows is cells:
            cells[int(words[0])] = [int(w) for w in words[1:]]
        elif rows is rest:
            rest.append(line)
        elif rows is loads:
            loads.append((rest[-1], words))
        else:
            first, *more = map(int, words)
            rows += range(first, more[0] + 1) if generate else [first, *more]
    by_place = {c: tuple(sorted(points[n] for n in nodes)) for c, nodes in cells.items()}
    members = {
        (kind, name): sorted(
            (points if kind == "NSET" else by_place)[n]
            for one in found
            for n in (one if isinstance(one, dict) else [one])
        )
        for (kind, name), found in sets.items()
    }
    known = {"*BOUNDARY": points, "*CLOAD": points, "*DLOAD": by_place}
    at = [(k, known[k][int(w)] if w.isdigit() else w, *more) for k, (w, *more) in loads]
    return sorted(by_place.values()), members, at, rest


def write_exodus(path):
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        sizes = {
            "len_name": 33,
            "num_dim": 3,
            "num_nodes": 12,
            "num_elem": 12,
            "num_el_blk": 1,
        }
        sizes |= {
            "num_el_in_blk1": 12,
            "num_nod_per_el1": 4,
            "num_nod_var": 1,
            "num_elem_var": 1,
        }
        sizes |= {
            "num_side_sets": 2,
            "num_side_ss1": 2,
            "num_side_ss2": 3,
            "num_node_sets": 1,
        }
        sizes |= {"num_nod_ns1": 3, "time_step": None}
        for name, size in sizes.items():
            file.createDimension(name, size)

        def put(name, kind, dims, values):
            made = file.createVariable(name, kind, dims)
            if "time_step" in dims:
                made[: len(values)] = values
            else:
                made[:] = values
            return made

        def names(name, dim, words):
            letters = [[w.ljust(33, "\0")[i] for i in range(33)] for w in words]
            put(name, "S1", (dim, "len_name"), np.array(letters, "S1"))

        put("time_whole", "f8", ("time_step",), [0.25, 0.5])
        for axis, values in zip("xyz", XYZ.T, strict=True):
            put(f"coord{axis}", "f8", ("num_nodes",), values)
        put("eb_prop1", "i4", ("num_el_blk",), [7])
        names("eb_names", "num_el_blk", ["the fluid"])
        put(
            "connect1", "i4", ("num_el_in_blk1", "num_nod_per_el1"), TETS
        ).elem_type = "TETRA"
        put("ns_prop1", "i4", ("num_node_sets",), [30])
        names("ns_names", "num_node_sets", ["held"])
        put("node_ns1", "i4", ("num_nod_ns1",), [5, 1, 9])
        put("ss_prop1", "i4", ("num_side_sets",), [4, 2])
        names("ss_names", "num_side_sets", ["inlet", ""])
        for i, sides in enumerate(([(1, 4), (12, 2)], [(3, 1), (2, 2), (3, 3)]), 1):
            put(f"elem_ss{i}", "i4", (f"num_side_ss{i}",), [e for e, _ in sides])
            put(f"side_ss{i}", "i4", (f"num_side_ss{i}",), [s for _, s in sides])
        names("name_nod_var", "num_nod_var", ["T"])
        put(
            "vals_nod_var1",
            "f8",
            ("time_step", "num_nodes"),
            np.arange(24.0).reshape(2, 12),
        )
        names("name_elem_var", "num_elem_var", ["rho"])
        put(
            "vals_elem_var1eb1",
            "f8",
            ("time_step", "num_el_in_blk1"),
            np.arange(24.0).reshape(2, 12),
        )


def exodus(path):
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        xyz = [
            tuple(p) for p in np.transpose([file[f"coord{a}"][:] for a in "xyz"]).tolist()
        ]
        cells = [
            tuple(sorted(xyz[n - 1] for n in row)) for row in file["connect1"][:].tolist()
        ]

        def names(key):
            return [b"".join(row).decode().strip("\0 ") for row in file[key][:]]

        sides = {
            (number, name): [
                (cells[e - 1], side)
                for e, side in zip(
                    file[f"elem_ss{i}"][:], file[f"side_ss{i}"][:], strict=True
                )
            ]
            for i, (number, name) in enumerate(
                zip(file["ss_prop1"][:].tolist(), names("ss_names"), strict=True), 1
            )
        }
        values = {}
        for key, of, at in (
            ("nod_var1", "name_nod_var", xyz),
            ("elem_var1eb1", "name_elem_var", cells),
        ):
            for step, row in enumerate(file[f"vals_{key}"][:].tolist()):
                values[names(of)[0], step] = dict(zip(at, row, strict=True))
        held = [xyz[n - 1] for n in file["node_ns1"][:]], file["ns_prop1"][:].tolist()
        block = (
            file["eb_prop1"][:].tolist(),
            names("eb_names"),
            file["connect1"].elem_type[:5],
        )
        return (
            sorted(cells),
            sides,
            values,
            held,
            names("ns_names"),
            block,
            file["time_whole"][:].tolist(),
        )


@pytest.mark.parametrize(
    ("name", "write", "seen"),
    [
        ("a.cgns", write_cgns, cgns),
        ("a.su2", write_su2, su2),
        ("a.inp", write_abaqus, abaqus),
        ("a.e", write_exodus, exodus),
    ],
)
def test_every_name_tag_and_value_is_where_it_was(name, write, seen, tmp_path):
    old, new = tmp_path / name, tmp_path / Path(name).with_stem("b")
    write(old)
    assert (
        main(["reorder", str(old), "-o", str(new), "-q", "--no-ids", "--method", "hilbert"])
        == 0
    )
    assert seen(new) == seen(old)
    assert (io.read(new).coordinates != io.read(old).coordinates).any()
