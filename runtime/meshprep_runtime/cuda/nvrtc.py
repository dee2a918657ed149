"""Compiles a program to machine code by NVRTC: no GPU and no driver are needed.

The library comes with the package nvidia-cuda-nvrtc, and is called as it is, by ctypes. Where the
kernel is in Python, NVRTC and numba-cuda make LTO-IR, which nvJitLink joins: the kernel is inlined.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import MeshprepError, MissingPackageError
from .programs import Program

OPTIONS = ("--std=c++17",)
VERBOSE = "--ptxas-options=-v"
# What "fastmath" is to NVRTC and to nvJitLink.
FAST_TEXT = ("--use_fast_math",)
FAST_LINK = ("-ftz=1", "-prec-div=0", "-prec-sqrt=0")


@dataclass(frozen=True)
class Compiled:
    """Machine code for one architecture, and what a thread takes there.

    Parameters
    ----------
    cubin : bytes
    registers : int
        Registers of a thread.
    spilled : int
        Bytes that a thread writes to and reads from memory for want of registers.
    """

    cubin: bytes
    registers: int
    spilled: int


def compile_program(program: Program, arch: str = "sm_90") -> Compiled:
    """Compile a program for an architecture such as ``"sm_75"``, ``"sm_80"``, ``"sm_90"``.

    Raises
    ------
    MissingPackageError
        Where there is no NVRTC; for a kernel in Python, no numba-cuda or nvJitLink.
    MeshprepError
        When the text or the kernel does not compile, with the first error; for an unknown
        architecture.

    Notes
    -----
    A tenth of a second; with a kernel in Python about a second, of which numba's part is kept.
    What spills registers is compiled once more with fewer blocks on a multiprocessor in mind.
    """
    made = _compile(program, arch)
    if not made.spilled:
        return made
    # Left alone, the compiler spills a few bytes to fit more blocks on a multiprocessor.
    roomy = _compile(program, arch, "--define-macro=MP_ROOMY")
    return roomy if roomy.spilled < made.spilled else made


def _compile(program: Program, arch: str, *options: str) -> Compiled:
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


def _translate(program: Program, what: str, *options: str) -> tuple[bytes, str]:
    """What NVRTC makes of the text, and its log."""
    library = _library()
    handle = ctypes.c_void_p()
    text = program.cuda.encode()
    _check(library, library.nvrtcCreateProgram(_at(handle), text, b"loop.cu", 0, None, None))
    try:
        fast = FAST_TEXT if program.fastmath else ()
        words = [o.encode() for o in (*options, *OPTIONS, *fast)]
        listed = (ctypes.c_char_p * len(words))(*words)
        status = library.nvrtcCompileProgram(handle, len(words), listed)
        log = _bytes(library, handle, "ProgramLog").decode(errors="replace")
        if status:
            lines = [line for line in log.splitlines() if "error" in line] or log.splitlines()
            raise MeshprepError(f"the CUDA text does not compile: {lines[0].strip()}")
        return _bytes(library, handle, what), log
    finally:
        library.nvrtcDestroyProgram(_at(handle))


def _link(parts: Sequence[bytes], arch: str, fastmath: bool = False) -> tuple[bytes, str]:
    """LTO-IR to machine code, and what the linker says of it."""
    # It came with numba-cuda, which has made one of the parts.
    from cuda.bindings import nvjitlink

    options = [f"-arch={arch}", "-lto", "-Xptxas=-v", "-verbose", *(FAST_LINK if fastmath else ())]
    handle = nvjitlink.create(len(options), options)
    try:
        for part in parts:
            nvjitlink.add_data(handle, nvjitlink.InputType.LTOIR, part, len(part), "loop")
        nvjitlink.complete(handle)
        cubin = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, cubin)
        log = bytearray(nvjitlink.get_info_log_size(handle))
        nvjitlink.get_info_log(handle, log)
    except nvjitlink.nvJitLinkError as error:
        said = bytearray(nvjitlink.get_error_log_size(handle))
        nvjitlink.get_error_log(handle, said)
        lines = said.decode(errors="replace").strip("\0\n ").splitlines() or [str(error)]
        raise MeshprepError(f"the loop and its kernel do not link: {lines[0]}") from error
    finally:
        nvjitlink.destroy(handle)
    return bytes(cubin), log.decode(errors="replace")


def _sum(pattern: str, log: str) -> int:
    found = re.findall(pattern, log)
    if not found:
        raise MeshprepError("NVRTC did not say what the kernel takes: use another version of it")
    return sum(map(int, found))


def _bytes(library: Any, handle: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check(library, getattr(library, f"nvrtcGet{what}Size")(handle, _at(size)))
    found = ctypes.create_string_buffer(size.value)
    _check(library, getattr(library, f"nvrtcGet{what}")(handle, found))
    return found.raw


def _check(library: Any, status: int) -> None:
    if status:
        raise MeshprepError(f"NVRTC: {library.nvrtcGetErrorString(status).decode()}")


_at = ctypes.byref


@cache
def _library() -> Any:
    spec = importlib.util.find_spec("nvidia")
    places = [Path(p) for p in spec.submodule_search_locations or ()] if spec else []
    found = [p for place in places for p in sorted(place.glob("*/lib/libnvrtc.so.*"))]
    if not found:
        raise MissingPackageError(
            "compiling CUDA text needs NVRTC: pip install 'meshprep-runtime[check]'"
        )
    # NVRTC looks for this one by name only; what is loaded already is found.
    for builtins in found[0].parent.glob("libnvrtc-builtins.so.*"):
        ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(found[0]))
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library
