"""Prepares unstructured meshes so that solvers run fast.

    import meshprep

    mesh = meshprep.read("wing.msh")
    done = meshprep.reorder(mesh, ["faces->cells"])
    meshprep.write(done.mesh, "wing-reordered.msh")
    done.plan.save("wing.plan.h5")

Names are loaded when first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from meshprep_runtime import (
        Access,
        Arg,
        Loop,
        MeshprepError,
        Ordering,
        ParLoop,
        Plan,
        PlanError,
    )

    from .arrays.blocks import blocks
    from .arrays.checks import check_colours, check_partition
    from .arrays.colouring import BlockColouring, colour
    from .arrays.ordering import OrderedArrays, order
    from .arrays.partitioning import partition
    from .arrays.places import MatrixPlaces, places
    from .commands import check, info, plan, read, reorder, report, split, sweep, tune
    from .io import write
    from .io.meshio_objects import from_meshio, to_meshio
    from .io.objects import from_pyvista, to_pyvista
    from .io.skfem_objects import from_skfem, to_skfem
    from .loops.options import Options
    from .loops.requests import LoopRequest, read_requests
    from .mesh import Dat, ElementSet, IndexList, Mesh, SetMap, Tag
    from .pipeline.skfem_forms import FormAssembly
    from .pipeline.steps import Prepared, prepare
    from .reporting.compare import compare
    from .reporting.files import write_report
    from .topology import derive

# By module.
_NAMES = {
    "meshprep_runtime": (
        "Access Arg Loop MeshprepError Ordering ParLoop Plan PlanError __version__"
    ),
    "meshprep.arrays.blocks": "blocks",
    "meshprep.arrays.checks": "check_colours check_partition",
    "meshprep.arrays.colouring": "BlockColouring colour",
    "meshprep.arrays.partitioning": "partition",
    "meshprep.arrays.places": "MatrixPlaces places",
    "meshprep.commands": "check info plan read reorder report split sweep tune",
    "meshprep.io": "write",
    "meshprep.io.objects": "from_pyvista to_pyvista",
    "meshprep.io.meshio_objects": "from_meshio to_meshio",
    "meshprep.io.skfem_objects": "from_skfem to_skfem",
    "meshprep.loops.requests": "LoopRequest read_requests",
    "meshprep.loops.options": "Options",
    "meshprep.mesh": "Dat ElementSet IndexList Mesh SetMap Tag",
    "meshprep.arrays.ordering": "OrderedArrays order",
    "meshprep.pipeline.skfem_forms": "FormAssembly",
    "meshprep.pipeline.steps": "Prepared prepare",
    "meshprep.reporting.compare": "compare",
    "meshprep.reporting.files": "write_report",
    "meshprep.topology": "derive",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Access",
    "Arg",
    "BlockColouring",
    "Dat",
    "ElementSet",
    "FormAssembly",
    "IndexList",
    "Loop",
    "LoopRequest",
    "MatrixPlaces",
    "Mesh",
    "MeshprepError",
    "Options",
    "OrderedArrays",
    "Ordering",
    "ParLoop",
    "Plan",
    "PlanError",
    "Prepared",
    "SetMap",
    "Tag",
    "blocks",
    "check",
    "check_colours",
    "check_partition",
    "colour",
    "compare",
    "derive",
    "from_meshio",
    "from_pyvista",
    "from_skfem",
    "info",
    "order",
    "partition",
    "places",
    "plan",
    "prepare",
    "read",
    "read_requests",
    "reorder",
    "report",
    "split",
    "sweep",
    "to_meshio",
    "to_pyvista",
    "to_skfem",
    "tune",
    "write",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'meshprep' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
