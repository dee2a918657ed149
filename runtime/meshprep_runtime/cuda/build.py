"""Compiles a program to machine code by NVRTC: no GPU and no driver are needed.

Where the kernel is in Python, NVRTC and numba-cuda make LTO-IR, which nvJitLink joins: the kernel
is inlined. The libraries come with numba-cuda, and so do the bindings they are called by.
"""

import contextlib
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..errors import MeshprepError, MissingPackageError
from ..kernel.analysis import reach, stable
from ..kernel.cache import folder as loops_folder
from ..kernel.cache import write_whole
from .programs import CudaProgram

OPTIONS = ("--std=c++17",)
# What comes from a cache of the compilers says nothing of registers.
NO_CACHE = "-no-cache"
VERBOSE = "--ptxas-options=-v"
# What "fastmath" is to NVRTC and to nvJitLink.
FAST_TEXT = ("--use_fast_math",)
FAST_LINK = ("-ftz=1", "-prec-div=0", "-prec-sqrt=0")


# With a smaller share of the registers that it would take, any kernel spills.
LEAST_LEFT = 0.8


@dataclass(frozen=True)
class Compiled:
    """Machine code for one architecture, and what a thread takes there."""

    cubin: bytes
    registers: int  # registers of a thread
    spilled: int  # bytes that a thread writes to and reads from memory for want of registers


def compile_program(program: CudaProgram, arch: str = "sm_90") -> Compiled:
    """Compile a program for an architecture such as ``"sm_75"``, ``"sm_80"``, ``"sm_90"``.

    Raises MissingPackageError where there is no NVRTC; for a kernel in Python, no numba-cuda or
    nvJitLink. Raises MeshprepError when the text or the kernel does not compile, with the first
    error; for an unknown architecture. A tenth of a second; with a kernel in Python about a second,
    of which numba's part is kept. What spills registers is compiled once more with fewer blocks on
    a multiprocessor in mind. What does not, with one more than its registers allow: it is taken
    where nothing spills by it.
    """
    made = _compile(program, arch)
    if made.spilled:
        # Left alone, the compiler spills a few bytes to fit more blocks on a multiprocessor.
        roomy = _resident(program, arch, 1)
        return roomy if roomy.spilled < made.spilled else made
    blocks = by_registers(made.registers, program.threads) + 1
    fits = blocks <= resident_at_most(arch, program.threads, program.shared_bytes)
    if not fits or most_registers(blocks, program.threads) < LEAST_LEFT * made.registers:
        return made
    tight = _resident(program, arch, blocks)
    return made if tight.spilled else tight


def _resident(program: CudaProgram, arch: str, blocks: int) -> Compiled:
    """As compiled so that this many blocks fit on a multiprocessor."""
    return _compile(program, arch, f"--define-macro=MP_RESIDENT={blocks}")


def assembly(program: CudaProgram, arch: str = "sm_90") -> str:
    """PTX of a program, with the lines of :attr:`CudaProgram.cuda` that it comes from."""
    virtual = arch.replace("sm_", "compute_")
    options = (f"--gpu-architecture={virtual}", "--generate-line-info")
    if program.kernel is None:
        return _translate(program, "PTX", *options)[0].decode().strip("\0")
    parts = (_translate(program, "LTOIR", "-dlto", *options)[0], program.kernel.ltoir(arch))
    return _link(parts, arch, program.fastmath, "-ptx", "-lineinfo")[0].decode().strip("\0")


def _compile(program: CudaProgram, arch: str, *options: str) -> Compiled:
    if program.kernel is None:
        options = (f"--gpu-architecture={arch}", VERBOSE, *options)
        cubin, log = _translate(program, "CUBIN", *options)
    else:
        kernel = program.kernel.ltoir(arch)
        virtual = arch.replace("sm_", "compute_")
        options = (f"--gpu-architecture={virtual}", "-dlto", *options)
        cubin, log = _link(
            (_translate(program, "LTOIR", *options)[0], kernel), arch, program.fastmath
        )
    return Compiled(cubin, _sum(r"Used (\d+) registers", log), _sum(r"(\d+) bytes spill", log))


def _translate(program: CudaProgram, what: str, *options: str) -> tuple[bytes, str]:
    """What NVRTC makes of the text, and its log."""
    nvrtc = _nvrtc()
    handle = _value(nvrtc.nvrtcCreateProgram(program.cuda.encode(), b"loop.cu", 0, [], []))
    try:
        fast = FAST_TEXT if program.fastmath else ()
        words = [o.encode() for o in (*options, *OPTIONS, *_uncached(), *fast)]
        (status,) = nvrtc.nvrtcCompileProgram(handle, len(words), words)
        log = _bytes(handle, "ProgramLog").decode(errors="replace").strip("\0")
        if status:
            lines = [line for line in log.splitlines() if "error" in line] or log.splitlines()
            raise MeshprepError(f"the CUDA text does not compile: {lines[0].strip()}")
        return _bytes(handle, what), log
    finally:
        nvrtc.nvrtcDestroyProgram(handle)


