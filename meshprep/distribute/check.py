"""The proof of a file of parts, and its comparison with a mesh."""

from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError, PlanError, Progress, listed
from meshprep_runtime.plan.parts import kept, parts_table
from meshprep_runtime.plan.parts.batch import FURTHER, PartBatch, leading, split_pairs
from meshprep_runtime.plan.parts.loop_proof import loop_findings
from meshprep_runtime.plan.parts.proof import PartsProof
from meshprep_runtime.plan.parts.store import about, read_batch

from ..io.source import MeshSource
from ..kernels.parallel import at_once
from ..mesh import Mesh
from ..mesh.original import with_type_order
from ..pipeline.check_file import CheckResult, type_order_note
from ..topology import derive
from .ranks import ALONE, Ranks, agreed, in_turn, of_root, own_parts
from .subject import tags_of, values_of


def check_parts(
    path: Path,
    parts: int | None = None,
    mesh: MeshSource | None = None,
    *,
    progress: Progress = lambda done, total, name: None,
    ranks: Ranks = ALONE,
) -> CheckResult:
    """Prove every split of a file, or one; with a mesh, compare its maps, too.

    ``parts`` names one split. Each rank reads every part in turn and proves its share of them; all
    have the result.

    Raises PlanError when the file or a part is damaged, or belongs to another mesh; on every rank
    the same. Raises MeshprepError for a mesh on several ranks, none of which has all maps.
    """
    if mesh is not None and ranks.size > 1:
        raise MeshprepError("a mesh is compared by one process: leave mpiexec or --mesh out")
    splits = of_root(ranks, lambda: kept(path) if parts is None else [parts])
    ordered, note, total = None, "", len(splits) + (mesh is not None)
    if mesh is not None:
        progress(0, total, "reading the mesh")
        words, read = about(path), mesh.read()
        if read.content_hash() != words["source_hash"]:
            raise PlanError(
                f"{path}: made for another mesh than {mesh.path}: give the mesh it is of"
            )
        names = words.get("cell_types", ())
        ordered, note = with_type_order(read, names), type_order_note(read, names, "the split")
    findings: list[str] = []
    for i, count in enumerate(splits):
        progress(total - len(splits) + i, total, f"proving {count} parts")
        proof = agreed(ranks, partial(proof_of_split, path, count, ranks), named=False)
        findings += dict.fromkeys(chain.from_iterable(ranks.allgather(proof.findings)))
        if ordered is not None and not proof.findings:
            findings += _differing_maps(proof, ordered, count)
            findings += sorted(_differing_values(path, ordered, count))
    number = listed(splits)
    if findings:
        return CheckResult(findings, f"{path}: {len(findings)} findings: the parts are wrong")
    against = "" if mesh is None else f" and fits {mesh.path}"
    return CheckResult([], f"{path}: right{against} ({number} parts){note}")


def proof_of_split(path: Path, count: int, ranks: Ranks) -> PartsProof:
    """The proof of what this rank proves of the parts of a file; ``finish`` is called.

    Parts are read and their loops proved on all cores, small ones together.
    """
    table, own = parts_table(path, count), own_parts(ranks, count)
    proof = PartsProof(table.description["sets"], count, own)

    def read_and_check(parts: range) -> tuple[PartBatch, list[str]]:
        batch = read_batch(path, table, parts)
        return batch, loop_findings(batch) if parts.start in own else []

    shares = range(own.start), own, range(own.stop, count)
    some = [parts for share in shares for parts in table.batches(share)]
    for batch, of_loops in in_turn(read_and_check, some):
        proof.add(batch, of_loops)
    proof.finish(at_once)
    return proof


def _differing_values(path: Path, mesh: Mesh, count: int) -> set[str]:
    """Findings on coordinates, groups and fields that the mesh has otherwise.

    Other formats may round coordinates, and name groups and fields otherwise.
    """
    table, findings = parts_table(path, count), set[str]()
    sets = table.description["sets"]
    full = derive(mesh, table.description["maps"])
    values = values_of(full, sets, fields=True)
    tags = {f"tags/{tag.set}/{tag.name}": tag for tag in tags_of(full, sets)}
    for batch in in_turn(partial(read_batch, path, table), table.batches(range(count))):
        for at, name in batch.values.items():
            one = batch.sets[name]
            found, wanted = leading(batch.arrays[at], one.owned, one.size), None
            if at in tags:
                tag = replace(tags[at], values=tags[at].values[one.original])
                rows = tag.further_ids() + np.array([one.owned_start[0], 0])
                further = at.replace("tags", FURTHER, 1)
                own = split_pairs(batch, further)[0] if further in batch.further else rows[:0]
                found, wanted = np.append(found, own), np.append(tag.first_ids(), rows)
            elif at in values:
                wanted = values[at][one.original]
            if wanted is not None and not _alike(found, wanted):
                findings.add(f"{count} parts: {at} is not that of the mesh")
    return findings


def _alike(found: NDArray[Any], wanted: NDArray[Any]) -> bool:
    if found.shape != wanted.shape or wanted.dtype.kind != "f":
        return np.array_equal(found, wanted)
    return np.allclose(found, wanted, 1e-6, 1e-6 * np.abs(wanted).max(initial=0), equal_nan=True)


def _differing_maps(proof: PartsProof, mesh: Mesh, parts: int) -> list[str]:
    """Findings on maps of the parts that differ from those of the mesh."""
    full, findings = derive(mesh, proof.maps), []
    for name, table in proof.maps.items():
        m = full.map(name)
        place, number = proof.original[m.from_set], proof.original[m.to_set]
        if not np.array_equal(table[place], number[m.table]):
            findings.append(f"{parts} parts: map '{name}' is not that of the mesh")
    return findings
