"""The check of a plan's file, alone or beside its mesh."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np

from meshprep_runtime.errors import PlanError, Progress
from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.checks.result import CheckResult
from meshprep_runtime.plan.checks.verify import compare_maps
from meshprep_runtime.plan.records import Record

from ..io.source import MeshSource
from ..mesh import Mesh
from ..mesh.model import GRAPH_MAP, rows_as_set
from ..mesh.original import original_of, type_order_note
from ..metrics.measures import measure
from ..topology import derive


def check(
    plan: Path,
    mesh: MeshSource | None = None,
    *,
    progress: Progress = lambda done, total, name: None,
) -> CheckResult:
    """Prove a plan and its figures; with a mesh, also compare the maps of both.

    ``mesh`` may be the mesh the plan was made from or the renumbered one; the plan's hashes
    tell which. Raises PlanError when the file is damaged, or belongs to another mesh.
    """
    # Prove the plan, and of a plan that is right its figures.
    total = 2 if mesh is None else 4
    progress(0, total, "proving the plan")
    loaded = Plan.load(plan)
    findings = loaded.verify()
    if not findings:
        progress(1, total, "figures")
        findings = wrong_figures(loaded)

    # Compare its maps with those of the mesh, in the order of the input.
    against = ""
    note = ""
    if mesh is not None:
        progress(2, total, "reading the mesh")
        mesh_read = mesh.declared_by([loaded]).read()
        progress(3, total, "comparing the maps")
        original = original_of(mesh_read, loaded)
        if original is None:
            raise PlanError(
                f"{plan}: made for another mesh than {mesh.path}: "
                "give the mesh it was made from, the reordered one, or make a new plan"
            )
        findings = findings or _differing_maps_of_plan(loaded, original)
        against = f" and fits {mesh.path}"
        note = type_order_note(mesh_read, loaded.sizes, "the plan")

    # Say in one line what was found.
    if findings:
        return CheckResult(findings, f"{plan}: {len(findings)} findings: the plan is wrong")
    n_elements = sum(loaded.sizes[p.loop.over] for p in loaded.loops.values())
    n_loops = len(loaded.loops)
    loops = "1 loop" if n_loops == 1 else f"{n_loops} loops"
    size = f"{loops}, {n_elements:,} elements"
    return CheckResult([], f"{plan}: right{against} ({size}){note}")


def _differing_maps_of_plan(plan: Plan, mesh: Mesh) -> list[str]:
    """Findings where the plan's maps are not those of a mesh in the order of its input."""
    if GRAPH_MAP not in plan.maps:
        return compare_maps(plan, derive(mesh, plan.maps).maps)
    # Files of graphs keep neither the order of the edges nor that of their ends.
    in_plan = plan.maps[GRAPH_MAP]
    in_mesh = mesh.map(GRAPH_MAP)
    edges_of_plan = plan.ordering[in_plan.to_set].new_to_old[in_plan.table]
    if np.array_equal(rows_as_set(edges_of_plan), rows_as_set(in_mesh.table)):
        return []
    return [f"map '{GRAPH_MAP}' has other edges in the plan than in the mesh"]


# The largest relative difference of floats: the last digits of sums may differ between
# processors.
_RELATIVE = 1e-9
# Figures that do not follow from a plan: seconds and notes of partitioners.
_NOT_OF_PLAN = {"other", "partition"}


def wrong_figures(plan: Plan) -> list[str]:
    """The figures of variants of a proved plan that its arrays do not give, a line each."""
    lines = []
    for loop, metrics in plan.metrics.loops.items():
        for name, before_after in metrics.variants.items():
            measured = measure(plan[loop], plan[loop].variants[name])
            for path, stated, right in _differing("after", before_after.after, measured):
                lines.append(
                    f"loop '{loop}', variant '{name}': the figure {path} is {stated}, "
                    f"but the plan gives {right}"
                )
    return lines


def _differing(path: str, stated: Any, right: Any) -> Iterator[tuple[str, Any, Any]]:
    """Path, stated and right value of each figure that differs.

    A figure that a plan does not state cannot be wrong.
    """
    if stated is None or stated == () or stated == {}:
        return
    # Go down into records and mappings.
    if isinstance(stated, Record) and isinstance(right, Record):
        names = sorted({one.name for one in fields(stated)} - _NOT_OF_PLAN)
        stated = {name: getattr(stated, name) for name in names}
        right = {name: getattr(right, name) for name in names}
    if isinstance(stated, Mapping) and isinstance(right, Mapping):
        for name, value in stated.items():
            yield from _differing(f"{path}/{name}", value, right.get(name))
        return
    # Compare values.
    if stated == right:
        return
    are_numbers = isinstance(stated, float) and isinstance(right, int | float)
    if are_numbers and isclose(stated, right, rel_tol=_RELATIVE):
        return
    yield path, stated, right
