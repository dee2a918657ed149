"""FreeFem++: Poisson's equation with quadratic elements, by conjugate gradients."""

import re
import tempfile
from pathlib import Path

from client_run import call, main

# FreeFem's reader of Gmsh files knows volumes in text of version 2.2.
SCRIPT = """
load "gmsh"
real t0 = clock();
mesh3 Th = gmshload3("MESH_FILE");
fespace Vh(Th, P2);
Vh u, v;
real t1 = clock();
varf poisson(u, v) = int3d(Th)(dx(u)*dx(v) + dy(u)*dy(v) + dz(u)*dz(v))
                     + int3d(Th)(v) + on(1, 2, 3, u = 0);
matrix A = poisson(Vh, Vh, solver = CG, eps = 1e-20);
real[int] b = poisson(0, Vh);
real t2 = clock();
real[int] y(b.n);
for (int i = 0; i < 10; i++) y = A * b;
real t3 = clock();
u[] = A^-1 * b;
real t4 = clock();
cout.precision(10);
cout << "unknowns: " << Vh.ndof << endl;
cout << "energy: " << int3d(Th)(u) << endl;
cout << "largest: " << u[].max << endl;
cout << "assembly: " << t2 - t1 << endl;
cout << "products: " << t3 - t2 << endl;
cout << "solving: " << t4 - t3 << endl;
"""


def solve(mesh_file, own_order, clock):
    """Zero on the whole border; FreeFem tells its seconds itself."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "poisson.edp"
        script.write_text(SCRIPT.replace("MESH_FILE", str(mesh_file)))
        # Where Debian has what FreeFem loads.
        printed = call(
            "FreeFem++-nw", script, inside=folder, FF_LOADPATH="/usr/lib/freefem++"
        )
    told = dict(re.findall(r"^(\w+): +([\d.e+-]+)$", printed, re.MULTILINE))
    for phase in ("assembly", "products", "solving"):
        clock.seconds[phase] = float(told[phase])
    return {name: float(told[name]) for name in ("unknowns", "energy", "largest")}


if __name__ == "__main__":
    main(solve)
