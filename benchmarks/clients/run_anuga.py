"""ANUGA: the shallow water equations, a dam that breaks."""

import anuga
import numpy as np
from client_run import main
from gmsh_text import read_gmsh

FINAL_TIME = 0.01


def boundary_of(triangles, lines, tags):
    """The tag of each side of a triangle that is a line of the border."""
    tag_of = {}
    for line, tag in zip(lines.tolist(), tags.tolist(), strict=True):
        tag_of[frozenset(line)] = f"side{tag}"
    boundary = {}
    # Side k of a triangle is opposite its corner k.
    for side in range(3):
        left = triangles[:, (side + 1) % 3].tolist()
        right = triangles[:, (side + 2) % 3].tolist()
        for triangle, ends in enumerate(zip(left, right, strict=True)):
            tag = tag_of.get(frozenset(ends))
            if tag is not None:
                boundary[triangle, side] = tag
    return boundary


def solve(mesh_file, own_order, clock):
    """Walls all around."""
    points, cells, tags = read_gmsh(mesh_file)
    triangles = cells["triangle"]
    boundary = boundary_of(triangles, lines=cells["line"], tags=tags["line"])
    with clock.phase("preparing"):
        domain = anuga.Domain(points[:, :2], triangles, boundary)
        domain.set_store(False)
        domain.set_quantity("elevation", 0.0)
        domain.set_quantity("stage", lambda x, y: 1.0 + 0.5 * (x < 0.5))
        if own_order:
            anuga.reorder_domain(domain, method="rcm")
        wall = anuga.Reflective_boundary(domain)
        domain.set_boundary(dict.fromkeys(domain.get_boundary_tags(), wall))
    with clock.phase("steps"):
        for _ in domain.evolve(yieldstep=FINAL_TIME, finaltime=FINAL_TIME):
            pass
    depth = domain.quantities["stage"].centroid_values
    momentum = domain.quantities["xmomentum"].centroid_values
    return {
        "steps": domain.number_of_steps,
        "squared depth": np.sum(domain.areas * depth**2),
        "momentum": np.sum(domain.areas * momentum),
    }


if __name__ == "__main__":
    main(solve)
