"""Meshes cut into parts, one for each rank of a distributed run [R14 7.1]."""
