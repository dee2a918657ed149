"""Run by mpiexec on four ranks: programs on two, three and four of them, each beside one rank."""

import importlib.util
import json
import pickle
import sys
from pathlib import Path

import numpy as np
import poisson_on_ranks
from integer_loops import LOOPS
from mpi4py import MPI
from rank_programs import (
    PROGRAM,
    extremes_on,
    on_one_rank,
    random_mesh,
    run_part,
    start_values,
)
from slow_parts import World

from airfoil import Airfoil
from meshprep.io import read
from meshprep_runtime import DistributedError, DistributedPlan
from meshprep_runtime.program import classes
from meshprep_runtime.program.mpi import end_all_on_errors


def slow_variant():
    """The builder in the conftest of this folder's parent."""
    path = Path(__file__).parents[1] / "conftest.py"
    spec = importlib.util.spec_from_file_location("runtime_conftest", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["runtime_conftest"] = module
    spec.loader.exec_module(module)
    return module.slow_variant


def integers(comm, variant):
    """True where integer loops give the bits of one rank."""
    rng = np.random.default_rng(comm.size)
    sizes, tables = random_mesh(rng, 20)
    values = start_values(rng, sizes)
    owner = {s: rng.integers(0, comm.size, n) for s, n in sizes.items()}
    world = World(
        sizes, tables, list(LOOPS.values()), owner, comm.size, {"spread": "reverse"}
    )
    parts = [world.part(p, variant) for p in range(comm.size)]
    fetched, reduced, _ = run_part(parts, values, PROGRAM, "sequential", comm)
    expected, sums = on_one_rank(sizes, tables, values, PROGRAM)
    ours = {n: v.tolist() for n, v in fetched.items()} if comm.rank == 0 else expected
    return ours == expected and reduced == sums


def flow(comm, path):
    """Residuals, and the dat exchanges of the loop over edges."""
    plan = DistributedPlan.load(path, comm)
    flow = Airfoil.on_ranks(plan, "sequential")
    rms = [f"{r:.5e}" for r in flow.steps(4)]
    fields = Path(f"fields-{comm.size}.h5").absolute()
    q = flow._given["update"]["q"]
    plan.write_fields(fields, {"q": q})
    again = plan.dat("cells", 4)
    plan.read_fields(fields, {"q": again})
    same = bool((again.values() == q.values()).all())
    return rms, flow.loops["res_calc"].times.dats_exchanged, same


def refusal(comm, path):
    try:
        DistributedPlan.load(path, comm)
    except DistributedError as error:
        return str(error)
    return "fine"


def poisson(comm, path, x, alone):
    """By what becomes of fixed nodes: whether every rank has the rows and solution of one rank."""
    plan = DistributedPlan.load(path, comm)
    found = {form: poisson_on_ranks.on_part(plan, x, form) for form in alone}
    same = {f: poisson_on_ranks.is_as_alone(one, alone[f]) for f, one in found.items()}
    return {form: all(comm.allgather(same[form])) for form in alone}


def main(parts, square, square_parts):
    classes.LEAST_ELEMENTS = 16
    world = MPI.COMM_WORLD
    # A rank that fails before it loads a plan ends the others, too.
    end_all_on_errors(world)
    variant = slow_variant()
    x = poisson_on_ranks.places(read(square))
    alone = pickle.loads(square_parts.with_name("alone").read_bytes())
    found = {"library": MPI.Get_library_version()}
    for ranks in (2, 3, 4):
        comm = world.Split(0 if world.rank < ranks else MPI.UNDEFINED, world.rank)
        if comm == MPI.COMM_NULL:
            continue
        found[f"integers {ranks}"] = all(comm.allgather(integers(comm, variant)))
        found[f"extremes {ranks}"] = all(comm.allgather(extremes_on(comm)))
        if ranks != 3:
            found[f"flow {ranks}"] = comm.allgather(flow(comm, parts))
            found[f"poisson {ranks}"] = poisson(comm, square_parts, x, alone)
        else:
            found["refused"] = comm.allgather(refusal(comm, parts))
        comm.Free()
    if world.rank == 0:
        sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
