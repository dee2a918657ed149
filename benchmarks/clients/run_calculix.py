"""CalculiX: a linear elastic body that is pulled, by the direct solver that it takes by default."""

import re
import tempfile
from pathlib import Path

from client_run import call, main

STEP = """*NSET, NSET=HELD
{held}
*NSET, NSET=PULLED
{pulled}
*MATERIAL, NAME=STEEL
*ELASTIC
210000, 0.3
*SOLID SECTION, ELSET=SOLID, MATERIAL=STEEL
*BOUNDARY
HELD, 1, 3, 0
PULLED, 1, 1, 0.001
*STEP
*STATIC
*NODE PRINT, NSET=HELD, TOTALS=ONLY
RF
*EL PRINT, ELSET=SOLID, TOTALS=ONLY
ELSE
*END STEP
"""


def without_triangles(text: str) -> str:
    """The blocks of the file but for the triangles of the border, which would be shells."""
    blocks = re.split(r"^(?=\*)", text, flags=re.MULTILINE)
    solid = [block for block in blocks if "TYPE=S3" not in block]
    return "".join(solid).replace("TYPE=C3D4", "TYPE=C3D4, ELSET=SOLID")


def nodes_where_x_is(wanted: float, text: str) -> str:
    """The numbers of nodes on a side, one a line."""
    nodes = text[text.index("*NODE") : text.index("*ELEMENT")].splitlines()[1:]
    numbers = []
    for line in nodes:
        number, x = line.split(",")[:2]
        if abs(float(x) - wanted) < 1e-6:
            numbers.append(number)
    return ",\n".join(numbers)


def solve(mesh_file, own_order, clock):
    """Held at x = 0, pulled at x = 1."""
    text = mesh_file.read_text()
    held = nodes_where_x_is(0.0, text)
    pulled = nodes_where_x_is(1.0, text)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        step = STEP.format(held=held, pulled=pulled)
        (folder / "pull.inp").write_text(without_triangles(text) + step)
        with clock.phase("ccx"):
            call("ccx", "pull", inside=folder)
        printed = (folder / "pull.dat").read_text()
    force = re.findall(r"total force.*\n\n +([-\d.E+]+)", printed)
    energy = re.findall(r"total internal energy.*\n\n +([-\d.E+]+)", printed)
    return {"force": float(force[0]), "energy": float(energy[0])}


if __name__ == "__main__":
    main(solve)
