"""The loops of a solver: read from loops.toml or from text, bound to a mesh."""
