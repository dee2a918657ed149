"""OpenFOAM cases by a writer and a reader of the tests' own, which know nothing of meshprep's."""

import gzip
import re
from dataclasses import dataclass, field
from itertools import pairwise, product
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Style:
    """How files are written."""

    binary: bool = False
    label: int = 32
    scalar: int = 64
    gz: bool = False


STYLES = {
    "text": Style(),
    "binary": Style(binary=True),
    "binary 64": Style(binary=True, label=64),
    "binary single": Style(binary=True, scalar=32),
    "packed text": Style(gz=True),
    "packed binary": Style(binary=True, label=64, gz=True),
}


@dataclass
class Poly:
    """A polyhedral mesh as plain lists; patches are names with types and numbers of faces."""

    points: np.ndarray
    faces: list
    owner: list
    neighbour: list
    patches: list = field(default_factory=list)

    @property
    def n_cells(self):
        return max([*self.owner, *self.neighbour]) + 1


def boxes(nx, ny, nz):
    """Hexahedra in a box: the patches are ``inlet`` (x = 0) and ``walls``."""

    def point(i, j, k):
        return i + (nx + 1) * (j + (ny + 1) * k)

    def cell(i, j, k):
        return i + nx * (j + ny * k)

    grid = product(range(nz + 1), range(ny + 1), range(nx + 1))
    points = np.array([(i, j, k) for k, j, i in grid], float)
    inner, outer = [], {"inlet": [], "walls": []}
    steps = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    around = [
        [(1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 0, 1)],
        [(0, 1, 0), (0, 1, 1), (1, 1, 1), (1, 1, 0)],
        [(0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)],
    ]
    for k, j, i in product(range(nz), range(ny), range(nx)):
        for axis, (a, b, c) in enumerate(steps):
            face = [point(i + x, j + y, k + z) for x, y, z in around[axis]]
            ahead = (i + a, j + b, k + c)
            if ahead[axis] < (nx, ny, nz)[axis]:
                inner.append((cell(i, j, k), cell(*ahead), face))
            else:
                outer["walls"].append((cell(i, j, k), face))
            if (i, j, k)[axis] == 0:
                face = [point(i + x - a, j + y - b, k + z - c) for x, y, z in around[axis]]
                outer["walls" if axis else "inlet"].append((cell(i, j, k), face[::-1]))
    inner.sort(key=lambda f: f[:2])
    every = [*outer["inlet"], *outer["walls"]]
    patches = [
        ("inlet", "patch", len(outer["inlet"])),
        ("walls", "wall", len(outer["walls"])),
    ]
    faces = [f for *_, f in inner] + [f for _, f in every]
    owner = [o for o, *_ in inner] + [o for o, _ in every]
    return Poly(points, faces, owner, [n for _, n, _ in inner], patches)


def merged(poly, group):
    """The cells of a group as one: polyhedra of any number of faces."""
    number = {g: n for n, g in enumerate(dict.fromkeys(group))}
    new = [number[g] for g in group]
    kept = []
    n = len(poly.neighbour)
    for f in range(n):
        a, b = new[poly.owner[f]], new[poly.neighbour[f]]
        if a != b:
            face = poly.faces[f]
            kept.append((a, b, face) if a < b else (b, a, [face[0], *face[:0:-1]]))
    kept.sort(key=lambda one: one[:2])
    faces = [one[2] for one in kept] + poly.faces[n:]
    owner = [one[0] for one in kept] + [new[o] for o in poly.owner[n:]]
    return Poly(poly.points, faces, owner, [one[1] for one in kept], poly.patches)


def header(kind, name, style, place="constant/polyMesh"):
    arch = f'    arch        "LSB;label={style.label};scalar={style.scalar}";\n'
    return (
        "/*----*- C++ -*----*\\\n| of a test |\n\\*---*/\nFoamFile\n{\n    version     2.0;\n"
        f"    format      {'binary' if style.binary else 'ascii'};\n    class       {kind};\n"
        f'{arch}    location    "{place}";\n    object      {name};\n}}\n// * * * //\n\n'
    ).encode()