def _link(
    parts: Sequence[bytes], arch: str, fastmath: bool = False, *wanted: str
) -> tuple[bytes, str]:
    """LTO-IR to machine code (PTX where that is wanted), and what the linker says of it."""
    # It came with numba-cuda, which has made one of the parts.
    from cuda.bindings import nvjitlink

    verbose = wanted or ("-Xptxas=-v", "-verbose")
    options = [f"-arch={arch}", "-lto", NO_CACHE, *verbose, *(FAST_LINK if fastmath else ())]
    what = "ptx" if wanted else "cubin"
    handle = nvjitlink.create(len(options), options)
    try:
        for part in parts:
            nvjitlink.add_data(handle, nvjitlink.InputType.LTOIR, part, len(part), "loop")
        nvjitlink.complete(handle)
        made = bytearray(getattr(nvjitlink, f"get_linked_{what}_size")(handle))
        getattr(nvjitlink, f"get_linked_{what}")(handle, made)
        log = bytearray(nvjitlink.get_info_log_size(handle))
        nvjitlink.get_info_log(handle, log)
    except nvjitlink.nvJitLinkError as error:
        said = bytearray(nvjitlink.get_error_log_size(handle))
        nvjitlink.get_error_log(handle, said)
        lines = said.decode(errors="replace").strip("\0\n ").splitlines() or [str(error)]
        raise MeshprepError(f"the loop and its kernel do not link: {lines[0]}") from error
    finally:
        nvjitlink.destroy(handle)
    return bytes(made), log.decode(errors="replace")


@cache
def _uncached() -> tuple[str, ...]:
    """The option that leaves NVRTC's cache out; since CUDA 12.9 it has one."""
    _, *version = _nvrtc().nvrtcVersion()
    return (f"-{NO_CACHE}",) if version >= [12, 9] else ()


def _sum(pattern: str, log: str) -> int:
    found = re.findall(pattern, log)
    if not found:
        raise MeshprepError("NVRTC did not say what the kernel takes: use another version of it")
    return sum(map(int, found))


def _bytes(handle: Any, what: str) -> bytes:
    found = bytearray(_value(getattr(_nvrtc(), f"nvrtcGet{what}Size")(handle)))
    _value(getattr(_nvrtc(), f"nvrtcGet{what}")(handle, found))
    return bytes(found)


def _value(result: tuple[Any, ...]) -> Any:
    """What a function of NVRTC returns behind its status, which must be that all went well."""
    status, *values = result
    if status:
        raise MeshprepError(f"NVRTC: {_nvrtc().nvrtcGetErrorString(status)[1].decode()}")
    return values[0] if values else None


def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc
        from cuda.pathfinder import load_nvidia_dynamic_lib

        load_nvidia_dynamic_lib("nvrtc")
    except (ImportError, RuntimeError) as error:
        raise MissingPackageError(
            "compiling CUDA text needs NVRTC: pip install 'meshprep-runtime[check]'"
        ) from error
    return nvrtc


REGISTERS, REGISTER_UNIT, WARP_UNIT = 65536, 8, 32
# Threads, blocks and KB of shared memory of a multiprocessor, by compute capability: from NVIDIA's
# CUDA C++ Programming Guide.
LIMITS = {
    60: (2048, 32, 64),
    70: (2048, 32, 96),
    75: (1024, 16, 64),
    80: (2048, 32, 164),
    86: (1536, 16, 100),
    89: (1536, 24, 100),
    120: (1536, 24, 100),
}
LATER = (2048, 32, 228)
# Bytes that the system takes for each block, from 8.0 on.
RESERVED = 1024


def by_registers(registers: int, threads: int) -> int:
    """Blocks whose registers fit."""
    each = -(-registers // REGISTER_UNIT) * REGISTER_UNIT
    return REGISTERS // (each * -(-threads // WARP_UNIT) * WARP_UNIT)


def most_registers(blocks: int, threads: int) -> int:
    """Registers of a thread with which so many blocks fit."""
    each = REGISTERS // (blocks * -(-threads // WARP_UNIT) * WARP_UNIT)
    return each // REGISTER_UNIT * REGISTER_UNIT


def resident_at_most(arch: str, threads: int, shared_bytes: int) -> int:
    """Blocks that fit but for their registers."""
    most_threads, most_blocks, kilobytes = LIMITS.get(int(re.sub(r"\D", "", arch)), LATER)
    fit = kilobytes * 1024 // (shared_bytes + RESERVED)
    return min(most_threads // max(threads, 1), most_blocks, fit)


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
    """What :func:`compile_program` gives, from disk where it is known.

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
    here = Path(__file__).parent
    own = [here / f"{n}.py" for n in ("build", "source/element")]
    return (*found, *(hashlib.sha256(p.read_bytes()).hexdigest() for p in own))
