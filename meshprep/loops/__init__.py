"""The loops of a solver: read from loops.toml or from text, bound to a mesh.

Names are loaded when first used: the table of options, which every command needs, brings no numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .requests import (
        LoopRequest,
        Loops,
        LoopSpec,
        as_requests,
        default_request,
        read_requests,
        resolve,
        simple_request,
    )

__all__ = [
    "LoopRequest",
    "LoopSpec",
    "Loops",
    "as_requests",
    "default_request",
    "read_requests",
    "resolve",
    "simple_request",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'meshprep.loops' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.requests"), name)
