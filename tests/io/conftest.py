"""Lets the tests of this folder import the meshes they share, and what spoils files."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "campaign"))
sys.path.insert(0, str(Path(__file__).parent))
