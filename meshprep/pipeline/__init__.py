"""The steps from a mesh and its loops to a plan, in order."""
