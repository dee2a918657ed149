"""Splitting: halos beside METIS k-way on the dual graph, seconds, memory, another K from the file.

    python benchmarks/bench_split.py [CELLS] [LARGEST] [STEPS]

Tetrahedra, a body with holes, hexahedra, mixed cells and triangles of about ``CELLS`` cells
(1,000,000) into 8, 64 and 512 parts by each cut: ghosts (foreign cells behind a cut face, counted
once a part) over owned cells, node copies over nodes, the largest part over the mean, and both
ghosts and copies over those of METIS
(bar 1.05, never above 1.10). Then the whole command on 1/10 of ``LARGEST`` (10,000,000) and on
``LARGEST`` tetrahedra into 1,000 parts, each in a process of its own: seconds a cell (linear within
15 %; 5 minutes for the larger one on two cores), the peak of memory (bar 250 bytes a cell and
400 MB), and another K from the file (bar 20 %). ``largest`` does so with ``LARGEST`` alone. Then
1/10 of ``LARGEST`` hexahedra, whose nodes are reached, with coordinates and groups, proof included;
``hexahedra-largest`` takes ``LARGEST`` (31,500,000: bars 10 minutes on two cores and 12 GB). Then
10,000 parts of ``LARGEST`` tetrahedra are computed and not written (bars 15 minutes and 8 GB).
Then 1/10 of ``LARGEST`` by ``--slices`` on 1, 2 and 4 ranks of MPI, by ``refined`` and by ``rcb``:
the largest peak of a rank (bar 250 bytes a cell of its share, and 400 MB), seconds, and that the
files are one; ``slices-largest`` does so with ``LARGEST`` on 2 ranks, by ``refined``. Then what 10
to 10,000 parts of 1/10 of ``CELLS`` and of ``CELLS`` tetrahedra have to exchange, and what that
says of 10^9 cells on 10,000 ranks; ``boxes`` asks the same of tetrahedra of boxes, 1/10 of
``LARGEST`` and ``LARGEST``.

``STEPS`` are some of ``halos,command,largest,hexahedra,hexahedra-largest,many,slices,
slices-largest,forecast,boxes``; all but ``largest``, ``hexahedra-largest``, ``slices-largest`` and
``boxes`` where left out. The peak of ``many`` is that of this
process: ask for it alone. Ranks that wait for each other wait busily: where there are fewer cores
than ranks, or others use them, seconds of processors say how long it took, not how much was done.
"""

import hashlib
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import mesh_file, mesh_of, peak_memory, report, run_on_ranks, run_process, timed
from mesher import mesher_file

from meshprep.distribute.halos.ghosts import (
    all_ghosts,
    executed_ghosts,
    numbers_here,
    owned_runs,
)
from meshprep.distribute.job.split import written_columns
from meshprep.distribute.owners.cuts import CUTS, CutProblem, owners_of_leading_set
from meshprep.distribute.owners.inherit import inherit
from meshprep.distribute.subject import SplitSubject, subject_of_mesh
from meshprep.io import read
from meshprep.loops.request_maps import plan_request_maps
from meshprep.loops.requests import simple_request
from meshprep.mesh import Mesh

PARTS, MANY, MORE = (8, 64, 512), 1000, 900
RANKS, SLICE_CUTS = (1, 2, 4), ("refined", "rcb")
PEER = "metis"
# Parts of the forecast, cells of the smallest, and what it is for.
MANY_PARTS, LEAST_CELLS, FORECAST = (10, 100, 1000, 10_000), 100, (10**9, 10_000)
FITTED = ("halo cells %", "faces again %")
# More points are not handed to Qhull.
MOST_DELAUNAY = 2_000_000
# Hexahedra of a part: 31.5 million in 2,000 parts.
CELLS_EACH = 15_750
# Cells of the mixed mesh in a cube of its grid.
MIXED_CELLS = 2.6


