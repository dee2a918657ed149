"""Initial blocks: recursive bisection, bricks of grids, and the coordinates both go by."""
