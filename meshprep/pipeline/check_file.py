"""The check of a plan's file, alone or beside its mesh."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np

from meshprep_runtime.errors import PlanError, Progress
from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.checks.verify import compare_maps
from meshprep_runtime.plan.records import Record

from ..io.source import MeshSource
from ..mesh import Mesh
from ..mesh.model import GRAPH_MAP, rows_as_set
from ..mesh.original import cell_types, original_of
from ..metrics.measures import measure
from ..topology import derive


@dataclass(frozen=True)
class CheckResult:
    """The outcome of a check: findings, empty when the plan is right, and a verdict in words."""

    findings: list[str]
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        return {"ok": not self.findings, "findings": self.findings, "verdict": self.verdict}


def check(
    plan: Path,
    mesh: MeshSource | None = None,
    *,
    progress: Progress = lambda done, total, name: None,
) -> CheckResult:
    """Prove a plan and its figures; with a mesh, also that the plan's maps are those of the mesh.

    ``mesh`` may be the mesh the plan was made from or the renumbered one; the plan's hashes tell
    which. Raises PlanError when the file is damaged, or belongs to another mesh.
    """
    total = 2 if mesh is None else 4
    progress(0, total, "proving the plan")
    made = Plan.load(plan)
    findings = made.verify()
    if not findings:
        progress(1, total, "figures")
        findings = wrong_figures(made)
    against = note = ""
    if mesh is not None:
        progress(2, total, "reading the mesh")
        given = mesh.declared_by([made]).read()
        progress(3, total, "comparing the maps")
        original = original_of(given, made)
        if original is None:
            raise PlanError(
                f"{plan}: made for another mesh than {mesh.path}: "
                "give the mesh it was made from, the reordered one, or make a new plan"
            )
        findings = findings or _compare(made, original)
        against, note = f" and fits {mesh.path}", type_order_note(given, made.sizes, "the plan")
    if findings:
        return CheckResult(findings, f"{plan}: {len(findings)} findings: the plan is wrong")
    elements = sum(made.sizes[p.loop.over] for p in made.loops.values())
    n = len(made.loops)
    size = f"{n} loop{'' if n == 1 else 's'}, {elements:,} elements"
    return CheckResult([], f"{plan}: right{against} ({size}){note}")


def _compare(plan: Plan, mesh: Mesh) -> list[str]:
    """Findings where the plan's maps are not those of a mesh in the order of its input."""
    if GRAPH_MAP in plan.maps:
        # files of graphs keep neither the order of the edges nor that of their ends
        own, edges = plan.maps[GRAPH_MAP], mesh.map(GRAPH_MAP)
        back = plan.ordering[own.to_set].new_to_old[own.table]
        same = np.array_equal(rows_as_set(back), rows_as_set(edges.table))
        return [] if same else [f"map '{GRAPH_MAP}' has other edges in the plan than in the mesh"]
    return compare_maps(plan, derive(mesh, plan.maps).maps)


def type_order_note(mesh: Mesh, names: Iterable[str], made: str) -> str:
    """What to know of a mesh file whose cell types do not stand as among these sets."""
    before = cell_types(mesh)
    parts = [name for name in names if name in before]
    if not parts or parts == [*before]:
        return ""
    return (
        f"; {made} numbers the cells by type as {', '.join(parts)}, "
        f"the file as {', '.join(before)}: number them as {made} does"
    )


# Of sums of floats the last digits may differ between processors.
_DIGITS = 1e-9


def wrong_figures(plan: Plan) -> list[str]:
    """Where a proved plan says other figures of its variants than its arrays give, a line each."""
    return [
        f"loop '{loop}', variant '{name}': the figure {path} is {said}, but the plan gives {found}"
        for loop, sides in plan.metrics.loops.items()
        for name, variant in sides.variants.items()
        for path, said, found in _unlike(
            "after", variant.after, measure(plan[loop], plan[loop].variants[name])
        )
    ]


def _unlike(path: str, said: Any, found: Any) -> Iterator[tuple[str, Any, Any]]:
    """Path and values of each figure that differs; what a plan does not say differs in nothing."""
    if said is None or said == () or said == {}:
        return
    if isinstance(said, Record) and isinstance(found, Record):
        # seconds and notes of partitioners do not follow from a plan
        names = {one.name for one in fields(said)} - {"other", "partition"}
        said, found = ({n: getattr(side, n) for n in sorted(names)} for side in (said, found))
    if isinstance(said, Mapping) and isinstance(found, Mapping):
        for name, value in said.items():
            yield from _unlike(f"{path}/{name}", value, found.get(name))
    elif said != found:
        numbers = isinstance(said, float) and isinstance(found, int | float)
        if not (numbers and isclose(said, found, rel_tol=_DIGITS)):
            yield path, said, found
