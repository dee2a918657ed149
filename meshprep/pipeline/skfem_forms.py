"""Bilinear forms of scikit-fem, added up by a plan."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.matrix import BatchSums
from meshprep_runtime.plan import Plan
from meshprep_runtime.types.maps import SetMap

from ..loops.options import Options
from ..loops.requests import LoopRequest
from ..mesh import ElementSet, Mesh, Tag
from .steps import prepare

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NAME = "form"


class FormAssembly:
    """Assembles bilinear forms over the elements of one scikit-fem basis.

    Where each entry goes is found once, and serves every form and every call. scikit-fem computes
    the matrices of the elements, as always.

    Parameters
    ----------
    basis : skfem.CellBasis
        Of any element; its dofs keep their numbers.
    test_basis : skfem.CellBasis, optional
        That of the rows, where it is another one.
    fixed : array of integers, optional
        Dofs of the rows that have no row (and no column, where there is one basis): the matrix is
        that of the others, in their order.

    Raises
    ------
    MeshprepError
        For two bases of different elements, and for what is no basis or, when called, no form.

    Examples
    --------
    >>> import skfem, meshprep
    >>> from skfem.models.poisson import laplace
    >>> basis = skfem.Basis(skfem.MeshTri().refined(3), skfem.ElementTriP2())
    >>> assemble = meshprep.FormAssembly(basis)
    >>> float(abs(assemble(laplace) - laplace.assemble(basis)).max()) < 1e-12
    True
    """

    def __init__(self, basis: Any, test_basis: Any = None, fixed: ArrayLike = ()) -> None:
        rows = basis if test_basis is None else test_basis
        if not (hasattr(basis, "element_dofs") and hasattr(rows, "element_dofs")):
            raise MeshprepError("a basis of scikit-fem is needed: pass skfem.Basis(mesh, element)")
        if rows.nelems != basis.nelems:
            raise MeshprepError(
                f"the bases have {basis.nelems} and {rows.nelems} elements: they must be the same"
            )
        self._bases = (basis,) if test_basis is None else (basis, test_basis)
        self.plan = _plan(basis, test_basis, np.asarray(fixed, dtype=np.int64))
        self._matrix = self.plan.matrices[NAME]
        place = self._matrix.place[NAME].reshape(-1, rows.Nbfun, basis.Nbfun)
        # scikit-fem has elements last, and columns first
        self._sums = BatchSums(place.transpose(2, 1, 0), self._matrix.columns.size)

    def __call__(self, form: Any, **parameters: Any) -> "csr_array":
        """Assemble a form.

        Parameters
        ----------
        form : skfem.BilinearForm
        **parameters
            As of ``form.assemble``.

        Returns
        -------
        scipy.sparse.csr_array
            With an entry for each two dofs of an element, zero or not.
        """
        from dataclasses import replace

        if not hasattr(form, "coo_data"):
            raise MeshprepError("a form of scikit-fem is needed: put @skfem.BilinearForm before it")
        entries = form.coo_data(*self._bases, **parameters).data
        csr = self._matrix.csr(entries.dtype)
        return replace(csr, values=self._sums(entries)).to_scipy()


def _plan(basis: Any, test_basis: Any, fixed: np.ndarray) -> Plan:
    """The plan of a loop over the elements that adds to one matrix."""
    sets = {"dofs": basis} if test_basis is None else {"dofs": basis, "rows": test_basis}
    rows = "dofs" if test_basis is None else "rows"
    maps = [SetMap(f"cells->{s}", "cells", s, b.element_dofs.T) for s, b in sets.items()]
    marked = np.zeros(sets[rows].N, np.int64)
    marked[fixed] = 1
    mesh = Mesh(
        [ElementSet("cells", basis.nelems), *(ElementSet(s, b.N) for s, b in sets.items())],
        maps,
        tags=[Tag.from_ids("fixed", rows, marked)],
    )
    arg = {
        **{"mat": NAME, "rows": f"cells->{rows}", "columns": "cells->dofs", "access": "inc"},
        "fixed": [1] if fixed.size else [],
    }
    request = LoopRequest(NAME, {"over": "cells", "args": [arg]}, "a form of scikit-fem")
    return prepare(mesh, [request], Options(target="cpu", method="none"), keep_order=True).plan
