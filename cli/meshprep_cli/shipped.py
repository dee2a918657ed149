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
    """Compile for the family from now on, with the package's machine code where it fits.

    Before kernels are imported: numba asks for the processor once. Other programs'
    processes are left alone; their kernels are compiled for their processor.
    """
    if not SHIPPED.is_dir():
        return
    from meshprep_runtime._numba import installed

    family = FAMILIES.get(platform.machine(), "")
    archive = SHIPPED / f"{compiled_for(family)}.zip"
    own = installed.processor_features()
    # Code for a newer processor would end the program at its first instruction.
    fits = archive.is_file() and all(own.get(name) for name in NEEDED[family].split())
    if not fits or installed.chosen_processor() not in (None, family):
        return
    # For the processes that compile.
    os.environ.update(installed.compile_for(family))
    if (top := root()) is None:
        return
    # Unpack into the cache of compiled kernels, beside what this machine compiled itself.
    kernel_folder = top / "kernels" / archive.stem
    with suppress(OSError), zipfile.ZipFile(archive) as content:
        for name in content.namelist():
            target = kernel_folder / name
            if not name.endswith("/") and not target.exists():
                make_private(target.parent)
                target.write_bytes(content.read(name))