def listed(values, style, of="label"):
    """A list: of whole numbers, of floating numbers, or of rows of these."""
    values = np.asarray(values)
    if style.binary:
        letter = {"label": f"<i{style.label // 8}", "scalar": f"<f{style.scalar // 8}"}
        kind = letter.get(of, "u1")
        if not len(values):
            return b"0\n"
        return b"%d\n(" % len(values) + values.astype(kind).tobytes() + b")"
    if values.ndim == 1:
        rows = [str(v) for v in values.tolist()]
    else:
        rows = ["(" + " ".join(map(repr, row)) + ")" for row in values.tolist()]
    return ("\n".join([f"\n{len(values)}", "(", *rows, ")"])).encode()


def put(path, data, style):
    path.parent.mkdir(parents=True, exist_ok=True)
    if style.gz:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(data))
    else:
        path.write_bytes(data)


def write_mesh(poly, case, style):
    folder = Path(case) / "constant" / "polyMesh"
    end = b"\n\n\n// **** //\n"
    points = header("vectorField", "points", style) + listed(poly.points, style, "scalar")
    put(folder / "points", points + end, style)
    if style.binary:
        offset = np.cumsum([0, *map(len, poly.faces)])
        flat = [p for face in poly.faces for p in face]
        text = header("faceCompactList", "faces", style) + listed(offset, style) + b"\n\n"
        put(folder / "faces", text + listed(flat, style) + end, style)
    else:
        rows = [f"{len(f)}({' '.join(map(str, f))})" for f in poly.faces]
        text = "\n".join([str(len(rows)), "(", *rows, ")"])
        put(
            folder / "faces",
            header("faceList", "faces", style) + text.encode() + end,
            style,
        )
    for name in ("owner", "neighbour"):
        text = header("labelList", name, style) + listed(getattr(poly, name), style)
        put(folder / name, text + end, style)
    start, rows = len(poly.neighbour), []
    for name, kind, size in poly.patches:
        rows.append(
            f"    {name}\n    {{\n        type     {kind};\n        inGroups 1({kind});\n"
            f"        nFaces   {size};\n        startFace {start};\n    }}\n"
        )
        start += size
    text = f"{len(rows)}\n(\n{''.join(rows)})\n"
    plain = Style(gz=style.gz)
    put(
        folder / "boundary",
        header("polyBoundaryMesh", "boundary", plain) + text.encode(),
        style,
    )


def write_field(case, name, kind, values, style, oriented=False, time="0", patches=""):
    scalars = np.asarray(values)
    of = "scalar" if scalars.ndim == 1 else "vector"
    text = b"dimensions      [0 0 0 0 0 0 0];\n" + b"oriented oriented;\n" * oriented
    text += f"internalField   nonuniform List<{of}> ".encode() + listed(
        values, style, "scalar"
    )
    text += f";\n\nboundaryField\n{{\n{patches}}}\n\n// **** //\n".encode()
    put(Path(case) / time / name, header(kind, name, style, time) + text, style)


