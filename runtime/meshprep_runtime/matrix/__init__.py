"""Sparse matrices that loops add to: how they are stored, assembled, multiplied and solved.

Names are loaded when first used: stores need numpy alone, assembly compiles loops.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assemble import Assembly, zero_rows_and_columns
    from .batch import BatchRows, BatchSums
    from .cuda_products import to_gpu
    from .part_products import PartProduct
    from .parts import PartAssembly, dot_on
    from .products import Product
    from .search import ProductTuner
    from .solve import ColouredSsor, Jacobi, cg
    from .stores import CsrMatrix, Ellpack, LocalMatrices

_HOME = {
    **dict.fromkeys(("Assembly", "zero_rows_and_columns"), "assemble"),
    **dict.fromkeys(("BatchRows", "BatchSums"), "batch"),
    **dict.fromkeys(("PartAssembly", "dot_on"), "parts"),
    "to_gpu": "cuda_products",
    **{"PartProduct": "part_products", "Product": "products", "ProductTuner": "search"},
    **dict.fromkeys(("ColouredSsor", "Jacobi", "cg"), "solve"),
    **dict.fromkeys(("CsrMatrix", "Ellpack", "LocalMatrices"), "stores"),
}

__all__ = [
    "Assembly",
    "BatchRows",
    "BatchSums",
    "ColouredSsor",
    "CsrMatrix",
    "Ellpack",
    "Jacobi",
    "LocalMatrices",
    "PartAssembly",
    "PartProduct",
    "Product",
    "ProductTuner",
    "cg",
    "dot_on",
    "to_gpu",
    "zero_rows_and_columns",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'meshprep_runtime.matrix' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
