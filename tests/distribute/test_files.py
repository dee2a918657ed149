"""Files of parts: the same bytes, slices read alone, damage found."""

import weakref
from dataclasses import replace
from itertools import pairwise

import h5py
import numpy as np
import pytest
from parts_arrays import arrays_of, batch_of
from parts_files import LOOPS, SMALL, all_parts, job

from meshprep.distribute.job import run as jobs
from meshprep.distribute.job.check import check_parts, proof_of_split
from meshprep.distribute.job.joined import joined_subject
from meshprep.distribute.job.run import SplitJob, run
from meshprep.distribute.job.split import SplitOptions
from meshprep.io import write
from meshprep.io.generate import generate
from meshprep.io.source import MeshSource
from meshprep.loops.options import Options
from meshprep.pipeline.workflow import Job
from meshprep.pipeline.workflow import run as prepare
from meshprep_runtime.errors import MeshprepError, PlanError
from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.file.seal import check_parts_seal, seal_parts
from meshprep_runtime.plan.parts import kept, load_part, parts_table
from meshprep_runtime.plan.parts.batch import PartBatch, part_of
from meshprep_runtime.plan.parts.loop_proof import loop_findings
from meshprep_runtime.plan.parts.structure import check_batch
from meshprep_runtime.plan.parts.write import (
    SpilledParts,
    begin_file,
    copy_slices,
    spill_file,
)


def test_the_same_mesh_gives_the_same_bytes(mesh_file, made, tmp_path):
    run(job(mesh_file, tmp_path / "again.parts.h5", (5, 3)))
    assert (tmp_path / "again.parts.h5").read_bytes() == made.read_bytes()


def test_a_further_number_of_parts_is_added_and_the_others_stay(mesh_file, made, tmp_path):
    copy = tmp_path / "wing.parts.h5"
    copy.write_bytes(made.read_bytes())
    more = SplitJob(copy, copy, (2,))
    run(more)
    assert kept(copy) == [2, 3, 5]
    assert list(load_part(copy, 2, 0).loops["edges->cells"].plan.variants) == ["s64"]
    assert check_parts(copy, mesh=MeshSource(mesh_file)).findings == []
    before, after = arrays_of(load_part(made, 5, 4)), arrays_of(load_part(copy, 5, 4))
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    with pytest.raises(MeshprepError, match="is split into 2 parts already"):
        run(more)
    run(replace(more, parts=(4,), options=Options(block_size=32)))
    assert list(load_part(copy, 4, 0).loops["edges->cells"].plan.variants) == ["s32"]
    with pytest.raises(MeshprepError, match="has its loops: leave --loop"):
        run(replace(more, parts=(4,), requests=LOOPS))


def test_a_file_that_is_replaced_while_it_is_split_is_not_mixed_with_the_new_one(
    made, mesh_file, tmp_path, monkeypatch
):
    copy, other = tmp_path / "wing.parts.h5", tmp_path / "other.parts.h5"
    copy.write_bytes(made.read_bytes())
    run(job(mesh_file, other, (3, 4)))
    written = other.read_bytes()
    joined = jobs.joined_subject

    def late(path, ranks):
        found = joined(path, ranks)
        other.replace(path)
        return found

    monkeypatch.setattr(jobs, "joined_subject", late)
    with pytest.raises(
        MeshprepError, match=r"wing.parts.h5 was replaced while it was split"
    ):
        run(SplitJob(copy, copy, (2,)))
    assert copy.read_bytes() == written


def test_damage_in_other_numbers_of_parts_is_not_hidden_when_one_is_added(made, tmp_path):
    copy, content = tmp_path / "wing.parts.h5", bytearray(made.read_bytes())
    table = parts_table(made, 5)
    index = [one.name for one in table.datasets].index("maps/cells->nodes/table")
    content[table.extent(index, 4)[0]] ^= 1
    copy.write_bytes(content)
    run(SplitJob(copy, copy, (2,)))
    load_part(copy, 5, 3)
    with pytest.raises(PlanError, match="part 4 of 5 does not match its checksum"):
        load_part(copy, 5, 4)


def test_colours_of_parts_may_differ_in_their_bytes(made, tmp_path):
    loop, parts = "edges->cells", [load_part(made, 3, p) for p in range(3)]
    plan = parts[1].loops[loop].plan
    wide = replace(
        plan.variant(), thread_colour=plan.variant().thread_colour.astype(np.uint16)
    )
    one = replace(parts[1].loops[loop], plan=replace(plan, variants={wide.name: wide}))
    parts[1] = replace(parts[1], loops={**parts[1].loops, loop: one})
    path = tmp_path / "mixed.parts.h5"
    with spill_file(tmp_path / "waiting") as file:
        spilled = SpilledParts(file, 3)
        for part in parts:
            spilled.add(batch_of(part))
        spilled.finish({})
        laid_out = begin_file(path, {"source_hash": ""}, [spilled])
        copy_slices(path, laid_out, [spilled])
    seal_parts(path, laid_out.begin, laid_out.end)
    for p, part in enumerate(parts):
        found = load_part(path, 3, p).loops[loop].plan.variant().thread_colour
        assert found.dtype == np.uint16
        assert np.array_equal(found, part.loops[loop].plan.variant().thread_colour)


