"""The lean runtime: load a plan made by meshprep and run loops on it.

Importing it loads numpy and nothing heavier; h5py comes with ``Plan.load``, numba with the first
``ParLoop``.
"""

from typing import TYPE_CHECKING, Any

from .errors import MeshprepError, MissingPackageError, PlanError
from .loops import Access, Arg, Loop
from .maps import SetMap
from .ordering import Ordering
from .plan import LoopPlan, Plan, Staging, Variant

if TYPE_CHECKING:
    from .loop import ParLoop

__version__ = "0.1.0"

__all__ = [
    "Access",
    "Arg",
    "Loop",
    "LoopPlan",
    "MeshprepError",
    "MissingPackageError",
    "Ordering",
    "ParLoop",
    "Plan",
    "PlanError",
    "SetMap",
    "Staging",
    "Variant",
]


def __getattr__(name: str) -> Any:
    # ParLoop brings code generation; loaded on first use.
    if name == "ParLoop":
        from .loop import ParLoop

        return ParLoop
    raise AttributeError(f"module 'meshprep_runtime' has no attribute '{name}'")
