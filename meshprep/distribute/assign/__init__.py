"""Which part owns each element: cut by our search, by METIS, read from a file, or inherited."""
