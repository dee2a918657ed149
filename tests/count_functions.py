"""How many Python functions of the project the first ``prepare`` of a process runs.

``python tests/count_functions.py`` plans 500 triangles and prints them by module; ``--all`` names
each. Comprehensions and lambdas, which Python 3.11 calls as functions, are counted apart.
"""

import sys
import threading
from collections import Counter

from meshprep import prepare
from meshprep.io.generate import generate


def functions_of_prepare() -> set[tuple[str, str]]:
    """Module and qualified name of each, in any thread."""
    found: set[tuple[str, str]] = set()

    def note(frame, event, _):
        if event == "call":
            found.add((frame.f_globals.get("__name__", ""), frame.f_code.co_qualname))

    threading.setprofile(note)  # before the first thread starts
    mesh = generate("delaunay2d", cells=500)
    found.clear()
    sys.setprofile(note)
    try:
        prepare(mesh)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {(m, n) for m, n in found if m.startswith("meshprep") and n != "<module>"}


if __name__ == "__main__":
    functions = functions_of_prepare()
    for module, count in Counter(m for m, _ in functions).most_common():
        print(f"{count:4} {module}")
    if "--all" in sys.argv:
        print(*(f"{m}.{n}" for m, n in sorted(functions)), sep="\n")
    inner = sum(name.endswith(">") for _, name in functions)
    modules = len({module for module, _ in functions})
    print(f"{len(functions)} functions of {modules} modules, {inner} of them comprehensions")
