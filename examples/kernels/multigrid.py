"""Two levels of linear elements: what a smoother does, and what goes up and down between levels."""

# Damped Jacobi takes the rough part of an error best with about this.
OMEGA = 0.8


def stiffness(weight, x1, x2, residual1, residual2):
    """Take an edge's share of the operator off the residual."""
    pull = weight[0] * (x2[0] - x1[0])
    residual1[0] += pull
    residual2[0] -= pull


def smooth(source, inverse, residual, x, square):
    """Damped Jacobi; ``inverse`` is 0 where x is given. The residual starts again from zero."""
    left = source[0] + residual[0]
    x[0] += OMEGA * inverse[0] * left
    residual[0] = 0.0
    if inverse[0] > 0.0:
        square[0] += left * left


def restrict(source, inverse, residual, coarse1, coarse2):
    """Hand what is left to the ends of the coarse edge that a point halves, or to its point."""
    left = source[0] + residual[0] if inverse[0] > 0.0 else 0.0
    coarse1[0] += 0.5 * left
    coarse2[0] += 0.5 * left
    residual[0] = 0.0


def prolong(inverse, coarse1, coarse2, x):
    """Add the correction, which is linear along the edges of the coarse level."""
    if inverse[0] > 0.0:
        x[0] += 0.5 * (coarse1[0] + coarse2[0])
