"""The lean runtime: load a plan made by meshprep and run loops on it.

Names are loaded when first used: numpy comes with the first of them, h5py with
``Plan.load``, numba with the first ``ParLoop``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import (
        DistributedError,
        MeshprepError,
        MeshprepWarning,
        MissingPackageError,
        PlanError,
        UntestedVersionWarning,
    )
    from .loop import ParLoop
    from .plan import LoopPlan, Plan, Staging, Variant
    from .plan.matrices import MatrixPlan
    from .program.chains.chain import Chain
    from .program.chains.records import ReducedGlobal
    from .program.dat import ProgramDat
    from .program.distributed import DistributedPlan
    from .program.loopback import run_ranks
    from .program.program import Program
    from .types.loops import Access, Arg, Loop
    from .types.maps import SetMap
    from .types.ordering import Ordering

__version__ = "0.3.0"

# The module that holds each public name; it is imported when the name is first used.
_HOME = {
    "Access": "types.loops",
    "Arg": "types.loops",
    "Chain": "program.chains.chain",
    "DistributedError": "errors",
    "DistributedPlan": "program.distributed",
    "Loop": "types.loops",
    "LoopPlan": "plan",
    "MatrixPlan": "plan.matrices",
    "MeshprepError": "errors",
    "MeshprepWarning": "errors",
    "MissingPackageError": "errors",
    "Ordering": "types.ordering",
    "ParLoop": "loop",
    "Plan": "plan",
    "PlanError": "errors",
    "Program": "program.program",
    "ProgramDat": "program.dat",
    "ReducedGlobal": "program.chains.records",
    "run_ranks": "program.loopback",
    "SetMap": "types.maps",
    "Staging": "plan",
    "UntestedVersionWarning": "errors",
    "Variant": "plan",
}

__all__ = [
    "Access",
    "Arg",
    "Chain",
    "DistributedError",
    "DistributedPlan",
    "Loop",
    "LoopPlan",
    "MatrixPlan",
    "MeshprepError",
    "MeshprepWarning",
    "MissingPackageError",
    "Ordering",
    "ParLoop",
    "Plan",
    "PlanError",
    "Program",
    "ProgramDat",
    "ReducedGlobal",
    "SetMap",
    "Staging",
    "UntestedVersionWarning",
    "Variant",
    "run_ranks",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'meshprep_runtime' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
