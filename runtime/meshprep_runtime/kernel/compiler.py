"""What a user can do about a kernel that does not compile, in one line."""

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, reduce
from importlib import import_module
from typing import Any

from ..errors import MeshprepError, MissingPackageError, UntestedVersionWarning
from ..types.loops import Loop
from .bind import Slot

# The newest releases that all tests passed with.
TESTED = {"numba": "0.68", "numpy": "2.4"}
THREADING_LAYERS = ("default", "safe", "threadsafe", "forksafe", "omp", "tbb", "workqueue")
# What loops take of numba and llvmlite beyond what these document: by module, names.
INTERNALS = {
    "llvmlite.ir": ("ArrayType", "VectorType"),
    "numba.core.cgutils": (
        "alloca_once",
        "create_struct_proxy",
        "get_or_insert_function",
        "unpack_tuple",
    ),
    "numba.np.arrayobj": ("populate_array",),
}
# In the words of numba and of numba-cuda.
READ_ONLY = ("Cannot modify readonly array", "setitem(readonly array")
NOISE = re.compile(
    r"^((TypingError: )?Failed in|During:|File |There are|>>>|- Of which|Overload|With arg|\^"
    r"|<source)"
)
PLACE = re.compile(r"^\s*During: .* at (.+) \((\d+)\)$", re.MULTILINE)
# numba colours its messages where colorama is installed.
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# Loops in blocks call the kernel through an intrinsic: what is wrong comes in its rejection.
WRAPPED = re.compile(r"\A.*?Function\(<intrinsic raises>\).*?raised a specific error:", re.DOTALL)
# The file of a loop that was written for numba.
WRITTEN = re.compile(r"[0-9a-f]{32}.loop\.py$|<")


def compile_error(
    kernel: Callable[..., None], loop: Loop, slots: Sequence[Slot], error: Exception
) -> MeshprepError:
    """The error to raise for one of numba's."""
    text = WRAPPED.sub("", COLOURS.sub("", str(error)))
    name = getattr(kernel, "__name__", "kernel")
    where = _where(kernel, text)
    if any(words in text for words in READ_ONLY):
        read = ", ".join(s.name for s in slots if not s.written)
        return MeshprepError(
            f"kernel '{name}' changes an argument that loop '{loop.name}' only reads{where}: "
            f"declare another access for it, or leave it ({read}) alone"
        )
    lines = (line.strip() for line in text.splitlines() if line.strip())
    reason = next((line for line in lines if not NOISE.match(line)), type(error).__name__)
    if reason.endswith("found for signature:"):
        reason = f"{reason} {next(lines, '').removeprefix('>>> ')}"
    return MeshprepError(f"kernel '{name}' does not compile{where}: {reason}")


def _where(kernel: Callable[..., None], text: str) -> str:
    """The first place in a user's file that numba names, else the beginning of the kernel."""
    place = next((p for p in PLACE.findall(text) if not WRITTEN.search(p[0])), None)
    code = getattr(kernel, "__code__", None)
    if place is None and code is not None:
        place = (code.co_filename, code.co_firstlineno)
    return f" at {place[0]}:{place[1]}" if place else ""


@cache
def import_numba() -> Any:
    """numba; raises MissingPackageError where it is not installed, or is not one that will do."""
    try:
        import numba
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            "running loops needs numba: pip install 'meshprep-runtime[cpu]'"
        ) from error
    except ValueError as error:
        # of an environment variable
        raise MeshprepError(f"numba does not start: {error} Look at NUMBA_*: unset it") from error
    config: Any = numba.config
    if (layer := config.THREADING_LAYER) not in THREADING_LAYERS:
        raise MeshprepError(
            f"NUMBA_THREADING_LAYER is '{layer}': unset it, or use one of "
            f"{', '.join(THREADING_LAYERS)}"
        )
    if config.DISABLE_JIT:
        raise MeshprepError("NUMBA_DISABLE_JIT keeps kernels from being compiled: unset it")
    check_internals(INTERNALS, "a solver's loops")
    for package in TESTED:
        _warn_of_newer(package, import_module(package).__version__)
    return numba


def _warn_of_newer(package: str, version: str) -> None:
    """Warn of a version that came after the newest tested one."""
    found, newest = (tuple(map(int, v.split(".")[:2])) for v in (version, TESTED[package]))
    if found > newest:
        warnings.warn(
            f"meshprep was tested with {package} up to {TESTED[package]}, and this is {version}: "
            f"should anything fail,  pip install '{package}=={TESTED[package]}.*'",
            UntestedVersionWarning,
            stacklevel=2,
        )


def check_internals(wanted: Mapping[str, Iterable[str]], what: str) -> None:
    """Raise MissingPackageError, naming numba's version, where it lacks one of the internals.

    ``wanted`` has names, and names of their attributes, by module; ``what`` they compile.
    """
    numba = import_module("numba")
    for module, names in wanted.items():
        for name in names:
            try:
                reduce(getattr, name.split("."), import_module(module))
            except (ImportError, AttributeError):
                raise MissingPackageError(
                    f"numba {numba.__version__} has no {module}.{name}, which compiles {what}: "
                    f"install the one that is tested with  pip install 'numba=={TESTED['numba']}.*'"
                ) from None
