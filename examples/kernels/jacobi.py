"""Jacobi's iteration for A u = b [G10 section 5]: a matrix as a loop over its entries.

An entry is an edge from the row to the column. Rows are scaled so that the diagonal is 1.
"""


def multiply(a, u, change):
    """Take an entry times the value of its column off its row."""
    change[0] -= a[0] * u[0]


def update(b, change, u, square, largest):
    """Move on; what the entries add starts again from zero."""
    step = b[0] + change[0]
    u[0] += step
    change[0] = 0.0
    square[0] += step * step
    largest[0] = max(largest[0], abs(step))
