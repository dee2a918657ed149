"""Files of parts: the same bytes, slices read alone, damage found, proofs that can fail."""

import weakref
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

from meshprep.distribute import external
from meshprep.distribute import job as jobs
from meshprep.distribute.check import check_parts, proof_of_split
from meshprep.distribute.job import SplitJob, run
from meshprep.distribute.joined import joined_subject
from meshprep.distribute.steps import SplitOptions
from meshprep.io import write
from meshprep.io.generate import generate
from meshprep.io.source import MeshSource
from meshprep.loops import simple_request
from meshprep.loops.options import Options
from meshprep.pipeline.workflow import Job
from meshprep.pipeline.workflow import run as prepare
from meshprep_runtime.errors import MeshprepError, PlanError
from meshprep_runtime.loops import Access
from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.parts import kept, load_part, parts_table, read_part
from meshprep_runtime.plan.parts.arrays import arrays_of
from meshprep_runtime.plan.parts.batch import batch_of
from meshprep_runtime.plan.parts.proof import PartsProof, proved
from meshprep_runtime.plan.parts.store import read_batch
from meshprep_runtime.plan.parts.structure import check_batch
from meshprep_runtime.plan.parts.write import (
    SpilledParts,
    begin_file,
    copy_slices,
    spill_file,
)
from meshprep_runtime.plan.seal import check_parts_seal, seal_parts

LOOPS = tuple(map(simple_request, ("edges->cells", "cells->nodes")))
SMALL = Options(block_size=64)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("parts")


@pytest.fixture(scope="module")
def mesh_file(folder):
    write(generate("delaunay2d", cells=400, seed=0), folder / "wing.msh")
    return folder / "wing.msh"


def job(mesh, output, parts, **values):
    return SplitJob(mesh, output, parts, LOOPS, options=SMALL, **values)


@pytest.fixture(scope="module")
def made(mesh_file):
    output = mesh_file.with_name("wing.parts.h5")
    run(job(mesh_file, output, (3, 5)))
    return output


def all_parts(path, count):
    table = parts_table(path, count)
    return [read_part(path, table, p) for p in range(count)], table.description["sets"]


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
    with pytest.raises(MeshprepError, match=r"wing.parts.h5 was replaced while it was split"):
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
    wide = replace(plan.variant(), thread_colour=plan.variant().thread_colour.astype(np.uint16))
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
    assert (full.findings, full.verdict) == ([], f"{made}: right and fits {mesh_file} (3 parts)")
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


def test_a_file_of_owners_names_elements_of_the_mesh_for_a_file_of_parts_too(made, tmp_path):
    n = sum(load_part(made, 3, p).sets["cells"].owned for p in range(3))
    own, output = np.arange(n) % 2, tmp_path / "two.parts.h5"
    np.save(tmp_path / "own.npy", own)
    run(SplitJob(made, output, (2,), how=SplitOptions(f"file:{tmp_path / 'own.npy'}")))
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
            assert (dat.attrs["size"], dat.attrs["dim"], dat.attrs["type"]) == (4, 1, b"int")
            for p in range(count):
                own = load_part(output, count, p).sets["cells"].original
                assert sorted(own) == np.flatnonzero(dat[:, 0] == p).tolist()
    with pytest.raises(MeshprepError, match=r"wing.op2.h5: exists already"):
        run(job(mesh_file, tmp_path / "again.parts.h5", (2,), op2=op2))


def test_dats_of_op2_have_their_room_on_the_disk_first(tmp_path, monkeypatch):
    """On a full disk a page that is mapped before it has a place ends the process."""
    n, path, held = 500_000, tmp_path / "a.h5", []

    def read(*_):
        held.append(path.stat().st_blocks * 512)
        return SimpleNamespace(sets={"cells": SimpleNamespace(original=np.arange(n))})

    table = SimpleNamespace(parts=1, description={"sets": {"cells": n}})
    monkeypatch.setattr(external, "parts_table", lambda *_: table)
    monkeypatch.setattr(external, "read_part", read)
    external.write_external(path, path, (1,), "cells")
    assert held[0] >= path.stat().st_size > 4 * n


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


def test_swapped_slices_and_cut_files_are_refused(made, tmp_path):
    table, data = parts_table(made, 3), bytearray(made.read_bytes())
    index = next(i for i, one in enumerate(table.datasets) if one.name == "sets/cells/counts")
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
    with pytest.raises(PlanError, match=r"3 and 5 parts, not 4: add that by 'meshprep split"):
        load_part(made, 4, 0)
    with pytest.raises(PlanError, match="a mesh in parts"):
        Plan.load(made)


def changed_set(part, name, **values):
    return replace(part, sets={**part.sets, name: replace(part.sets[name], **values)})


def table_of(part, name, change):
    m = part.maps[name]
    table = m.table.copy()
    change(table, part.sets[m.from_set])
    return replace(part, maps={**part.maps, name: replace(m, table=table)})


