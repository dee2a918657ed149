"""Three forms of integration on one core: the Laplacian on quads of degree 1 to 4 [R14 4.4.1].

    python benchmarks/bench_forms.py [DOFS]

The text is that of GPUs (``examples/quads.py``), built by g++ for this processor. Every degree has
equally many dofs, so few that the matrices of elements, which are not added up, stay in caches.
Registers are those of a thread on a GPU, compiled without one.
"""

import ctypes
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from common import best, report

from meshprep.io.generate import generate
from meshprep.loops.requests import LoopRequest
from meshprep.pipeline.steps import Options, prepare
from meshprep_runtime.cuda import program
from meshprep_runtime.cuda.build import compile_program
from quads import FORMS, laplacian

FLAGS = ("-O3", "-march=native", "-shared", "-fPIC", "-Wno-unknown-pragmas")
RUNS = 120
HARNESS = """\
#define __device__
#define __forceinline__ inline
{text}
extern "C" void run(long elements, const double* x, double* K) {{
  for (long e = 0; e < elements; ++e) {{
    double* own = K + e * N * N;
    for (int k = 0; k < N * N; ++k) own[k] = 0;
    laplacian(x + 8 * e, x + 8 * e + 2, x + 8 * e + 4, x + 8 * e + 6, own);
  }}
}}
"""


def main(dofs: int = 1200) -> None:
    """Print and save the table."""
    rows = []
    for degree in (1, 2, 3, 4):
        elements, row = dofs // degree**2, {"degree": degree}
        made = {form: _ran(degree, form, elements) for form in FORMS}
        (first, *others) = (matrices for _, matrices in made.values())
        if not all(np.allclose(first, other, rtol=0, atol=1e-12) for other in others):
            sys.exit(f"error: forms of degree {degree} differ")
        row |= {f"{form}, ns": 1e9 * s / elements for form, (s, _) in made.items()}
        row |= {f"{form}, registers": _registers(degree, form) for form in FORMS}
        rows.append(row)
    report("forms", rows, dofs=dofs)


def _ran(degree: int, form: str, elements: int) -> tuple[float, np.ndarray]:
    """Seconds of all elements, and the matrices of the first ones."""
    rng = np.random.default_rng(0)
    corners = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    x = corners + rng.uniform(-0.2, 0.2, (elements, 4, 2))
    found = np.zeros((elements, (degree + 1) ** 4))
    library = _built(HARNESS.format(text=laplacian(degree, form).text))
    given = (ctypes.c_long(elements), *(ctypes.c_void_p(a.ctypes.data) for a in (x, found)))
    return best(lambda: library.run(*given), RUNS), found[:20]


def _built(text: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "forms.cpp", Path(folder) / "forms.so"
        source.write_text(text)
        subprocess.run(["g++", *FLAGS, "-o", str(library), str(source)], check=True)
        # It stays loaded when its file is gone.
        return ctypes.CDLL(str(library))


def _registers(degree: int, form: str) -> str:
    """Of a thread on sm_90; bytes spilled."""
    args = [
        {"dat": "x", "map": "cells->nodes", "dim": 2},
        {"mat": "K", "rows": f"cells->dofs{degree}", "columns": f"cells->dofs{degree}"},
    ]
    args[1]["access"] = "inc"
    mesh = generate("box", nx=4, ny=3, nz=0, type="quad")
    request = LoopRequest("laplacian", {"over": "cells", "args": args}, "bench")
    plan = prepare(mesh, [request], Options(block_size=32)).plan["laplacian"]
    code = compile_program(
        program(laplacian(degree, form), plan, "global-atomics"), "sm_90"
    )
    return f"{code.registers}; {code.spilled}"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
