"""Machine code of programs on disk: found by the content of everything that went into it."""

import contextlib
import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..kernel.analysis import reach, stable
from ..kernel.cache import folder as loops_folder
from ..kernel.cache import write_whole
from . import nvrtc
from .nvrtc import Compiled, compile_program
from .programs import CudaProgram

MOST_KEPT = 2000
# What turns text and kernels into machine code, by its name on the package index.
PACKAGES = (
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-nvrtc-cu12",
    "nvidia-nvjitlink",
    "nvidia-nvjitlink-cu12",
    "nvidia-nvvm",
    "numba-cuda",
    "numba",
    "llvmlite",
)


def compiled(program: CudaProgram, arch: str) -> Compiled:
    """What :func:`nvrtc.compile_program` gives, from disk where it is known.

    Kernels in Python that reach objects without a content to compare are compiled every time. A
    file that is damaged is made anew; one that cannot be written is left out. Processes may share
    the folder. Raises MissingPackageError and MeshprepError as compiling does.
    """
    place = _place(program, arch)
    found = None if place is None else _read(place)
    if found is None:
        found = compile_program(program, arch)
        if place is not None:
            # The folder may be full, or not ours.
            with contextlib.suppress(OSError):
                _write(place, found)
    return found


def _place(program: CudaProgram, arch: str) -> Path | None:
    above = loops_folder()
    kernel = getattr(program, "kernel", None)
    content = None if kernel is None else stable(reach(kernel.function))
    if above is None or (kernel is not None and content is None):
        return None
    parts = (program.cuda, arch, program.fastmath, content, _versions())
    name = hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
    return above.with_name("cubins") / f"{name}.cubin"


def _read(place: Path) -> Compiled | None:
    try:
        head, _, cubin = place.read_bytes().partition(b"\n")
        digest, registers, spilled = head.decode("ascii").split()
        if hashlib.sha256(cubin).hexdigest() == digest:
            return Compiled(cubin, int(registers), int(spilled))
    except (OSError, ValueError):
        pass
    return None


def _write(place: Path, made: Compiled) -> None:
    digest = hashlib.sha256(made.cubin).hexdigest()
    head = f"{digest} {made.registers} {made.spilled}\n".encode()
    write_whole(place, head + made.cubin)
    found = sorted(place.parent.glob("*.cubin"), key=lambda p: p.stat().st_mtime)
    for old in found[:-MOST_KEPT]:
        old.unlink(missing_ok=True)


@cache
def _versions() -> tuple[str, ...]:
    """The compilers, and the code of this runtime that asks them."""
    found = []
    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    here = Path(nvrtc.__file__).parent
    own = [p for p in (here / f"{n}.py" for n in ("nvrtc", "element")) if p.exists()]
    return (*found, *(hashlib.sha256(p.read_bytes()).hexdigest() for p in own))
