"""``meshprep restore``: values on sets back into the order of the mesh file."""

from __future__ import annotations

from . import options
from .apply import Fields, Output, PlanFile, SetsFile, move


def run(
    plan: PlanFile,
    fields: Fields,
    output: Output = None,
    sets: options.Sets = None,
    loops: SetsFile = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Bring values from the plan's order back into the mesh file's; writes FIELDS-restored."""
    move(plan, fields, output, options.declared(sets, loops), True, force, as_json)
