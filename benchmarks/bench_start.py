"""Start-up: ``meshprep --help``, the runtime's import, and that a second run compiles nothing.

Bars: help under 0.4 s; a second run adds no file to numba's cache.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from common import best, mesh_file, program, report, run_process


def main() -> None:
    """Print and save the table."""
    python = sys.executable
    peer = best(lambda: run_process(python, "-c", "import numpy"), 7)
    rows = []
    for name, words in (
        ("python -c 'import numpy'", (python, "-c", "import numpy")),
        ("meshprep --help", (program(), "--help")),
        ("import meshprep_runtime", (python, "-c", "import meshprep_runtime")),
    ):
        seconds = best(lambda words=words: run_process(*words), 7)
        rows.append({"what": name, "seconds": seconds, "against import numpy": seconds / peer})
    report("start", [*rows, _second_run(peer)])


def _second_run(peer: float) -> dict[str, object]:
    """Reorder a small mesh twice with a cache folder of its own."""
    mesh = mesh_file("delaunay2d", cells=2000)
    with tempfile.TemporaryDirectory() as folder:
        env = {"NUMBA_CACHE_DIR": str(Path(folder) / "numba")}
        words = (program(), "reorder", mesh, "-q", "--force", "-o", Path(folder) / "a.msh")
        words += ("--plan", Path(folder) / "a.plan.h5")
        run_process(*words, env=env)
        first = _files(folder)
        seconds, _, _ = run_process(*words, env=env)
        added = len(_files(folder) - first)
    return {
        "what": f"second reorder ({added} kernels compiled)",
        "seconds": seconds,
        "against import numpy": seconds / peer,
    }


def _files(folder: str) -> set[tuple[str, int]]:
    return {(str(p), p.stat().st_mtime_ns) for p in Path(folder, "numba").rglob("*.nbc")}


if __name__ == "__main__":
    main()