def test_parts_put_together_are_the_mesh_that_was_split(mesh_file, made):
    subject = joined_subject(made)
    full = check_parts(made, 3, MeshSource(mesh_file))
    assert (full.findings, full.verdict) == (
        [],
        f"{made}: right and fits {mesh_file} (3 parts)",
    )
    assert list(subject.maps) == ["edges->cells", "cells->nodes", "boundary_edges->cells"]
    assert [spec.loop.name for spec in subject.specs] == ["edges->cells", "cells->nodes"]
    assert subject.specs[0].options == {"block_size": 64, "target": "gpu"}


def blocks_of(part, loop):
    """The original numbers of the owned elements of each block of a loop."""
    plan = part.loops[loop].plan
    over, offset = part.sets[plan.loop.over], plan.variant().block_offset
    ends = offset[offset <= over.owned]
    return [over.original[a:b] for a, b in pairwise(ends.tolist())]


@pytest.mark.parametrize("count", [2, 4])
def test_a_further_number_of_parts_keeps_the_blocks_of_the_file(made, tmp_path, count):
    copy = tmp_path / "wing.parts.h5"
    copy.write_bytes(made.read_bytes())
    run(SplitJob(copy, copy, (count,)))
    for loop in ("edges->cells", "cells->nodes"):
        blocks = [one for p in range(3) for one in blocks_of(load_part(made, 3, p), loop)]
        n = sum(map(len, blocks))
        old, new, group = (np.empty(n, int) for _ in range(3))
        for i, one in enumerate(blocks):
            old[one] = i
        number = 0
        for p in range(count):
            part = load_part(copy, count, p)
            over = part.sets[loop.partition("->")[0]]
            group[over.original] = 2 * p + (np.arange(over.owned) >= over.core)
            for one in blocks_of(part, loop):
                assert len(one) <= 64
                new[one] = number
                number += 1
        # what is of one block and in one class of one part stays in one block
        pieces = np.unique(np.stack([old, group], axis=1), axis=0)
        assert len(np.unique(np.stack([old, group, new], axis=1), axis=0)) == len(pieces)
        assert number < len(pieces)


def test_parts_of_a_file_without_ranges_get_those_that_a_new_file_has(made):
    table = parts_table(made, 3)
    for part in range(3):
        arrays = table.arrays(made, range(part, part + 1))
        before = {name: array for name, array in arrays.items() if "/ranges/" not in name}
        assert len(before) == len(arrays) - 4 * len(LOOPS)
        batch = PartBatch(
            table.description, range(part, part + 1), 3, before, lengths(before)
        )
        check_batch(batch)
        found = arrays_of(part_of(batch))
        assert found.keys() == arrays.keys()
        assert all(np.array_equal(found[name], arrays[name]) for name in arrays)
        assert loop_findings(batch) == []


def lengths(arrays):
    return {name: np.array([len(array)]) for name, array in arrays.items()}


def test_a_file_of_owners_names_elements_of_the_mesh_for_a_file_of_parts_too(
    made, tmp_path
):
    n = sum(load_part(made, 3, p).sets["cells"].owned for p in range(3))
    own, output = np.arange(n) % 2, tmp_path / "two.parts.h5"
    np.save(tmp_path / "own.npy", own)
    run(SplitJob(made, output, (2,), how=SplitOptions(f"file:{tmp_path / 'own.npy'}")))
    found = load_part(output, 2, 1).sets["cells"].original
    assert sorted(found) == np.flatnonzero(own == 1).tolist()


def test_a_file_of_owners_names_elements_of_the_mesh_for_a_plan_too(mesh_file, tmp_path):
    plan, output = tmp_path / "wing.plan.h5", tmp_path / "two.parts.h5"
    prepare(Job(MeshSource(mesh_file), tmp_path / "new.msh", plan, LOOPS))
    own = np.arange(Plan.load(plan).sizes["cells"]) % 2
    np.save(tmp_path / "own.npy", own)
    run(SplitJob(plan, output, (2,), how=SplitOptions(f"file:{tmp_path / 'own.npy'}")))
    found = load_part(output, 2, 1).sets["cells"].original
    assert sorted(found) == np.flatnonzero(own == 1).tolist()


def test_parts_are_written_as_dats_of_op2(mesh_file, tmp_path):
    output, op2 = tmp_path / "wing.parts.h5", tmp_path / "wing.op2.h5"
    done = run(job(mesh_file, output, (3, 5), op2=op2))
    assert done.written == [output, op2]
    with h5py.File(op2) as file:
        assert list(file) == ["part_3", "part_5"]
        for count in (3, 5):
            dat = file[f"part_{count}"]
            assert (dat.dtype, dat.shape[1], dat.chunks) == (np.int32, 1, None)
            assert (dat.attrs["size"], dat.attrs["dim"], dat.attrs["type"]) == (
                4,
                1,
                b"int",
            )
            for p in range(count):
                own = load_part(output, count, p).sets["cells"].original
                assert sorted(own) == np.flatnonzero(dat[:, 0] == p).tolist()
    with pytest.raises(MeshprepError, match=r"wing.op2.h5: exists already"):
        run(job(mesh_file, tmp_path / "again.parts.h5", (2,), op2=op2))


