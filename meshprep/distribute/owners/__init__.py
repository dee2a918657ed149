"""Which part owns each element: by a cut, by a file, or inherited through maps."""
