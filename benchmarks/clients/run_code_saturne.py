"""code_saturne: steps of a laminar flow that a moving wall drives."""

import re
import shutil
import tempfile
from pathlib import Path

from client_run import call, main

HERE = Path(__file__).parent
# Where Debian has the programs that `code_saturne run` calls.
PROGRAMS = Path("/usr/lib/code_saturne")


def switch_on_rcm(folder: Path) -> dict[str, str]:
    """The environment in which code_saturne renumbers its cells."""
    library = folder / "rcm.so"
    source = HERE / "code_saturne_rcm.c"
    call("cc", "-shared", "-fPIC", "-o", library, source, inside=folder)
    return {"LD_PRELOAD": str(library)}


def solve(mesh_file, own_order, clock):
    """The wall at x = 1 moves."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(HERE / "code_saturne.xml", folder / "setup.xml")
        environment = {}
        if own_order:
            environment = switch_on_rcm(folder)
        with clock.phase("reading"):
            words = [PROGRAMS / "cs_preprocess", mesh_file, "--out", "mesh_input"]
            call(*words, inside=folder)
        with clock.phase("cs_solver"):
            call(PROGRAMS / "cs_solver", inside=folder, **environment)
        log = (folder / "run_solver.log").read_text()
    # Smallest, largest and mean value of the last step.
    values = r" +([\d.e+-]+) +([\d.e+-]+) +([\d.e+-]+)"
    speed = re.findall(rf"v  \S*Velocity[^\[\s]*{values}", log)[-1]
    upwards = re.findall(rf"v  Velocity\[Y\]{values}", log)[-1]
    return {
        "largest speed": float(speed[1]),
        "mean speed": float(speed[2]),
        "fastest down": float(upwards[0]),
        "fastest up": float(upwards[1]),
    }


if __name__ == "__main__":
    main(solve)
