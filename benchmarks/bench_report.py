"""Seconds, memory and size of reports: the text, the page, the picture, the ParaView file.

Bars: the text of a plan of 5.76 million elements in 3 s, a picture of a million cells in 10 s, a
page under 5 MB.
Every run is a process of its own, the second of two, so that kernels are compiled and files cached.
"""

import tempfile
from pathlib import Path
from typing import Any

from common import mesh_file, program, report, run_process

BARS = {
    ("box", "text"): 3.0,
    ("delaunay2d", "picture"): 10.0,
    ("delaunay3d", "picture"): 10.0,
}


def main() -> None:
    """Print and save the table."""
    cases = [
        (mesh_file("box", nx=2400, ny=1200, type="quad"), "edges->cells", 448),
        (mesh_file("delaunay2d", cells=1_000_000), "cells->nodes", 256),
        (mesh_file("delaunay3d", cells=1_000_000), "faces->cells", 256),
    ]
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for mesh, loop, size in cases:
            rows += _rows(mesh, loop, size, Path(folder))
    report("report", rows)


def _rows(mesh: Path, loop: str, size: int, folder: Path) -> list[dict[str, Any]]:
    plan, new = folder / f"{mesh.stem}.plan.h5", folder / f"{mesh.stem}-new.msh"
    words = ["--loop", loop, "--block-size", size, "--plan", plan, "-o", new, "-q"]
    run_process(program(), "reorder", mesh, *words)
    what = {
        "text": (),
        "page": ("--mesh", mesh, "--html", folder / "a.html"),
        "page, mesh reordered": ("--mesh", new, "--html", folder / "b.html"),
        "picture": ("--mesh", mesh, "--picture", folder / "a.png"),
        "ParaView file": ("--mesh", mesh, "--vtu", folder / "a.vtu"),
    }
    return [
        {"mesh": mesh.stem, "loop": loop, "report": name}
        | _run(plan, given)
        | {"bar s": BARS.get((mesh.stem.partition("-")[0], name))}
        for name, given in what.items()
    ]


def _run(plan: Path, given: tuple[object, ...]) -> dict[str, Any]:
    words = [program(), "report", plan, "-q", "--force", *given]
    run_process(*words)
    seconds, peak, _ = run_process(*words)
    size = Path(str(given[-1])).stat().st_size / 1e6 if given else None
    return {"seconds": seconds, "peak MB": peak, "MB": size}


if __name__ == "__main__":
    main()
