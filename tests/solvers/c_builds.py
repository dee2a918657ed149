"""How the C examples are built, and the loop that they run."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER, INCLUDE = ROOT / "examples" / "c", ROOT / "include" / "meshprep"
LOOPS = """\
[loop.flux]
over = "edges"
args = [
  { dat = "t", map = "edges->cells", access = "read" },
  { dat = "r", map = "edges->cells", access = "inc" },
]
"""
STRICT = ["-O2", "-Wall", "-Wextra", "-Werror", "-fopenmp", f"-I{INCLUDE}"]
BUILDS = {"C99": ("cc", "c"), "C++11": ("c++", "c++")}
