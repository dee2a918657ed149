"""A plan as an HDF5 file under a seal, and back; outputs that appear whole or not at all."""