def wrong_parts():
    """How a part is made wrong, and what the proof says of it."""

    def without_exec(part):
        one = part.sets["edges"]
        copies = np.concatenate([one.copies[1 : one.exec], one.copies[:1], one.copies[one.exec :]])
        return changed_set(part, "edges", copies=copies)

    def send_reversed(part):
        one = part.sets["cells"].send_exec
        return changed_set(part, "cells", send_exec=replace(one, rows=one.rows[::-1].copy()))

    def one_original(part):
        original = part.sets["cells"].original.copy()
        original[0] = original[1]
        return changed_set(part, "cells", original=original)

    def other_row(part):
        rows = part.sets["edges"]

        def change(table, _):
            table[rows.owned, 0] = table[rows.owned, 1]

        # the staging lists of the loop would show it already
        return replace(table_of(part, "edges->cells", change), loops={})

    def core_at_border(part):
        cells = part.sets["cells"]

        def change(table, _):
            table[0, 0] = cells.owned

        return table_of(part, "edges->cells", change)

    def shifted(part):
        return changed_set(part, "cells", owned_start=part.sets["cells"].owned_start + 1)

    def lower_class(part):
        loop = part.loops["edges->cells"]
        (name,) = loop.colours
        colours = {name: replace(loop.colours[name], core=loop.colours[name].core - 1)}
        loops = {**part.loops, "edges->cells": replace(loop, colours=colours)}
        return replace(part, loops=loops)

    def sent_back(part):
        loop = part.loops["edges->cells"]
        args = tuple(replace(a, access=Access.RW) for a in loop.plan.loop.args)
        plan = replace(loop.plan, loop=replace(loop.plan.loop, args=args))
        loops = {**part.loops, "edges->cells": replace(loop, plan=plan, increments="reverse")}
        return replace(part, loops=loops)

    return [
        (without_exec, "do not ascend"),
        (send_reversed, "exec rows of 'cells': what parts send is not what others receive"),
        (one_original, "no permutation"),
        (other_row, "a copied row differs from its owner's"),
        (core_at_border, "a core element reaches a copy"),
        (shifted, "owns from"),
        (lower_class, "a block has a colour of another class"),
        (sent_back, "no increment"),
    ]


@pytest.mark.parametrize(("change", "message"), wrong_parts(), ids=lambda v: str(v)[:20])
def test_the_proof_finds_what_is_wrong(made, change, message):
    parts, sizes = all_parts(made, 3)
    assert findings_of(parts, sizes) == []
    parts[1] = change(parts[1])
    assert any(message in line for line in findings_of(parts, sizes))
    # what several processes find, each for some parts
    assert any(message in line for line in findings_of(parts, sizes, range(1), range(1, 3)))


def findings_of(parts, sizes, *shares):
    found = [proved(iter(parts), sizes, 3, own).findings for own in shares or (None,)]
    return [line for lines in found for line in lines]


def part_map(part):
    m = part.maps["edges->cells"]
    return replace(m, table=m.table[: part.sets["edges"].executed])


def test_the_proof_misses_no_element_that_must_be_executed(made):
    parts, sizes = all_parts(made, 3)
    one = parts[2].sets["edges"]
    # the last exec element becomes one that is only read
    less = changed_set(parts[2], "edges", exec=one.exec - 1, halo=one.halo + 1)
    m = part_map(less)
    parts[2] = replace(less, maps={**less.maps, m.name: m}, loops={})
    for shares in ((), (range(2), range(2, 3)), (range(1), range(1, 1), range(1, 3))):
        findings = findings_of(parts, sizes, *shares)
        assert any("is not executed there (1 missing)" in line for line in findings)


def refused(batches, sizes):
    """What is said of parts that are looked at in these batches."""
    proof = PartsProof(sizes, 3)
    try:
        for batch in batches:
            check_batch(batch)
            proof.add(batch)
        return proof.finish()
    except PlanError as error:
        return [str(error)]


def test_parts_together_are_refused_where_one_alone_is(made):
    """Each array in turn, with one number changed: verdicts agree, and nearly all are refused."""
    table, rng, count = parts_table(made, 3), np.random.default_rng(0), 0
    whole, sizes = read_batch(made, table, range(3)), table.description["sets"]
    assert refused([whole], sizes) == []
    for name, array in whole.arrays.items():
        for change in (-1, 1, 50) if array.size else ():
            wrong = array.copy()
            wrong.reshape(-1)[rng.integers(wrong.size)] += np.array(change).astype(wrong.dtype)
            batch = replace(whole, arrays={**whole.arrays, name: wrong})
            alone = [batch.alone(place) for place in range(3)]
            said = refused([batch], sizes), refused(alone, sizes)
            assert bool(said[0]) == bool(said[1]), (name, change, said)
            count += bool(said[0])
    assert count > 2 * len(whole.arrays)


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
