"""What a product with the matrix of quads moves, by formula [R14 3.2.4]; caches are left out."""

from dataclasses import dataclass

INDEX_BYTES = 4


@dataclass(frozen=True)
class QuadElement:
    """Counts of Lagrange elements of one degree on a large structured mesh of quads [R14 3.13]."""

    degree: int  # at least 1

    @property
    def dofs(self) -> int:
        return (self.degree + 1) ** 2

    @property
    def rows(self) -> int:
        """Rows of the matrix for each element: of its vertex, its edges, its inside."""
        return self.degree**2

    @property
    def nonzeros(self) -> int:
        """Nonzeros of the matrix for each element [R14 equation 3.17]."""
        p = self.degree
        vertex, edge, inside = (2 * p + 1) ** 2, (2 * p + 1) * (p + 1), (p + 1) ** 2
        return vertex + 2 * (p - 1) * edge + (p - 1) ** 2 * inside


def against_lma(degree: int, store: str, itemsize: int) -> float:
    """How many times the bytes of local matrices ``ellpack`` or ``csr`` moves [R14 Table 3.1]."""
    one = QuadElement(degree)
    # values and indices for each element [R14 equations 3.16 to 3.18]
    moved = {
        "lma": (one.dofs**2 + 2 * one.dofs, one.dofs),
        "ellpack": (2 * one.nonzeros + one.rows, one.nonzeros),
        "csr": (2 * one.nonzeros + one.rows, one.nonzeros + one.rows),
    }
    nbytes = {name: v * itemsize + i * INDEX_BYTES for name, (v, i) in moved.items()}
    return nbytes[store] / nbytes["lma"]
