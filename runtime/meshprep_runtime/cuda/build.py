"""Compiles a program to machine code by NVRTC: no GPU and no driver are needed.

With a kernel in Python, NVRTC and numba-cuda make LTO-IR, which nvJitLink links: the kernel
is inlined. The libraries and their Python bindings come with numba-cuda.
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
from ..kernel.cache import keep_used_last, mark_used, write_whole
from .occupancy import by_registers, most_registers, resident_at_most
from .programs import CudaProgram

OPTIONS = ("--std=c++17",)
# Without the compilers' caches, whose results do not tell the number of registers.
NO_CACHE = "-no-cache"
VERBOSE = "--ptxas-options=-v"
# The options of NVRTC, and of nvJitLink, for ``fastmath``.
FAST_TEXT = ("--use_fast_math",)
FAST_LINK = ("-ftz=1", "-prec-div=0", "-prec-sqrt=0")

# A kernel with a smaller part of the registers that it takes by itself always spills.
LEAST_LEFT = 0.8


@dataclass(frozen=True)
class Compiled:
    """Machine code for an architecture, with its use of registers."""

    cubin: bytes
    registers: int  # of a thread
    # Bytes that a thread writes to memory and reads again, since registers do not suffice.
    spilled: int


def compile_program(program: CudaProgram, arch: str = "sm_90") -> Compiled:
    """Compile a program for an architecture.

    Parameters
    ----------
    program : CudaProgram
    arch : str
        Such as ``"sm_75"``, ``"sm_80"`` or ``"sm_90"``.

    Returns
    -------
    Compiled

    Raises
    ------
    MissingPackageError
        Where there is no NVRTC or, for a kernel in Python, no numba-cuda or nvJitLink.
    MeshprepError
        When the text or the kernel does not compile, with the first error, and for an
        unknown architecture.

    Notes
    -----
    Takes a tenth of a second; with a kernel in Python about a second, of which numba's part
    is kept. A program that spills registers is compiled again for a single block on a
    multiprocessor. One that does not spill is compiled again for one block more than its
    registers allow, and that is taken where it does not spill.
    """
    usual = _compile_for(program, arch)
    if usual.spilled:
        # By itself the compiler spills a few bytes to fit more blocks on a multiprocessor.
        roomy = _compile_resident(program, arch, 1)
        if roomy.spilled < usual.spilled:
            return roomy
        return usual
    # Try a block more, unless other limits forbid it or it would spill in any case.
    blocks = by_registers(usual.registers, program.threads) + 1
    if blocks > resident_at_most(arch, program.threads, program.shared_bytes):
        return usual
    if most_registers(blocks, program.threads) < LEAST_LEFT * usual.registers:
        return usual
    tight = _compile_resident(program, arch, blocks)
    if tight.spilled:
        return usual
    return tight


def _compile_resident(program: CudaProgram, arch: str, blocks: int) -> Compiled:
    """Compile a program so that ``blocks`` blocks fit on a multiprocessor."""
    return _compile_for(program, arch, f"--define-macro=MP_RESIDENT={blocks}")


def assembly(program: CudaProgram, arch: str = "sm_90") -> str:
    """PTX of a program, with the lines of :attr:`CudaProgram.cuda` that it comes from."""
    virtual = arch.replace("sm_", "compute_")
    options = (f"--gpu-architecture={virtual}", "--generate-line-info")
    if program.kernel is None:
        return _translate(program, "PTX", *options)[0].decode().strip("\0")
    parts = (_translate(program, "LTOIR", "-dlto", *options)[0], program.kernel.ltoir(arch))
    return _link(parts, arch, program.fastmath, "-ptx", "-lineinfo")[0].decode().strip("\0")


def _compile_for(program: CudaProgram, arch: str, *options: str) -> Compiled:
    if program.kernel is None:
        options = (f"--gpu-architecture={arch}", VERBOSE, *options)
        cubin, log = _translate(program, "CUBIN", *options)
    else:
        # Link the kernel of Python into the loop, and optimise both as one.
        kernel = program.kernel.ltoir(arch)
        virtual = arch.replace("sm_", "compute_")
        options = (f"--gpu-architecture={virtual}", "-dlto", *options)
        loop, _ = _translate(program, "LTOIR", *options)
        cubin, log = _link((loop, kernel), arch, program.fastmath)
    return Compiled(
        cubin=cubin,
        registers=_sum_in_log(r"Used (\d+) registers", log),
        spilled=_sum_in_log(r"(\d+) bytes spill", log),
    )


def _translate(program: CudaProgram, what: str, *options: str) -> tuple[bytes, str]:
    """The text as CUBIN, PTX or LTO-IR, and the log of NVRTC."""
    nvrtc = _nvrtc()
    handle = _value(nvrtc.nvrtcCreateProgram(program.cuda.encode(), b"loop.cu", 0, [], []))
    try:
        fast = FAST_TEXT if program.fastmath else ()
        words = [o.encode() for o in (*options, *OPTIONS, *_uncached(), *fast)]
        (status,) = nvrtc.nvrtcCompileProgram(handle, len(words), words)
        # Name the first error of the log, which may be long.
        log = _bytes(handle, "ProgramLog").decode(errors="replace").strip("\0")
        if status:
            lines = log.splitlines()
            errors = [line for line in lines if "error" in line]
            first = (errors or lines)[0].strip()
            raise MeshprepError(f"the CUDA text does not compile: {first}")
        return _bytes(handle, what), log
    finally:
        nvrtc.nvrtcDestroyProgram(handle)


def _link(
    parts: Sequence[bytes], arch: str, fastmath: bool = False, *wanted: str
) -> tuple[bytes, str]:
    """Link LTO-IR to machine code, or to PTX by the options for that.

    Returns it with the log of the linker.
    """
    # The module came with numba-cuda, which has made one of the parts.
    from cuda.bindings import nvjitlink

    # The log tells the registers of a thread, and what does not fit into them.
    verbose = wanted or ("-Xptxas=-v", "-verbose")
    fast = FAST_LINK if fastmath else ()
    options = [f"-arch={arch}", "-lto", NO_CACHE, *verbose, *fast]
    output = "ptx" if wanted else "cubin"
    handle = nvjitlink.create(len(options), options)
    try:
        for part in parts:
            nvjitlink.add_data(handle, nvjitlink.InputType.LTOIR, part, len(part), "loop")
        nvjitlink.complete(handle)
        linked = bytearray(getattr(nvjitlink, f"get_linked_{output}_size")(handle))
        getattr(nvjitlink, f"get_linked_{output}")(handle, linked)
        log = bytearray(nvjitlink.get_info_log_size(handle))
        nvjitlink.get_info_log(handle, log)
    except nvjitlink.nvJitLinkError as error:
        error_log = bytearray(nvjitlink.get_error_log_size(handle))
        nvjitlink.get_error_log(handle, error_log)
        text = error_log.decode(errors="replace").strip("\0\n ")
        lines = text.splitlines() or [str(error)]
        raise MeshprepError(f"the loop and its kernel do not link: {lines[0]}") from error
    finally:
        nvjitlink.destroy(handle)
    return bytes(linked), log.decode(errors="replace")


@cache
def _uncached() -> tuple[str, ...]:
    """The option that turns off NVRTC's cache, which it has since CUDA 12.9."""
    _, *version = _nvrtc().nvrtcVersion()
    if version >= [12, 9]:
        return (f"-{NO_CACHE}",)
    return ()


