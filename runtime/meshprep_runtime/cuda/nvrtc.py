"""Compiles a program's text to machine code by NVRTC: no GPU and no driver are needed.

The library comes with the package nvidia-cuda-nvrtc, and is called as it is, by ctypes.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import MeshprepError, MissingPackageError
from .program import Program

OPTIONS = ("--std=c++17", "--ptxas-options=-v")


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
        Where there is no NVRTC.
    MeshprepError
        When the text does not compile, with the first error; for an unknown architecture.
    """
    library = _library()
    handle = ctypes.c_void_p()
    text = program.cuda.encode()
    _check(library, library.nvrtcCreateProgram(_at(handle), text, b"loop.cu", 0, None, None))
    try:
        options = [o.encode() for o in (f"--gpu-architecture={arch}", *OPTIONS)]
        listed = (ctypes.c_char_p * len(options))(*options)
        status = library.nvrtcCompileProgram(handle, len(options), listed)
        log = _bytes(library, handle, "ProgramLog").decode(errors="replace")
        if status:
            lines = [line for line in log.splitlines() if "error" in line] or log.splitlines()
            raise MeshprepError(f"the CUDA text does not compile: {lines[0].strip()}")
        cubin = _bytes(library, handle, "CUBIN")
    finally:
        library.nvrtcDestroyProgram(_at(handle))
    return Compiled(cubin, _sum(r"Used (\d+) registers", log), _sum(r"(\d+) bytes spill", log))


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
            "compiling CUDA text needs NVRTC: pip install 'nvidia-cuda-nvrtc==13.0.*'"
        )
    # NVRTC looks for this one by name only; what is loaded already is found.
    for builtins in found[0].parent.glob("libnvrtc-builtins.so.*"):
        ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(found[0]))
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library
