"""Read and write plans as HDF5 files under a seal; outputs appear whole or not at all."""
