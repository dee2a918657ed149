"""What annealing leaves: blocks over a cap, and blocks in several pieces."""
