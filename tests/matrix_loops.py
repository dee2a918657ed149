"""A loop that adds to a matrix, for the tests of plans with matrices."""

from meshprep.loops.requests import LoopRequest


def stiffness(rows="cells->dofs2", columns=None, name="stiffness", over="cells", **more):
    """A loop that adds to K, and reads where the nodes are."""
    args = [
        {"dat": "x", "map": f"{over}->nodes", "dim": 2},
        {"mat": "K", "rows": rows, "columns": columns or rows, "access": "inc", **more},
    ]
    return LoopRequest(name, {"over": over, "args": args}, "test")