def write_everything(poly, case, style, seed=0):
    """A mesh with fields, zones and sets that tell where each cell, face and point went."""
    write_mesh(poly, case, style)
    n, inner = poly.n_cells, len(poly.neighbour)
    write_field(case, "id", "volScalarField", np.arange(n) + 0.5, style)
    write_field(
        case, "three", "volVectorField", np.arange(3.0 * n).reshape(n, 3) - 7, style
    )
    write_field(
        case, "phi", "surfaceScalarField", np.arange(inner) + 1.0, style, oriented=True
    )
    write_field(case, "flat", "surfaceScalarField", np.arange(inner) + 1.0, style)
    write_field(case, "place", "pointVectorField", poly.points, style)
    chance = np.random.default_rng(seed)
    folder = Path(case) / "constant" / "polyMesh"
    sizes = {"cell": n, "face": len(poly.faces), "point": len(poly.points)}
    chosen = {k: np.flatnonzero(chance.random(size) < 0.4) for k, size in sizes.items()}
    for kind, values in chosen.items():
        text = (
            f"1\n(\nsome\n{{\n    type {kind}Zone;\n{kind}Labels      List<label> ".encode()
        )
        text += listed(values, style) + b";\n"
        if kind == "face":
            flips = chance.integers(2, size=len(values))
            text += b"flipMap         List<bool> " + listed(flips, style, "bool") + b";\n"
        head = header("regIOobject", f"{kind}Zones", style)
        put(folder / f"{kind}Zones", head + text + b"}\n)\n", style)
        # the elements of hashed sets are text in binary files, too
        text = header(f"{kind}Set", "some", style) + listed(values, Style())
        put(folder / "sets" / f"some{kind}", text, style)
        levels = header("labelList", f"{kind}Level", style) + listed(
            np.arange(sizes[kind]), style
        )
        if kind != "face":
            put(folder / f"{kind}Level", levels, style)
    flips = dict(zip(chosen["face"].tolist(), flips.tolist(), strict=True))
    return {kind: set(values.tolist()) for kind, values in chosen.items()}, flips


def content(path):
    """Class, format and body of a file, packed or not."""
    path = Path(path)
    packed = path.with_name(path.name + ".gz")
    data = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    end = data.index(b"}", data.index(b"FoamFile"))
    head = dict(re.findall(r"(\w+)\s+\"?([^;\"]+)", data[:end].decode()))
    head["label"] = 8 if b"label=64" in data[:end] else 4
    head["scalar"] = 4 if b"scalar=32" in data[:end] else 8
    rule = data.find(b"// *", end)
    return head, data[data.index(b"\n", max(rule, end)) :]


def values_after(path, key, of="label", width=1, text=False):
    """The numbers of the list behind a word, or of the first list of a file."""
    head, body = content(path)
    at = body.index(key.encode()) + len(key) if key else 0
    found = re.compile(rb"\s*(?:nonuniform )?(?:List<\w+>)?\s*(\d+)\s*\(?").match(body, at)
    n, at = int(found[1]), found.end()
    if n == 0:
        assert (b"(" in found[0]) != (head["format"] == "binary" and not text)
        return np.empty((0, width) if width > 1 else 0, int)
    if head["format"] == "binary" and not text:
        kind = {
            "label": f"<i{head['label']}",
            "scalar": f"<f{head['scalar']}",
            "bool": "u1",
        }[of]
        rows = np.frombuffer(body, kind, n * width, at)
        assert body[at + rows.nbytes : at + rows.nbytes + 1] == b")"
    else:
        end = body.index(b"\n)", at) if n else at
        words = body[at:end].translate(bytes.maketrans(b"()", b"  ")).split()
        rows = np.array([float(w) for w in words])
        assert rows.size == n * width
    rows = rows if of == "scalar" else rows.astype(int)
    return rows.reshape(n, width) if width > 1 else rows


def read_mesh(case):
    folder = Path(case) / "constant" / "polyMesh"
    head, body = content(folder / "faces")
    if head["class"] == "faceCompactList":
        offset = values_after(folder / "faces", "").tolist()
        at = body.index(b")", len(offset) * head["label"]) + 1
        found = re.compile(rb"\s*(\d+)\s*\(").match(body, at)
        flat = np.frombuffer(
            body, f"<i{head['label']}", int(found[1]), found.end()
        ).tolist()
        faces = [flat[a:b] for a, b in pairwise(offset)]
    else:
        rows = re.findall(rb"\n(\d+)\(([\d ]*)\)", body)
        faces = [[int(p) for p in row.split()] for _, row in rows]
        assert [len(f) for f in faces] == [int(n) for n, _ in rows]
    owner, neighbour = (
        values_after(folder / n, "").tolist() for n in ("owner", "neighbour")
    )
    return Poly(values_after(folder / "points", "", "scalar", 3), faces, owner, neighbour)
