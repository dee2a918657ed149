"""The proof of a file of parts, and its comparison with a mesh."""

from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError, PlanError, Progress, listed
from meshprep_runtime.plan.checks.result import CheckResult
from meshprep_runtime.plan.parts import kept, parts_table
from meshprep_runtime.plan.parts.batch import FURTHER, PartBatch, leading, split_pairs
from meshprep_runtime.plan.parts.loop_proof import loop_findings
from meshprep_runtime.plan.parts.proof import PartsProof
from meshprep_runtime.plan.parts.store import about, read_batch

from ...io.source import MeshSource
from ...kernels.parallel import at_once
from ...mesh import Mesh
from ...mesh.original import type_order_note, with_type_order
from ...topology import derive
from ..ranks import ALONE, Ranks, agreed, in_turn, of_root, own_parts
from ..subject import tags_of, values_of


def check_parts(
    path: Path,
    parts: int | None = None,
    mesh: MeshSource | None = None,
    *,
    progress: Progress = lambda done, total, name: None,
    ranks: Ranks = ALONE,
) -> CheckResult:
    """Prove every split of a file, or one; with a mesh, compare its maps, too.

    ``parts`` names one split. Each rank reads every part in turn and proves its share of
    them; all have the result.

    Raises PlanError when the file or a part is damaged, or belongs to another mesh; on
    every rank the same. Raises MeshprepError for a mesh on several ranks, none of which has
    all maps.
    """
    if mesh is not None and ranks.size > 1:
        raise MeshprepError(
            "a mesh is compared by one process: leave mpiexec or --mesh out"
        )
    splits = of_root(ranks, lambda: kept(path) if parts is None else [parts])
    # Read the mesh that the file must be of, in the order of cell types in which it was
    # split.
    ordered = None
    note = ""
    total = len(splits) + (mesh is not None)
    if mesh is not None:
        progress(0, total, "reading the mesh")
        origin = about(path)
        read = mesh.read()
        if read.content_hash() != origin["source_hash"]:
            raise PlanError(
                f"{path}: made for another mesh than {mesh.path}: give the mesh it is of"
            )
        names = origin.get("cell_types", ())
        ordered = with_type_order(read, names)
        note = type_order_note(read, names, "the split")
    # Prove each split; compare those that are right with the mesh.
    findings: list[str] = []
    for i, count in enumerate(splits):
        progress(total - len(splits) + i, total, f"proving {count} parts")
        proof = agreed(ranks, partial(proof_of_split, path, count, ranks), named=False)
        findings += dict.fromkeys(chain.from_iterable(ranks.allgather(proof.findings)))
        if ordered is not None and not proof.findings:
            findings += _differing_maps(proof, ordered, count)
            findings += sorted(_differing_values(path, ordered, count))
    if findings:
        return CheckResult(
            findings, f"{path}: {len(findings)} findings: the parts are wrong"
        )
    against = "" if mesh is None else f" and fits {mesh.path}"
    return CheckResult([], f"{path}: right{against} ({listed(splits)} parts){note}")


def proof_of_split(path: Path, count: int, ranks: Ranks) -> PartsProof:
    """The finished proof of the parts of a file that this rank proves.

    Every rank reads all parts, and proves the loops of its own. Small parts are read
    together, and all on all cores.
    """
    table = parts_table(path, count)
    parts_of_rank = own_parts(ranks, count)
    proof = PartsProof(table.description["sets"], count, parts_of_rank)

    def read_and_check(parts: range) -> tuple[PartBatch, list[str]]:
        batch = read_batch(path, table, parts)
        return batch, loop_findings(batch) if parts.start in parts_of_rank else []

    # No batch has parts of this rank and of others.
    before = range(parts_of_rank.start)
    behind = range(parts_of_rank.stop, count)
    batches = [
        *table.batches(before),
        *table.batches(parts_of_rank),
        *table.batches(behind),
    ]
    for batch, findings_on_loops in in_turn(read_and_check, batches):
        proof.add(batch, findings_on_loops)
    proof.finish(at_once)
    return proof


def _differing_values(path: Path, mesh: Mesh, count: int) -> set[str]:
    """Findings on coordinates, groups and fields that differ from those of the mesh.

    Names that the mesh does not have are left out: formats name groups and fields
    differently.
    """
    table = parts_table(path, count)
    findings = set[str]()
    sets = table.description["sets"]
    full = derive(mesh, table.description["maps"])
    values = values_of(full, sets, fields=True)
    tags = {f"tags/{tag.set}/{tag.name}": tag for tag in tags_of(full, sets)}
    # Compare the owned rows of each part.
    for batch in in_turn(partial(read_batch, path, table), table.batches(range(count))):
        for dataset, name in batch.values.items():
            owned = batch.sets[name]
            stored = leading(batch.arrays[dataset], owned.owned, owned.size)
            expected = None
            if dataset in values:
                expected = values[dataset][owned.original]
            if dataset in tags:
                # First groups of all elements, then pairs of an element and a further
                # group.
                tag = tags[dataset]
                tag = replace(tag, values=tag.values[owned.original])
                first_element = owned.owned_start[0]
                pairs = tag.further_ids() + np.array([first_element, 0])
                expected = np.append(tag.first_ids(), pairs)
                further = dataset.replace("tags", FURTHER, 1)
                if further in batch.further:
                    stored = np.append(stored, split_pairs(batch, further)[0])
            if expected is not None and not _alike(stored, expected):
                findings.add(f"{count} parts: {dataset} is not that of the mesh")
    return findings


def _alike(stored: NDArray[Any], expected: NDArray[Any]) -> bool:
    """Whether arrays are equal, floats but for the rounding of a text format."""
    if stored.shape != expected.shape or expected.dtype.kind != "f":
        return np.array_equal(stored, expected)
    largest = np.abs(expected).max(initial=0)
    return np.allclose(stored, expected, rtol=1e-6, atol=1e-6 * largest, equal_nan=True)


def _differing_maps(proof: PartsProof, mesh: Mesh, parts: int) -> list[str]:
    """Findings on maps of the parts that differ from those of the mesh."""
    full = derive(mesh, proof.maps)
    findings = []
    for name, table in proof.maps.items():
        m = full.map(name)
        row = proof.original[m.from_set]
        number = proof.original[m.to_set]
        if not np.array_equal(table[row], number[m.table]):
            findings.append(f"{parts} parts: map '{name}' is not that of the mesh")
    return findings