def test_a_plan_is_split_and_keeps_the_numbers_of_its_mesh(mesh_file, tmp_path):
    plan, ordered = tmp_path / "wing.plan.h5", tmp_path / "ordered.msh"
    prepare(Job(MeshSource(mesh_file), ordered, plan, LOOPS, SMALL))
    output = tmp_path / "wing.parts.h5"
    run(SplitJob(plan, output, (4,), options=SMALL))
    assert check_parts(output, mesh=MeshSource(mesh_file)).findings == []
    assert Plan.load(plan).sizes["cells"] == sum(
        load_part(output, 4, p).sets["cells"].owned for p in range(4)
    )


def test_every_flipped_byte_is_found_before_a_part_is_given(made, tmp_path):
    data, bad = made.read_bytes(), tmp_path / "bad.parts.h5"
    begin, end = check_parts_seal(made)
    rng = np.random.default_rng(0)
    head = rng.integers(0, begin, 30)
    for at in [*head, *rng.integers(begin, end, 30)]:
        wrong = bytearray(data)
        wrong[at] ^= 1 << rng.integers(8)
        bad.write_bytes(wrong)
        with pytest.raises(PlanError) as found:
            [all_parts(bad, count) for count in (3, 5)]
        assert "\n" not in str(found.value)
        assert str(bad) in str(found.value)


def test_parts_of_another_version_are_refused(made, tmp_path):
    bad, content = tmp_path / "bad.parts.h5", made.read_bytes()
    bad.write_bytes(content.replace(b"meshprep-parts 1\n", b"meshprep-parts 2\n", 1))
    with pytest.raises(
        PlanError, match=r"parts format version 2, but .* reads version 1: install"
    ):
        load_part(bad, 3, 0)


def test_swapped_slices_and_cut_files_are_refused(made, tmp_path):
    table, data = parts_table(made, 3), bytearray(made.read_bytes())
    index = next(
        i for i, one in enumerate(table.datasets) if one.name == "sets/cells/counts"
    )
    (a, size), (b, _) = table.extent(index, 0), table.extent(index, 1)
    data[a : a + size], data[b : b + size] = data[b : b + size], data[a : a + size]
    bad = tmp_path / "bad.parts.h5"
    bad.write_bytes(data)
    with pytest.raises(PlanError, match="part 0 of 3 does not match its checksum"):
        load_part(bad, 3, 0)
    load_part(bad, 3, 2)
    bad.write_bytes(made.read_bytes()[:-1])
    with pytest.raises(PlanError, match=r"cut short|damaged"):
        load_part(bad, 3, 0)
    with pytest.raises(PlanError, match="there is no part 3"):
        load_part(made, 3, 3)
    with pytest.raises(
        PlanError, match=r"3 and 5 parts, not 4: add that by 'meshprep split"
    ):
        load_part(made, 4, 0)
    with pytest.raises(PlanError, match="a mesh in parts"):
        Plan.load(made)


def test_the_proof_has_the_memory_of_the_mesh(mesh_file, tmp_path, monkeypatch):
    came, held = [], []

    def subject(*given):
        found = usual_subject(*given)
        came.append(weakref.ref(found))
        return found

    def proof(*given):
        held.append(came[-1]())
        found = proof_of_split(*given)
        # numbers of 4 bytes where 4 are enough
        held.extend(m.dtype for m in found.maps.values())
        return found

    usual_subject = jobs._subject
    monkeypatch.setattr(jobs, "_subject", subject)
    monkeypatch.setattr(jobs, "proof_of_split", proof)
    run(job(mesh_file, tmp_path / "once.parts.h5", (2,)))
    assert held == [None, *[np.int32] * (len(held) - 1)]
    assert len(held) > 2


def test_wishes_that_cannot_be_are_refused(mesh_file, made, tmp_path):
    for values, message in [
        ({"parts": ()}, "from 1"),
        ({"parts": (0,)}, "from 1"),
        ({"parts": (2, 2)}, "twice"),
        ({"parts": (2, 3), "how": SplitOptions("file:x.npy")}, "one number of parts"),
    ]:
        with pytest.raises(MeshprepError, match=message):
            job(mesh_file, tmp_path / "x.parts.h5", **values)
    with pytest.raises(MeshprepError, match="exists already"):
        run(job(mesh_file, made, (2,)))
    other = tmp_path / "other.msh"
    write(generate("delaunay2d", cells=300, seed=1), other)
    with pytest.raises(PlanError, match="made for another mesh"):
        check_parts(made, mesh=MeshSource(other))
