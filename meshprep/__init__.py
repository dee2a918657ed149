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
    from .io.networkx_objects import from_networkx, to_networkx
    from .io.skfem_objects import from_skfem, to_skfem
    from .loops import LoopRequest, read_requests
    from .loops.options import Options
    from .mesh import Dat, ElementSet, IndexList, Mesh, SetMap, Tag
    from .pipeline.skfem_forms import FormAssembly
    from .pipeline.steps import Prepared, prepare
    from .topology import derive

_HOME = {
    "Access": "meshprep_runtime",
    "Arg": "meshprep_runtime",
    "Dat": "meshprep.mesh",
    "ElementSet": "meshprep.mesh",
    "FormAssembly": "meshprep.pipeline.skfem_forms",
    "IndexList": "meshprep.mesh",
    "Loop": "meshprep_runtime",
    "LoopRequest": "meshprep.loops",
    "Mesh": "meshprep.mesh",
    "MeshprepError": "meshprep_runtime",
    "Options": "meshprep.loops.options",
    "Ordering": "meshprep_runtime",
    "ParLoop": "meshprep_runtime",
    "Plan": "meshprep_runtime",
    "PlanError": "meshprep_runtime",
    "Prepared": "meshprep.pipeline.steps",
    "SetMap": "meshprep.mesh",
    "Tag": "meshprep.mesh",
    "derive": "meshprep.topology",
    "from_meshio": "meshprep.io.meshio_objects",
    "from_networkx": "meshprep.io.networkx_objects",
    "from_skfem": "meshprep.io.skfem_objects",
    "prepare": "meshprep.pipeline.steps",
    "read": "meshprep.io",
    "read_requests": "meshprep.loops",
    "to_meshio": "meshprep.io.meshio_objects",
    "to_networkx": "meshprep.io.networkx_objects",
    "to_skfem": "meshprep.io.skfem_objects",
    "write": "meshprep.io",
}

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
    "Ordering",
    "ParLoop",
    "Plan",
    "PlanError",
    "Prepared",
    "SetMap",
    "Tag",
    "derive",
    "from_meshio",
    "from_networkx",
    "from_skfem",
    "prepare",
    "read",
    "read_requests",
    "to_meshio",
    "to_networkx",
    "to_skfem",
    "write",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'meshprep' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