def _sum_in_log(pattern: str, log: str) -> int:
    """The sum of the numbers that a pattern finds in a log."""
    numbers = re.findall(pattern, log)
    if not numbers:
        raise MeshprepError(
            "NVRTC did not say what the kernel takes: use another version of it"
        )
    return sum(map(int, numbers))


def _bytes(handle: Any, what: str) -> bytes:
    """The bytes that NVRTC has under a name, such as ``"CUBIN"``."""
    content = bytearray(_value(getattr(_nvrtc(), f"nvrtcGet{what}Size")(handle)))
    _value(getattr(_nvrtc(), f"nvrtcGet{what}")(handle, content))
    return bytes(content)


def _value(result: tuple[Any, ...]) -> Any:
    """The result of a function of NVRTC; raises MeshprepError for an error status."""
    status, *values = result
    if status:
        raise MeshprepError(f"NVRTC: {_nvrtc().nvrtcGetErrorString(status)[1].decode()}")
    if values:
        return values[0]
    return None


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


# Files of machine code that are kept, at most.
MOST_KEPT = 2000
# Packages that turn text and kernels into machine code.
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
    """The result of :func:`compile_program`, from disk where it is kept.

    Kernels in Python that reach objects without a content to compare are compiled every
    time. A file that is damaged is made anew; a file that cannot be written is left out.
    Processes may share the folder. Raises MissingPackageError and MeshprepError as
    compiling does.
    """
    path = _path_of(program, arch)
    code = None if path is None else _read_cubin(path)
    if code is None:
        code = compile_program(program, arch)
        if path is not None:
            # The folder may be full, or not the user's.
            with contextlib.suppress(OSError):
                _write_cubin(path, code)
    return code


def _path_of(program: CudaProgram, arch: str) -> Path | None:
    """The file of a program's machine code, by all that it depends on; None for none."""
    loops = loops_folder()
    kernel = getattr(program, "kernel", None)
    content = None if kernel is None else stable(reach(kernel.function))
    # A kernel that no other process can describe is not kept.
    if loops is None or (kernel is not None and content is None):
        return None
    parts = (program.cuda, arch, program.fastmath, content, _versions())
    name = hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
    return loops.with_name("cubins") / f"{name}.cubin"


def _read_cubin(path: Path) -> Compiled | None:
    """The machine code of a file; None where it is missing or damaged."""
    try:
        head, _, cubin = path.read_bytes().partition(b"\n")
        digest, registers, spilled = head.decode("ascii").split()
        # A digest tells damaged files, which are compiled anew.
        if hashlib.sha256(cubin).hexdigest() == digest:
            mark_used(path)
            return Compiled(cubin, int(registers), int(spilled))
    except (OSError, ValueError):
        pass
    return None


def _write_cubin(path: Path, code: Compiled) -> None:
    """Write machine code to a file; keep the ``MOST_KEPT`` files that were used last."""
    digest = hashlib.sha256(code.cubin).hexdigest()
    head = f"{digest} {code.registers} {code.spilled}\n".encode()
    write_whole(path, head + code.cubin)
    keep_used_last(path.parent.glob("*.cubin"), MOST_KEPT)


@cache
def _versions() -> tuple[str, ...]:
    """The versions of the compilers, and digests of the modules that call them."""
    installed = []
    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            installed.append(f"{name} {version(name)}")
    here = Path(__file__).parent
    names = ("build", "source/element", "../_numba/device", "../_numba/lowering")
    own = [here / f"{name}.py" for name in names]
    return (*installed, *(hashlib.sha256(p.read_bytes()).hexdigest() for p in own))
