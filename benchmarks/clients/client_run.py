"""What every driver does: solve on one mesh with one program, print results and seconds.

A driver runs in the environment of its program, apart from meshprep: ``python DRIVER.py MESH``, or
with ``--own-order`` after it, which has the program renumber the mesh by its own means. Its
function ``solve(mesh_file, own_order, clock)`` gives the figures that no order may change.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

OWN_ORDER = "--own-order"
DIGITS = 6


class Clock:
    """Processor seconds of this process and of the programs that it started, phase by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count what is done inside under a name."""
        start = processor_seconds()
        yield
        spent = processor_seconds() - start
        self.seconds[name] = self.seconds.get(name, 0.0) + spent


def processor_seconds() -> float:
    """Seconds that this process and its ended children spent on a processor so far."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def call(*command: object, inside: Path, **environment: str) -> str:
    """What a program prints; an error that shows its last lines where it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=inside,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} failed:\n{done.stdout[-3000:]}")
    return done.stdout


def main(solve: Callable[[Path, bool, Clock], dict[str, float]]) -> None:
    """Print one line of JSON: the figures, as rounded text, and the seconds of each phase."""
    # Programs print what they like; only our line goes to the real output.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    clock = Clock()
    own_order = OWN_ORDER in sys.argv
    start = processor_seconds()
    figures = solve(Path(sys.argv[1]).resolve(), own_order, clock)
    whole_run = processor_seconds() - start
    result = {name: f"{value:.{DIGITS}g}" for name, value in figures.items()}
    seconds = {"whole run": whole_run, **clock.seconds}
    print(json.dumps({"result": result, "seconds": seconds}), file=out, flush=True)
