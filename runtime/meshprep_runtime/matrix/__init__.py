"""Sparse matrices that loops add to: how they are stored, assembled, multiplied and solved.

Names are loaded when first used: stores need numpy alone, assembly compiles loops.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assemble import Assembly, zero_rows_and_columns
    from .batch import BatchSums
    from .cuda_products import to_gpu
    from .part_products import PartProduct
    from .part_ssor import PartSsor
    from .parts import PartAssembly, dot_on
    from .powers import PartPowers
    from .products import Product
    from .solve import Jacobi, cg
    from .ssor import ColouredSsor
    from .stores import CsrMatrix, Ellpack, LocalMatrices

# The module of each name.
_HOME = {
    "Assembly": "assemble",
    "BatchSums": "batch",
    "ColouredSsor": "ssor",
    "CsrMatrix": "stores",
    "Ellpack": "stores",
    "Jacobi": "solve",
    "LocalMatrices": "stores",
    "PartAssembly": "parts",
    "PartPowers": "powers",
    "PartProduct": "part_products",
    "PartSsor": "part_ssor",
    "Product": "products",
    "cg": "solve",
    "dot_on": "parts",
    "to_gpu": "cuda_products",
    "zero_rows_and_columns": "assemble",
}

__all__ = [
    "Assembly",
    "BatchSums",
    "ColouredSsor",
    "CsrMatrix",
    "Ellpack",
    "Jacobi",
    "LocalMatrices",
    "PartAssembly",
    "PartPowers",
    "PartProduct",
    "PartSsor",
    "Product",
    "cg",
    "dot_on",
    "to_gpu",
    "zero_rows_and_columns",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'meshprep_runtime.matrix' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
