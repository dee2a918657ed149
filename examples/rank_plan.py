"""The plan of one rank of a solver that has parts and halos of its own: docs/solvers/mpi.md"""

import meshprep


def rank_plan(sides, owned, cells):  # sides (n, 2): local cells of edges, owned ones first
    inside = (sides < owned).all(axis=1)
    sets = {
        "owned": owned,
        "copies": cells - owned,
        "cells": meshprep.ElementSet("cells", cells, parts=("owned", "copies")),
        "core": inside.sum(),
        "border": (~inside).sum(),
    }
    maps = {"core->cells": sides[inside], "border->cells": sides[~inside]}
    return meshprep.prepare(meshprep.Mesh(sets, maps), list(maps)).plan
