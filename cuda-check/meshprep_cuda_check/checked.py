"""Runs the text of a program on the CPU, built by g++, with every access checked.

Threads of a block run in turns, from barrier to barrier. Found are races inside a block and between
blocks of a launch, indices out of bounds, shared memory that is read before it is set or lies
askew, threads that part at a barrier, and a thread colour past those of its block. Not found: the
order of memory, warps that rely on running in step, what a device has less of than the text asks.
"""

import atexit
import ctypes
import json
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.cuda.programs import CudaProgram, Launch
from meshprep_runtime.cuda.source.parameters import Parameter
from meshprep_runtime.cuda.source.reductions import join
from meshprep_runtime.errors import MeshprepError, MissingPackageError
from meshprep_runtime.kernel.bind import bind

COMPILER = "g++"
FLAGS = ("-std=c++20", "-O1", "-fwrapv", "-shared", "-fPIC")
HEADER = "checked.hpp"
# What stands at the start of each part of a text whose parts are counted.
TALLY = "MP_TALLY("


class CheckError(MeshprepError):
    """A check failed; ``check`` is its name, such as ``"race between blocks"``."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.check = message.partition(":")[0]


def run_checked(program: CudaProgram, /, **arrays: Any) -> None:
    """Run a program on NumPy arrays, in place, launch by launch.

    Building takes a second or two, once a text and process; a run some microseconds an element.
    ``arrays`` are those of a call of a ParLoop. Raises CheckError at the first check that fails;
    the arrays are then half changed. Raises MissingPackageError where there is no g++ with C++20,
    MeshprepError for arrays that do not fit, and text that does not compile.
    """
    dats = {f"s{i}": a for i, a in enumerate(bind(program.loop, program.slots, arrays))}
    _check_alignment(program, dats)
    slots = {f"partial{i}": program.slots[i] for i in program.reduced}
    partial = {name: np.zeros(s.dim * program.parts, s.dtype) for name, s in slots.items()}
    scratch = {name: _anything(*what) for name, what in program.scratch.items()}
    for one in (program, *program.then):
        library = library_of(one)
        for launch in one.launches:
            message = _launch(
                library, one, launch, {**one.arrays, **dats, **partial, **scratch}
            )
            if message:
                raise CheckError(message)
    for i in program.reduced:
        join(program.slots[i], dats[f"s{i}"], partial[f"partial{i}"])


def _anything(dtype: np.dtype, size: int) -> NDArray[Any]:
    """An array of values that no sum should contain."""
    return np.full(size * dtype.itemsize, 0xA5, np.uint8).view(dtype)


def _check_alignment(program: CudaProgram, dats: Mapping[str, NDArray[Any]]) -> None:
    for i, wanted in enumerate(program.alignment):
        array = dats[f"s{i}"]
        if array.size and array.ctypes.data % wanted:
            raise MeshprepError(
                f"loop '{program.loop.name}': argument '{program.slots[i].name}' does not begin at "
                f"a multiple of {wanted} bytes: copy it, or write the program with vectors=False"
            )


def library_of(program: CudaProgram) -> ctypes.CDLL:
    """What g++ makes of a program."""
    return _built(_source(program))


def _launch(
    library: ctypes.CDLL,
    program: CudaProgram,
    launch: Launch,
    given: dict[str, NDArray[Any]],
) -> str:
    arrays = [given[p.name] for p in program.parameters if p.access != "size"]
    numbers = {**program.sizes, "first": launch.first, "last": launch.last}
    numbers |= {"parts": program.parts, "part": launch.part}
    scalars = [numbers[p.name] for p in program.parameters if p.access == "size"]
    spans = [(a.ctypes.data, a.size) for a in arrays]
    return _call(library, program, launch.blocks, spans, scalars)


def launch_checked(
    program: CudaProgram,
    blocks: int,
    arrays: Sequence[tuple[int, int]],
    numbers: Sequence[int],
) -> None:
    """One launch by addresses, as a device has them.

    ``arrays`` are the address and the number of values of each array among the parameters,
    ``numbers`` the rest, both in the order of the parameters. Raises as :func:`run_checked` does.
    """
    if message := _call(library_of(program), program, blocks, arrays, numbers):
        raise CheckError(message)


def _call(
    library: ctypes.CDLL,
    program: CudaProgram,
    blocks: int,
    arrays: Sequence[tuple[int, int]],
    numbers: Sequence[int],
) -> str:
    text: bytes = library.launch(
        program.kernel.address() if program.kernel is not None else 0,
        blocks,
        program.threads,
        program.shared_bytes,
        (ctypes.c_void_p * len(arrays))(*(pointer for pointer, _ in arrays)),
        (ctypes.c_longlong * len(arrays))(*(size for _, size in arrays)),
        (ctypes.c_longlong * len(numbers))(*numbers),
    )
    return text.decode(errors="replace")


def _source(program: CudaProgram) -> str:
    """The text between the checking header and a function that ctypes can call."""
    labels = {f"s{i}": slot.name for i, slot in enumerate(program.slots)}
    arrays = [p for p in program.parameters if p.access != "size"]
    numbers = [p for p in program.parameters if p.access == "size"]
    cells = [
        f"  std::vector<mp::Cell> cells{i}(lengths[{i}]);"
        for i, p in enumerate(arrays)
        if p.access == "out"
    ]
    handed = [_handed(i, p, labels.get(p.name, p.name)) for i, p in enumerate(arrays)]
    handed += [f"numbers[{i}]" for i in range(len(numbers))]
    return "\n".join(
        [
            *_counted(program.text),
            f'#include "{HEADER}"',
            program.text,
            'extern "C" const char* launch(void* function, int blocks, int threads, Index shared,',
            "    void** arrays, const Index* lengths, const Index* numbers) {",
            *_given(program),
            *cells,
            "  return mp::run(blocks, threads, shared, [&] {",
            f"    return {program.name}(\n        " + ",\n        ".join(handed) + ");",
            "  });",
            "}",
            "",
        ]
    )


def _counted(text: str) -> list[str]:
    """How many parts of a text are counted, where they are."""
    parts = text.count(TALLY)
    return [f"#define MP_COUNTED {parts}"] if parts else []


def _given(program: CudaProgram) -> list[str]:
    if program.kernel is None:
        return []
    name = program.kernel.name
    return [f"  {name} = (decltype({name}))function;"]


def _handed(i: int, parameter: Parameter, label: str) -> str:
    c_type, quoted = parameter.c_type, json.dumps(label)
    if parameter.access == "in":
        return f"mp::In<{c_type}>{{(const {c_type}*)arrays[{i}], lengths[{i}], {quoted}}}"
    return f"mp::Out<{c_type}>{{({c_type}*)arrays[{i}], lengths[{i}], {quoted}, cells{i}.data()}}"


@lru_cache(maxsize=64)
def _built(source: str) -> ctypes.CDLL:
    compiler = shutil.which(COMPILER)
    if compiler is None:
        raise MissingPackageError(
            f"checking CUDA text needs {COMPILER}: apt-get install g++"
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checked.cpp"
        path.write_text(source, encoding="utf-8")
        # The library stays loaded when its file is gone.
        library = path.with_suffix(".so")
        with _building:
            included = f"-I{_headers.folder(compiler)}"
        _compile([compiler, *FLAGS, included, str(path), "-o", str(library)])
        loaded = ctypes.CDLL(str(library))
    loaded.launch.restype = ctypes.c_char_p
    arrays, numbers = ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_longlong)
    counts = (ctypes.c_int, ctypes.c_int, ctypes.c_longlong)
    loaded.launch.argtypes = (ctypes.c_void_p, *counts, arrays, numbers, numbers)
    return loaded


class _Headers:
    """A folder with the header, and from the second text on the header compiled."""

    def __init__(self) -> None:
        self.place: Path | None = None
        self.texts = 0

    def folder(self, compiler: str) -> Path:
        if self.place is None:
            self.place = Path(tempfile.mkdtemp(prefix="meshprep-"))
            atexit.register(shutil.rmtree, self.place, ignore_errors=True)
            (self.place / HEADER).write_text(_text(), encoding="utf-8")
        self.texts += 1
        if self.texts == 2:
            flags = [flag for flag in FLAGS if flag != "-shared"]
            path = self.place / HEADER
            _compile([compiler, *flags, str(path), "-o", f"{path}.gch"])
        return self.place


def _text() -> str:
    """The header that gives the macros a meaning on the CPU."""
    return (files(__package__) / HEADER).read_text(encoding="utf-8")


_headers, _building = _Headers(), threading.Lock()


def _compile(words: Sequence[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line]
        reason = (lines or done.stderr.splitlines() or ["no message"])[0]
        raise MeshprepError(f"the CUDA text does not compile: {reason}")
