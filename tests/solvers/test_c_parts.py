"""Parts in C: what they hold, damaged files, and copies exchanged by MPI."""

import itertools
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import effort
import pytest
from c_builds import BUILDS, FOLDER, LOOPS, STRICT

from meshprep import Options, read_requests
from meshprep.distribute.job.run import SplitJob, run
from meshprep.distribute.job.split import SplitOptions
from meshprep.io import write
from meshprep.io.generate import generate
from meshprep.loops.requests import simple_request
from meshprep.mesh.assemble import GroupTable
from meshprep.pipeline import workflow
from meshprep_runtime.plan.groups import members
from meshprep_runtime.plan.parts import load_part, parts_table


def told_of(part, name):
    """What the example prints of a set."""
    one = part.sets[name]
    runs = ("first", one.owned_start), ("core", one.core), ("owned", one.owned)
    lines = [
        " ".join(f"{k} {v}" for k, v in (*runs, ("exec", one.exec), ("halo", one.halo)))
    ]
    for kind in ("send_exec", "send_halo", "receive_exec", "receive_halo"):
        messages = getattr(one, kind)
        rows = messages.rows
        if kind.startswith("receive") and rows.size:
            rows = rows - rows[0]
        for i, other in enumerate(messages.parts):
            these = rows[messages.offset[i] : messages.offset[i + 1]]
            lines.append(f"{kind} {other} rows {these.size} sum {these.sum()}")
    where = part.coordinates.get(name, [])
    for i in (0, len(where) - 1) if len(where) else ():
        x, y = where[i][:2].tolist()
        lines.append(f"element {i} at {x:.17g} {y:.17g}")
    return lines


