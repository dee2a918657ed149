"""Prepares unstructured meshes so that solvers run fast."""
