"""Machine code of kernels that came with the package, for a family of processors."""

import os
import platform
import zipfile
from contextlib import suppress
from pathlib import Path

import meshprep
from meshprep_runtime.kernel.cache import compiled_for, make_private, root

SHIPPED = Path(meshprep.__file__).parent / "kernels" / "shipped"
# What packages are compiled for, by machine, in LLVM's words; and what that needs.
FAMILIES = {"x86_64": "x86-64-v3", "aarch64": "generic"}
NEEDED = {
    "x86-64-v3": "avx avx2 bmi bmi2 cx16 f16c fma lzcnt movbe popcnt sahf sse4.2 xsave",
    "generic": "neon",
}


def use_shipped() -> None:
    """Compile for the family from now on, and take what came with the package, where it fits.

    Before kernels are imported: numba asks for the processor once. Other programs' processes are
    left alone; their kernels are compiled for their processor.
    """
    if not SHIPPED.is_dir():
        return
    from llvmlite import binding
    from numba.core import config

    family = FAMILIES.get(platform.machine(), "")
    archive = SHIPPED / f"{compiled_for(family)}.zip"
    own = binding.get_host_cpu_features()
    fits = archive.is_file() and all(own.get(one) for one in NEEDED[family].split())
    if not fits or getattr(config, "CPU_NAME", None) not in (None, family):
        return
    for name, value in (("CPU_NAME", family), ("CPU_FEATURES", "")):
        setattr(config, name, value)
        # for the processes that compile
        os.environ[f"NUMBA_{name}"] = value
    if (top := root()) is None:
        return
    place = top / "kernels" / archive.stem
    with suppress(OSError), zipfile.ZipFile(archive) as content:
        for name in content.namelist():
            if not name.endswith("/") and not (place / name).exists():
                make_private((place / name).parent)
                (place / name).write_bytes(content.read(name))