# A compiler and the launcher of the same MPI; Debian can have several installed.
MPIS = [
    ("mpicc", "mpiexec.hydra"),
    ("mpicc.mpich", "mpiexec.mpich"),
    ("mpicc.openmpi", "mpiexec.openmpi"),
    ("mpicc", "mpiexec"),
]
# Every rank says how many there are: each that it is alone, where the launcher is of another MPI.
SIZE = """\
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int size;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  printf("%d\\n", size);
  MPI_Finalize();
  return 0;
}
"""
# Open MPI asks for it where root runs more ranks than there are cores.
RANKS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def launch(launcher, ranks, *words):
    """Run a program on ranks."""
    return subprocess.run(
        [launcher, "-n", str(ranks), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | RANKS,
    )


def compiler_and_launcher(place):
    """An MPI compiler, and the launcher whose ranks find each other in its programs."""
    (place / "size.c").write_text(SIZE)
    folders = [str(Path(sys.executable).parent), *os.environ["PATH"].split(os.pathsep)]
    for folder, (compiler, launcher) in itertools.product(folders, MPIS):
        found = shutil.which(compiler, path=folder), shutil.which(launcher, path=folder)
        if None in found:
            continue
        words = [found[0], place / "size.c", "-o", place / "size"]
        if subprocess.run(words, capture_output=True).returncode:
            continue
        if launch(found[1], 3, place / "size").stdout.split() == ["3"] * 3:
            return found
    pytest.skip("no folder has mpicc and a launcher of the same MPI")


@pytest.mark.slow
def test_copies_in_c_by_mpi(compile_program, tmp_path):
    """Every copy gets the number that the file gives it, from the rank that owns it."""
    compiler, launcher = compiler_and_launcher(tmp_path)
    program = tmp_path / "halo"
    compile_program(
        compiler, ["-std=c99", *STRICT], FOLDER / "halo.c", program, optional=True
    )
    mesh, file = tmp_path / "square.msh", tmp_path / "square.parts.h5"
    workflow.generate("delaunay2d", mesh, values={"cells": 300})
    (tmp_path / "heat.toml").write_text(LOOPS)
    run(SplitJob(mesh, file, (3,), read_requests(tmp_path / "heat.toml")))
    assert all(load_part(file, 3, p).sets["cells"].copies.size for p in range(3))

    def ask(ranks):
        return launch(launcher, ranks, program, file, "cells")

    done = ask(3)
    assert done.stdout == "3 ranks: 0 copies are wrong\n", done.stderr
    assert "is not split into so many parts" in ask(2).stderr


@pytest.mark.parametrize("language", effort.first(BUILDS))
def test_a_part_in_c(build, language, tmp_path):
    program = build(language, tmp_path, "part")
    mesh, file = tmp_path / "square.msh", tmp_path / "square.parts.h5"
    workflow.generate("delaunay2d", mesh, values={"cells": 300})
    # names are escaped in the list of the arrays
    more = r'[loop."fl\u00fcss\u0002 \"\\\U0001F600\""]'
    (tmp_path / "heat.toml").write_text(LOOPS + LOOPS.replace("[loop.flux]", more))
    requests = read_requests(tmp_path / "heat.toml")
    run(SplitJob(mesh, file, (3, 5), requests, SplitOptions(), Options(block_size=16)))

    def ask(path, *words):
        return subprocess.run([program, path, *words], capture_output=True, text=True)

    for part in range(3):
        for name in ("cells", "edges"):
            done = ask(file, "3", str(part), name)
            assert done.stdout.splitlines() == told_of(load_part(file, 3, part), name)
    whole, table = file.read_bytes(), parts_table(file, 5)
    (at, size), other = table.extent(1, 2), table.extent(1, 3)[0]
    bad = tmp_path / "bad.parts.h5"
    cases = {
        (at + size - 1, "2"): "damaged: the part does not match its checksum",
        (600, "2"): "damaged: its tables do not match",
        (0, "2"): "no parts",
        # white space for the end of a line, and behind the text
        (16, "2"): "damaged: its tables do not match",
        (300, "2"): "damaged: its tables do not match",
        (other, "5"): "is not split into so many parts, or has no such part",
    }
    for (flipped, part), message in cases.items():
        bad.write_bytes(
            whole[:flipped] + bytes([whole[flipped] ^ 1]) + whole[flipped + 1 :]
        )
        done = ask(bad, "5", part, "cells")
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr
    for left in (len(whole) - 1, len(whole) // 2, 700):
        bad.write_bytes(whole[:left])
        done = ask(bad, "5", "2", "cells")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    # what is another part's is not read
    bad.write_bytes(whole[:other] + bytes([whole[other] ^ 1]) + whole[other + 1 :])
    assert ask(bad, "5", "2", "cells").returncode == 0
    assert "is not in the part" in ask(file, "3", "0", "sides").stderr


@pytest.mark.slow
@pytest.mark.parametrize("language", BUILDS)
def test_coordinates_and_groups_in_c(build, language, tmp_path):
    """Two groups overlap, one has a name that JSON escapes, and one no elements."""
    program = build(language, tmp_path, "part")
    mesh = generate("delaunay2d", cells=300, seed=0)
    lines = mesh.tag("physical", "line")
    names = {**lines.names, 9: "a {dü\\m: y", 12: "none", 13: "none"}
    lists = [(*lines.groups(row), *((9,) if row == 1 else ())) for row in range(4)]
    made = GroupTable.of(lists, lines.values)
    tag = replace(
        lines, group_offset=made.group_offset, group_id=made.group_id, names=names
    )
    mesh = replace(mesh, tags=tuple(tag if t is lines else t for t in mesh.tags))
    write(mesh, tmp_path / "a.msh")
    file = tmp_path / "a.parts.h5"
    requests = tuple(map(simple_request, ("edges->cells", "boundary_edges->nodes")))
    run(SplitJob(tmp_path / "a.msh", file, (3,), requests))

    def ask(part, *words):
        return subprocess.run(
            [program, file, "3", str(part), *words], capture_output=True, text=True
        )

    found = 0
    for p in range(3):
        part = load_part(file, 3, p)
        for name in ("cells", "nodes", "boundary_edges"):
            assert ask(p, name).stdout.splitlines() == told_of(part, name)
        for number, name in list(names.items())[:5]:
            rows = members(part, "boundary_edges", part.sets["boundary_edges"].size, name)
            said = ask(p, "boundary_edges", name).stdout.splitlines()[-1]
            assert said == " ".join([f"group {number}:", *map(str, rows)])
            found += rows.size
        assert "is the name of several groups" in ask(p, "boundary_edges", "none").stderr
        for name in ("no", "", "cells"):
            assert "is not the name of a group" in ask(p, "boundary_edges", name).stderr
    assert found >= 28 + 7
