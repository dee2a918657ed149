"""A wheel with the headers for C and C++, and with machine code where ``make wheel`` made some."""

import os
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# A folder with archives of machine code; without it the wheel is for any machine.
COMPILED = "MESHPREP_COMPILED"


class CompiledKernels(BuildHookInterface):
    """Adds the compiled kernels, and names the Python, the platform and the numba they are for."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds."""
        if version == "editable":
            return
        build_data["force_include"]["include/meshprep"] = "meshprep/include"
        place = os.environ.get(COMPILED)
        if not place:
            return
        archives = sorted(Path(place).resolve().glob("*.zip"))
        if not archives:
            raise FileNotFoundError(
                f"{COMPILED}={place}: there is no machine code: make wheel"
            )
        inside = {str(f): f"meshprep/kernels/shipped/{f.name}" for f in archives}
        build_data["force_include"].update(inside)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        exact = [f"{name}=={version_of(name)}" for name in ("numba", "llvmlite")]
        build_data["dependencies"] += [f"{pin}; extra == 'compiled'" for pin in exact]
