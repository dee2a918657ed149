"""MFEM: Poisson's equation with quadratic elements, by conjugate gradients."""

import mfem.ser as mfem
from client_run import main

PRODUCTS = 10


def solve(mesh_file, own_order, clock):
    """Zero on the whole border."""
    with clock.phase("reading"):
        mesh = mfem.Mesh(str(mesh_file), 1, 1)
        if own_order:
            ordering = mfem.intArray()
            mesh.GetHilbertElementOrdering(ordering)
            mesh.ReorderElements(ordering)
    with clock.phase("assembly"):
        elements = mfem.H1_FECollection(2, mesh.Dimension())
        space = mfem.FiniteElementSpace(mesh, elements)
        border = mfem.intArray([1] * mesh.bdr_attributes.Max())
        fixed = mfem.intArray()
        space.GetEssentialTrueDofs(border, fixed)
        one = mfem.ConstantCoefficient(1.0)
        load = mfem.LinearForm(space)
        load.AddDomainIntegrator(mfem.DomainLFIntegrator(one))
        load.Assemble()
        stiffness = mfem.BilinearForm(space)
        stiffness.AddDomainIntegrator(mfem.DiffusionIntegrator(one))
        stiffness.Assemble()
    solution = mfem.GridFunction(space)
    solution.Assign(0.0)
    matrix = mfem.OperatorPtr()
    unknowns = mfem.Vector()
    right_side = mfem.Vector()
    stiffness.FormLinearSystem(fixed, solution, load, matrix, unknowns, right_side)
    sparse = mfem.OperatorHandle2SparseMatrix(matrix)
    with clock.phase("products"):
        product = mfem.Vector(right_side.Size())
        for _ in range(PRODUCTS):
            sparse.Mult(right_side, product)
    with clock.phase("solving"):
        diagonal = mfem.DSmoother(sparse)
        mfem.PCG(sparse, diagonal, right_side, unknowns, 0, 2000, 1e-20, 0.0)
    stiffness.RecoverFEMSolution(unknowns, load, solution)
    return {
        "unknowns": solution.Size(),
        "energy": mfem.InnerProduct(solution, load),
        "largest": solution.Max(),
    }


if __name__ == "__main__":
    main(solve)
