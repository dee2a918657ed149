"""Bilinear forms of scikit-fem, added up by a plan."""

from dataclasses import replace
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

    Where each entry goes is found once, and serves every form and every call. scikit-fem
    computes the matrices of the elements, as always.

    Parameters
    ----------
    basis : skfem.CellBasis
        Of any element; its dofs keep their numbers.
    test_basis : skfem.CellBasis, optional
        That of the rows, where it is another one.
    fixed : array of integers, optional
        Dofs of the rows that have no row (and no column, where there is one basis): the
        matrix is that of the others, in their order.

    Raises
    ------
    MeshprepError
        For two bases of different elements, and for what is no basis or, when called, no
        form.

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
            raise MeshprepError(
                "a basis of scikit-fem is needed: pass skfem.Basis(mesh, element)"
            )
        if rows.nelems != basis.nelems:
            raise MeshprepError(
                f"the bases have {basis.nelems} and {rows.nelems} elements: "
                "they must be the same"
            )
        self._bases: tuple[Any, ...] = (basis,)
        if test_basis is not None:
            self._bases = (basis, test_basis)

        # Find the nonzero of each entry once: it is the same for every form.
        self.plan = _plan_of_bases(basis, test_basis, np.asarray(fixed, dtype=np.int64))
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
        if not hasattr(form, "coo_data"):
            raise MeshprepError(
                "a form of scikit-fem is needed: put @skfem.BilinearForm before it"
            )
        entries = form.coo_data(*self._bases, **parameters).data
        csr = self._matrix.csr(entries.dtype)
        return replace(csr, values=self._sums(entries)).to_scipy()


def _plan_of_bases(basis: Any, test_basis: Any, fixed: np.ndarray) -> Plan:
    """The plan of a loop over the elements that adds to one matrix."""
    # A mesh of cells and dofs, where the dofs of the rows may be another set.
    row_set = "dofs"
    basis_of_set = {"dofs": basis}
    if test_basis is not None:
        row_set = "rows"
        basis_of_set["rows"] = test_basis
    sets = [ElementSet("cells", basis.nelems)]
    maps = []
    for name, own in basis_of_set.items():
        sets.append(ElementSet(name, own.N))
        table = own.element_dofs.T
        maps.append(
            SetMap(name=f"cells->{name}", from_set="cells", to_set=name, table=table)
        )

    # Dofs without a row are group 1 of them.
    marked = np.zeros(basis_of_set[row_set].N, np.int64)
    marked[fixed] = 1
    mesh = Mesh(sets, maps, tags=[Tag.from_ids("fixed", row_set, marked)])

    # A loop that adds to the matrix; scikit-fem's dofs keep their numbers.
    arg = {
        "mat": NAME,
        "rows": f"cells->{row_set}",
        "columns": "cells->dofs",
        "access": "inc",
        "fixed": [1] if fixed.size else [],
    }
    request = LoopRequest(NAME, {"over": "cells", "args": [arg]}, "a form of scikit-fem")
    return prepare(
        mesh=mesh,
        loops=[request],
        options=Options(target="cpu", method="none"),
        keep_order=True,
    ).plan
