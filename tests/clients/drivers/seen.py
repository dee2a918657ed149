"""What every driver does: look at files with one program, and print what it sees.

A driver runs in the environment of its program (``make clients``), apart from meshprep, and has one
function ``look(path)``. It gives the points, in the order in which the program hands them out, and
the cells of each type, in that order, as rows of indices of these points, corners first.
"""

import contextlib
import json
import os
import sys

# Corners of each shape, and how programs name it.
CORNERS = {
    "vertex": 1,
    "line": 2,
    "triangle": 3,
    "quad": 4,
    "tetra": 4,
    "pyramid": 5,
    "wedge": 6,
    "hexahedron": 8,
}


def cells_of_blocks(blocks) -> dict:
    """The corners of the cells in blocks of meshio's kind, one block after the other."""
    cells = {}
    for block in blocks:
        shape = block.type.rstrip("0123456789")
        cells.setdefault(shape, []).extend(block.data[:, : CORNERS[shape]].tolist())
    return cells


def main(look) -> None:
    """Print one line of JSON for each file that is named on the command line."""
    # Programs print what they like; only our lines go to the real output.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for path in sys.argv[1:]:
        try:
            with contextlib.redirect_stdout(sys.stderr):
                points, cells = look(path)
            found = {
                "points": [[float(x) for x in point] for point in points],
                "cells": {
                    shape: [[int(node) for node in row] for row in rows]
                    for shape, rows in cells.items()
                    if len(rows)
                },
            }
        except (Exception, SystemExit) as error:
            found = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"file": path, **found}), file=out, flush=True)
