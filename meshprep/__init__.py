"""Prepares unstructured meshes so that solvers run fast.

    import meshprep

    mesh = meshprep.read("wing.msh")
    done = meshprep.prepare(mesh, ["faces->cells"])
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

    from .io import read, write
    from .io.meshio_objects import from_meshio, to_meshio
    from .io.skfem_objects import from_skfem, to_skfem
    from .loops.options import Options
    from .loops.requests import LoopRequest, read_requests
    from .mesh import Dat, ElementSet, IndexList, Mesh, SetMap, Tag
    from .pipeline.arrays import OrderedArrays, order
    from .pipeline.skfem_forms import FormAssembly
    from .pipeline.steps import Prepared, prepare
    from .report.compare import compare
    from .report.files import write_report
    from .topology import derive

# By module.
_NAMES = {
    "meshprep_runtime": "Access Arg Loop MeshprepError Ordering ParLoop Plan PlanError __version__",
    "meshprep.io": "read write",
    "meshprep.io.meshio_objects": "from_meshio to_meshio",
    "meshprep.io.skfem_objects": "from_skfem to_skfem",
    "meshprep.loops.requests": "LoopRequest read_requests",
    "meshprep.loops.options": "Options",
    "meshprep.mesh": "Dat ElementSet IndexList Mesh SetMap Tag",
    "meshprep.pipeline.arrays": "OrderedArrays order",
    "meshprep.pipeline.skfem_forms": "FormAssembly",
    "meshprep.pipeline.steps": "Prepared prepare",
    "meshprep.report.compare": "compare",
    "meshprep.report.files": "write_report",
    "meshprep.topology": "derive",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Access",
    "Arg",
    "Dat",
    "ElementSet",
    "FormAssembly",
    "IndexList",
    "Loop",
    "LoopRequest",
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
    "compare",
    "derive",
    "from_meshio",
    "from_skfem",
    "order",
    "prepare",
    "read",
    "read_requests",
    "to_meshio",
    "to_skfem",
    "write",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'meshprep' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
