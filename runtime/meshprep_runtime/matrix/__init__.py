"""Sparse matrices that loops add to: how they are stored, and assembled.

Names are loaded when first used: stores need numpy alone, assembly compiles loops.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assemble import Assembly, zero_rows_and_columns
    from .batch import BatchSums
    from .ranks import BatchRows
    from .stores import CsrMatrix, Ellpack, LocalMatrices

_HOME = {
    **dict.fromkeys(("Assembly", "zero_rows_and_columns"), "assemble"),
    **{"BatchRows": "ranks", "BatchSums": "batch"},
    **dict.fromkeys(("CsrMatrix", "Ellpack", "LocalMatrices"), "stores"),
}

__all__ = [
    "Assembly",
    "BatchRows",
    "BatchSums",
    "CsrMatrix",
    "Ellpack",
    "LocalMatrices",
    "zero_rows_and_columns",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'meshprep_runtime.matrix' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
