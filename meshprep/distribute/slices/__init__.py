"""Splitting on ranks that hold slices: no array on any of them is as long as the mesh."""
