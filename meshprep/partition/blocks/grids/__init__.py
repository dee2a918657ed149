"""Grids of quads and hexahedra: places in steps along their lines, and bricks of them."""
