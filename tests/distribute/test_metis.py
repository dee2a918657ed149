"""METIS by sections of a file of parts, each in a process of its own."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from numba import get_num_threads, set_num_threads

from meshprep.distribute.assign import metis
from meshprep.distribute.assign.kway import kway
from meshprep.distribute.assign.metis import KwayProcesses, sections
from meshprep.distribute.steps import CutProblem, _graph_of, owners_of_leading_set
from meshprep.distribute.subject import subject_of_mesh
from meshprep.io.generate import generate
from meshprep.loops.requests import simple_request
from meshprep.mesh.incidence import point_graph
from meshprep.pipeline.steps import plan_request_maps
from meshprep_runtime.errors import MeshprepError

PARTS = 60


def in_parts(subject, owner):
    """The subject with its cells part after part, as a file of parts has them."""
    order = np.argsort(owner, kind="stable")
    number = np.argsort(order).astype(np.int32)
    faces = subject.maps["faces->cells"]
    table = number[faces.table]
    ends = np.append(0, np.cumsum(np.bincount(owner)))
    # core and boundary of each part begin at the same place: there is no core
    runs = np.append(np.repeat(ends[:-1], 2), ends[-1])
    maps = {"faces->cells": replace(faces, table=table)}
    return replace(subject, maps=maps, leading_runs=runs, centroids={})


@pytest.fixture(scope="module")
def tetrahedra():
    mesh = generate("delaunay3d", cells=20_000, seed=2)
    subject = subject_of_mesh(mesh, *plan_request_maps(mesh, [simple_request("faces->cells")]))
    owner = owners_of_leading_set(CutProblem(subject, np.full(PARTS, 1 / PARTS)), "annealed")
    return subject, owner


@pytest.fixture
def small(monkeypatch):
    """Small meshes are cut by sections, too, whatever their borders."""
    monkeypatch.setattr(metis, "LEAST_ELEMENTS", 1000)
    monkeypatch.setattr(metis, "BORDERS", 0.3)
    monkeypatch.setattr(metis, "LEAST_OVERFILL", 10)


def cut_faces(subject, owner):
    one, other = owner[subject.maps["faces->cells"].table].T
    return int((one != other).sum())


@pytest.mark.parametrize("shares", [np.ones(50), np.arange(1.0, 51)])
def test_sections_give_parts_that_are_as_even_and_nearly_as_short(tetrahedra, small, shares):
    subject, shares = in_parts(*tetrahedra), shares / shares.sum()
    n = subject.sizes["cells"]
    found = sections(subject.maps["faces->cells"].table, subject.leading_runs[::2], shares)
    assert len(found) > 1
    assert [i for one in found for i in one.elements] == list(range(n))
    assert [p for one in found for p in one.parts] == list(range(50))
    problem = CutProblem(subject, shares)
    owner = owners_of_leading_set(problem, "metis")
    size = np.bincount(owner, minlength=50)
    assert (size <= np.maximum(1.03 * shares * n, shares * n + 2)).all()
    whole = owners_of_leading_set(replace(problem, subject=alone(subject)), "metis")
    assert cut_faces(subject, owner) <= 1.08 * cut_faces(subject, whole)
    for one in found:
        got = set(owner[one.elements.start : one.elements.stop].tolist())
        # METIS may leave a part empty that is to be far smaller than the others
        assert got == set(one.parts) if shares[0] == shares[-1] else got <= set(one.parts)


def alone(subject):
    """The same without what is known of its order."""
    return replace(subject, leading_runs=np.empty(0, np.int64))


def test_the_number_of_threads_does_not_matter(tetrahedra, small):
    problem, found = CutProblem(in_parts(*tetrahedra), np.full(40, 1 / 40)), []
    threads = get_num_threads()
    for count in (1, threads):
        set_num_threads(count)
        found.append(owners_of_leading_set(problem, "metis"))
    set_num_threads(threads)
    assert (found[0] == found[1]).all()


def test_other_numbers_of_parts_and_few_elements_are_one_section(tetrahedra, small, monkeypatch):
    subject, owner = tetrahedra
    shares = np.full(40, 1 / 40)
    mixed = in_parts(subject, np.random.default_rng(0).permutation(PARTS)[owner])
    assert len(sections(mixed.maps["faces->cells"].table, mixed.leading_runs[::2], shares)) == 1
    few = in_parts(subject, owner)
    table, ends = few.maps["faces->cells"].table, few.leading_runs[::2]
    assert len(sections(table, ends, np.full(1, 1.0))) == 1
    monkeypatch.setattr(metis, "LEAST_ELEMENTS", subject.sizes["cells"])
    assert len(sections(table, ends, shares)) == 1
    assert sections(table, ends[:0], shares)[0].parts == range(40)


@pytest.mark.parametrize("arity", [2, 3])
def test_the_graph_of_a_section_is_that_of_all_between_its_elements(arity):
    rng = np.random.default_rng(1)
    table = rng.integers(0, 30, (60, arity)).astype(np.int32)
    whole, found = point_graph(table, 30), _graph_of(table, range(7, 21))
    for i in range(7, 21):
        near = whole.index[whole.offset[i] : whole.offset[i + 1]]
        own = found.index[found.offset[i - 7] : found.offset[i - 6]] + 7
        assert own.tolist() == [j for j in near if 7 <= j < 21]


def test_a_process_gives_what_this_one_gives_or_says_why_not(tetrahedra, monkeypatch):
    subject, _ = tetrahedra
    graph = point_graph(subject.maps["faces->cells"].table, subject.sizes["cells"])
    with KwayProcesses() as elsewhere:
        # one process after the other answers; METIS warns where parts are more than elements
        for shares in (np.full(7, 1 / 7), np.arange(1.0, 8) / 28, np.full(9000, 1 / 9000)):
            given = graph, shares, 20, 3
            assert (elsewhere.kway(*given) == kway(*given)).all()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with (
        KwayProcesses() as elsewhere,
        pytest.raises(MeshprepError, match="METIS ended with code 1 and said: nothing"),
    ):
        elsewhere.kway(*given)
