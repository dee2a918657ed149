"""Numbers and words of text files, read and written by compiled kernels."""