def main(cells: int = 1_000_000, largest: int = 10_000_000, steps: str = "") -> None:
    """Print and save the tables."""
    sizes = (largest // 10, largest)
    every: dict[str, Callable[[], None]] = {
        "halos": lambda: report("split", _all_halos(cells)),
        "command": lambda: report("split-command", [_command(n) for n in sizes]),
        "largest": lambda: report("split-largest", [_command(largest)]),
        "hexahedra": lambda: report("split-hexahedra", [_hexahedra(n) for n in sizes[:1]]),
        "hexahedra-largest": lambda: report("split-hexahedra", [_hexahedra(largest)]),
        "many": lambda: report("split-many", [_many(largest)]),
        "slices": lambda: report("split-slices", _slices(sizes[0], RANKS, SLICE_CUTS)),
        "slices-largest": lambda: report("split-slices-largest", _slices(largest, (2,))),
        "forecast": lambda: _forecast(
            "split-forecast", [_delaunay(cells // 10), _delaunay(cells)]
        ),
        "boxes": lambda: _forecast("split-boxes", [_box(n) for n in sizes]),
    }
    apart = ("largest", "hexahedra-largest", "slices-largest", "boxes")
    usual = [step for step in every if step not in apart]
    for step in steps.split(",") if steps else usual:
        every[step]()


def _all_halos(cells: int) -> list[dict[str, Any]]:
    side, third = round(cells ** (1 / 3)), round((cells / MIXED_CELLS) ** (1 / 3))
    cases = {
        "tetrahedra": mesh_of("delaunay3d", cells),
        "body with holes": read(mesher_file("holes-tetrahedra", cells)),
        "hexahedra": read(mesh_file("box", nx=side, ny=side, nz=side, type="hexahedron")),
        "mixed": read(mesh_file("mixed3d", nx=third, ny=third, nz=third)),
        "triangles": mesh_of("delaunay2d", cells),
    }
    return [row for name, mesh in cases.items() for row in _halos(name, mesh)]


def _halos(name: str, mesh: Mesh) -> list[dict[str, Any]]:
    facets = "edges->cells" if name == "triangles" else "faces->cells"
    loops = [facets] if mesh.sets["cells"].parts else [facets, "cells->nodes"]
    full, specs = plan_request_maps(mesh, [simple_request(loop) for loop in loops])
    subject = subject_of_mesh(mesh, full, specs)
    nodes = _nodes_of_cells(full)
    rows: list[dict[str, Any]] = []
    for parts in PARTS:
        peer: tuple[float, float] | None = None
        for cut in sorted(CUTS, key=lambda c: c != PEER):
            owner = np.empty(0, np.int32)

            def make(cut: str = cut, parts: int = parts) -> None:
                nonlocal owner
                problem = CutProblem(subject, np.full(parts, 1 / parts))
                owner = owners_of_leading_set(problem, cut)

            before = time.process_time()
            seconds = timed(make)
            processor = time.process_time() - before
            found = _ghosts(owner, subject.maps[facets].table), _copies(owner, nodes)
            peer = peer or found
            size = np.bincount(owner, minlength=parts)
            rows.append(
                {
                    "mesh": name,
                    "parts": parts,
                    "cut": cut,
                    "ghosts %": 100 * found[0],
                    "copies %": 100 * found[1],
                    "ghosts / METIS": found[0] / peer[0],
                    "copies / METIS": found[1] / peer[1],
                    "largest / mean": size.max() / size.mean(),
                    "s": seconds,
                    "processor s": processor,
                }
            )
    return rows


def _nodes_of_cells(mesh: Mesh) -> np.ndarray:
    """The nodes of all cells; rows of cells with few nodes name the first one again."""
    tables = [mesh.map(f"{p}->nodes").table for p in mesh.sets["cells"].parts or ("cells",)]
    widest = max(t.shape[1] for t in tables)
    filled = [
        np.hstack([t, np.repeat(t[:, :1], widest - t.shape[1], axis=1)]) for t in tables
    ]
    return np.concatenate(filled)


def _ghosts(owner: np.ndarray, faces: np.ndarray) -> float:
    """Pairs of a part and a foreign cell behind one of its faces, over cells."""
    low, high = faces.T.reshape(-1), faces[:, ::-1].T.reshape(-1)
    cut = owner[low] != owner[high]
    keys = owner[low][cut].astype(np.int64) * owner.size + high[cut]
    return np.unique(keys).size / owner.size


def _copies(owner: np.ndarray, cells: np.ndarray) -> float:
    """Pairs of a part and a node of its cells beyond one a node, over nodes."""
    n = int(cells.max()) + 1
    keys = np.repeat(owner.astype(np.int64), cells.shape[1]) * n + cells.reshape(-1)
    used = np.unique(cells).size
    return (np.unique(keys).size - used) / used


def _tetrahedra(cells: int) -> Path:
    """Shuffled tetrahedra of Delaunay; of a box where Qhull would take hours and all memory."""
    return _delaunay(cells) if cells <= MOST_DELAUNAY else _box(cells)


def _delaunay(cells: int) -> Path:
    return mesh_file("delaunay3d", cells=cells)


def _box(cells: int) -> Path:
    side = round((cells / 6) ** (1 / 3))
    return mesh_file("box", nx=side, ny=side, nz=side, type="tetra", shuffle=True)


def _command(cells: int) -> dict[str, Any]:
    """The program on a mesh of tetrahedra, and once more on what it made."""
    path = _tetrahedra(cells)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "a.parts.h5")
        start = [sys.executable, "-m", "meshprep_cli.main", "split"]
        words = [path, "-q", "--parts", MANY, "--loop", "faces->cells", "-o", output]
        first, peak, processor = _process(*start, *words)
        more, more_peak, more_processor = _process(*start, output, "-q", "--parts", MORE)
        size = output.stat().st_size
    return {
        "cells": cells,
        "parts": MANY,
        "s": first,
        "processor s": processor,
        "us a cell": 1e6 * first / cells,
        "peak MB": peak,
        "bar MB": 250e-6 * cells + 400,
        "another K s": more,
        "its processor s": more_processor,
        "its peak MB": more_peak,
        "another K / first": more / first,
        "file MB": size / 1e6,
    }


def _hexahedra(cells: int) -> dict[str, Any]:
    """The program on hexahedra, of which a loop reaches the nodes: coordinates and groups."""
    side, words = round(cells ** (1 / 3)), ("-q", "--loop", "cells->nodes")
    path, parts = (
        mesh_file("box", nx=side, ny=side, nz=side, type="hexahedron"),
        cells // CELLS_EACH,
    )
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "a.parts.h5")
        start = [sys.executable, "-m", "meshprep_cli.main", "split", path]
        seconds, peak, processor = _process(*start, "--parts", parts, *words, "-o", output)
        size = output.stat().st_size
    return {
        "cells": side**3,
        "parts": parts,
        "s": seconds,
        "processor s": processor,
        "us a cell": 1e6 * processor / side**3,
        "peak MB": peak,
        "bar MB": 380e-6 * cells,
        "file MB": size / 1e6,
        "mesh MB": path.stat().st_size / 1e6,
    }


def _process(*words: object) -> tuple[float, float, float]:
    """Seconds of a command, its peak of memory in MB, and seconds of all processors."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds, peak, _ = run_process(*words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, peak, used


def _many(cells: int) -> dict[str, Any]:
    """Very many parts, found as a split finds them; neither ordered nor cut into blocks."""
    path, begin = _tetrahedra(cells), time.perf_counter()
    row = _of_parts(_subject(read(path)), MANY_PARTS[-1])
    return {"s": time.perf_counter() - begin, "bar s": 900.0, "bar MB": 8000.0} | row


def _slices(
    cells: int, ranks: Sequence[int], cuts: Sequence[str] = SLICE_CUTS[:1]
) -> list[dict[str, Any]]:
    """The program on ranks that hold slices; all make one file of a cut."""
    rows = [_on_ranks(cells, count, cut) for cut in cuts for count in ranks]
    files = {(row["cut"], row.pop("digest")) for row in rows}
    if len(files) > len(cuts):
        raise AssertionError("the file depends on the number of ranks")
    return rows


def _on_ranks(cells: int, ranks: int, cut: str) -> dict[str, Any]:
    path, rank = _tetrahedra(cells), Path(__file__).with_name("one_rank.py")
    with tempfile.TemporaryDirectory() as folder:
        words = (
            path,
            "-q",
            "--parts",
            MANY,
            "--slices",
            "--cut",
            cut,
            "--loop",
            "faces->cells",
        )
        output = Path(folder, "a.parts.h5")
        program = ("-m", "mpi4py", rank, folder, "split")
        seconds, _, _ = run_on_ranks(ranks, *program, *words, "-o", output)
        found = [json.loads(one.read_text()) for one in Path(folder).glob("*.json")]
        with open(output, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "cells": cells,
        "parts": MANY,
        "cut": cut,
        "ranks": ranks,
        "s": seconds,
        "processor s of a rank": max(one["processor s"] for one in found),
        "peak MB of a rank": max(one["peak MB"] for one in found),
        "bar MB": 250e-6 * cells / ranks + 400,
        "digest": digest,
    }


def _forecast(name: str, meshes: Sequence[Path]) -> None:
    """What parts exchange, fitted on the smaller mesh, and compared with the larger one."""
    smaller, larger = (_exchanged(path) for path in meshes)
    rows, rest = smaller + larger, larger[1:]
    say = {what: _fitted(smaller, what) for what in FITTED}
    wrong = {
        what: max(
            abs(say[what](row["cells"], row["parts"]) / row[what] - 1) for row in rest
        )
        for what in FITTED
    }
    say = {what: _fitted(rows, what) for what in FITTED}
    told = {what: say[what](*FORECAST) for what in FITTED}
    report(
        name,
        rows,
        forecast=dict(zip(("cells", "parts"), FORECAST, strict=True)) | told,
        error=wrong,
    )
    for what in FITTED:
        print(
            f"{what}, {FORECAST[0]:.0e} cells, {FORECAST[1]} parts: {told[what]:.2f} "
            f"(error from {smaller[0]['cells']} to {larger[0]['cells']} cells: "
            f"{100 * wrong[what]:.1f} %)"
        )


def _exchanged(path: Path) -> list[dict[str, Any]]:
    """Halos of all parts by METIS, found as a split finds them, without orders and blocks."""
    subject = _subject(read(path))
    most = subject.sizes["cells"] / LEAST_CELLS
    counts = [parts for parts in MANY_PARTS if parts <= 1.01 * most]
    return [_of_parts(subject, parts) for parts in counts]


def _subject(mesh: Mesh) -> SplitSubject:
    return subject_of_mesh(mesh, *plan_request_maps(mesh, [simple_request("faces->cells")]))


def _of_parts(subject: SplitSubject, parts: int) -> dict[str, Any]:
    begin, weights = time.process_time(), np.full(parts, 1 / parts)
    leading = owners_of_leading_set(CutProblem(subject, weights), PEER)
    owners = inherit(subject, leading, weights)
    columns = written_columns(subject, {spec.loop.name: "exec" for spec in subject.specs})
    executed = executed_ghosts(subject, owners, columns, parts)
    runs = owned_runs(subject, owners, parts)
    copies = all_ghosts(subject, runs, executed, numbers_here(runs)).halo["cells"]
    owned, halo = np.diff(runs["cells"].offset), np.diff(copies.rows.offset)
    other = np.searchsorted(runs["cells"].offset, copies.rows.elements, side="right") - 1
    part = np.repeat(np.arange(parts), halo)
    around = np.bincount(
        np.unique(part * np.int64(parts) + other) // parts, minlength=parts
    )
    again = np.diff(executed["faces"].offset)
    return {
        "cells": subject.sizes["cells"],
        "parts": parts,
        "halo cells %": 100 * halo.sum() / owned.sum(),
        "most %": 100 * (halo / owned).max(),
        "faces again %": 100 * again.sum() / subject.sizes["faces"],
        "core faces %": 100 * runs["faces"].core.sum() / subject.sizes["faces"],
        "neighbours": around.mean(),
        "most neighbours": around.max(),
        "largest / mean": owned.max() / owned.mean(),
        "processor s": time.process_time() - begin,
        "peak MB": peak_memory(),
    }


def _fitted(rows: Sequence[dict[str, Any]], what: str) -> Callable[[int, int], float]:
    """A share by cells and parts: a shell of each part, but for what lies on the surface.

    With x = (cells of a part)^(-1/3) it is (c x + e x^2) (1 - parts^(-1/3)).
    """
    n, parts = (np.array([row[key] for row in rows], float) for key in ("cells", "parts"))
    x, inner = (n / parts) ** (-1 / 3), 1 - parts ** (-1 / 3)
    value = np.array([row[what] for row in rows])
    shell = np.stack([x * inner, x**2 * inner], axis=1) / value[:, None]
    c, e = np.linalg.lstsq(shell, np.ones(len(rows)), rcond=None)[0]

    def share(cells: int, parts: int) -> float:
        x = (cells / parts) ** (-1 / 3)
        return float((c * x + e * x**2) * (1 - parts ** (-1 / 3)))

    return share


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:4])
