"""The mesh of a plan and the blocks of its elements, for pictures and ParaView files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan import LoopPlan, Plan, Variant

from ..io.source import MeshSource
from ..mesh import Mesh
from ..mesh.original import original_of
from .draw import Scene, place


@dataclass(frozen=True, eq=False)
class NamedMesh:
    """A mesh and the file it is from."""

    name: str
    mesh: Mesh


@dataclass(frozen=True, eq=False)
class BlockValues:
    """Block, colours and reuse of every element of a loop, by the input's numbers."""

    # (n,)
    block: NDArray[np.int32]
    block_colour: NDArray[np.int32]
    thread_colour: NDArray[np.int32]
    # (n,): the block of the input order, cut into runs of the block size.
    input_block: NDArray[np.int32]
    # (n,): reuse factor of the element's block; 1 where nothing is reached through a map.
    reuse: NDArray[np.float64]


def mesh_of(plan: Plan, meshes: Sequence[NamedMesh]) -> NamedMesh:
    """The mesh that a plan was made from, brought back from a renumbered one.

    Raises MeshprepError where it is not among the meshes.
    """
    for named in meshes:
        original = original_of(named.mesh, plan)
        if original is not None:
            return NamedMesh(named.name, original)
    if not meshes:
        raise MeshprepError("a plan holds no coordinates: name its mesh with --mesh")
    names = ", ".join(named.name for named in meshes)
    raise MeshprepError(f"the plan was made from another mesh than {names}")


def bare(mesh: Mesh) -> Mesh:
    """The mesh with sets, maps and coordinates alone."""
    coordinates = [d for d in mesh.dats if d.name == "coordinates" and d.set == "nodes"]
    return Mesh(mesh.sets.values(), mesh.maps.values(), coordinates)


def scene_of(plan: Plan, loop: str, named: NamedMesh) -> Scene:
    """Where the elements of a loop lie. Raises MeshprepError where that is unknown."""
    return place(named.mesh, plan[loop].loop.over, plan.maps)


def block_values(plan: Plan, loop: str, variant: str | None = None) -> BlockValues:
    """Block, colours and reuse of the elements of a loop. O(n)."""
    # By the plan's numbers first, then in the order of the input.
    loop_plan = plan[loop]
    chosen = loop_plan.variant(variant)
    plan_id = plan.ordering[loop_plan.loop.over].old_to_new
    block = chosen.block_of_element()[plan_id]
    thread_colour = chosen.by_element(chosen.thread_colour)[plan_id]
    input_id = np.arange(plan_id.size, dtype=np.int32)
    return BlockValues(
        block=block,
        block_colour=chosen.colour_of_block()[block],
        thread_colour=thread_colour.astype(np.int32),
        input_block=input_id // np.int32(chosen.block_size),
        reuse=block_reuse(loop_plan, chosen)[block],
    )


def block_reuse(loop_plan: LoopPlan, variant: Variant) -> NDArray[np.float64]:
    """Reuse factor of every block; 1 where nothing is reached through a map."""
    arity = sum(loop_plan.maps[name].arity for name in loop_plan.loop.maps)
    accesses = np.diff(variant.block_offset) * arity
    loads = np.zeros(variant.n_blocks, np.int64)
    for staging in variant.staging.values():
        loads += np.diff(staging.point_offset)
    return np.where(loads > 0, accesses / np.maximum(loads, 1), 1.0)


def read_meshes(paths: Sequence[Path], plans: Sequence[Plan] = ()) -> list[NamedMesh]:
    """Read mesh files, with the plans' options about sets; raises MeshprepError."""
    sources = [MeshSource(path).declared_by(plans) for path in paths]
    return [NamedMesh(str(source.path), bare(source.read())) for source in sources]
