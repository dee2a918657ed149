"""numba as it is installed: its release, its settings, and the processor it compiles for.

numba reads its settings from environment variables when it is imported, and keeps them as
attributes of ``numba.config``
(https://numba.readthedocs.io/en/stable/reference/envvars.html). The variables are
documented; the attributes, which hold in a process that runs already, are not.
"""

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, reduce
from importlib import import_module
from typing import Any

from ..errors import MeshprepError, MissingPackageError, UntestedVersionWarning

# The newest releases that all tests pass with.
TESTED = {"numba": "0.68", "numpy": "2.4"}
# The values of NUMBA_THREADING_LAYER. numba reads it late, and fails inside of a loop.
THREADING_LAYERS = ("default", "safe", "threadsafe", "forksafe", "omp", "tbb", "workqueue")
# What :mod:`.lowering` and :mod:`.tuples` take from modules that numba and llvmlite do not
# document.
INTERNALS: Mapping[str, tuple[str, ...]] = {
    "llvmlite.ir": ("ArrayType", "VectorType"),
    "numba.core.cgutils": ("alloca_once", "create_struct_proxy"),
    "numba.core.imputils": ("impl_ret_borrowed",),
    "numba.np.arrayobj": ("populate_array",),
}


@cache
def import_numba() -> Any:
    """The module numba.

    Raises MissingPackageError where it is not installed or lacks internals that loops use,
    and MeshprepError where its settings keep it from compiling.
    """
    try:
        import numba
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            "running loops needs numba: pip install 'meshprep-runtime[cpu]'"
        ) from error
    except ValueError as error:
        # numba refuses the value of an environment variable.
        raise MeshprepError(
            f"numba does not start: {error} Look at NUMBA_*: unset it"
        ) from error

    # Refuse settings with which loops fail later, and by a message that names no setting.
    if (layer := _setting("THREADING_LAYER")) not in THREADING_LAYERS:
        raise MeshprepError(
            f"NUMBA_THREADING_LAYER is '{layer}': unset it, or use one of "
            f"{', '.join(THREADING_LAYERS)}"
        )
    if _setting("DISABLE_JIT"):
        raise MeshprepError("NUMBA_DISABLE_JIT keeps kernels from being compiled: unset it")

    # A release that lacks an internal is refused; one that is only newer is warned of.
    _check_internals()
    for package in TESTED:
        _warn_of_newer(package, import_module(package).__version__)
    return numba


def _check_internals() -> None:
    """Raise MissingPackageError, naming numba's version, where an internal is missing."""
    numba = import_module("numba")
    for module, names in INTERNALS.items():
        for name in names:
            try:
                reduce(getattr, name.split("."), import_module(module))
            except (ImportError, AttributeError):
                raise MissingPackageError(
                    f"numba {numba.__version__} has no {module}.{name}, which compiles "
                    "a solver's loops: install the one that is tested with  pip install "
                    f"'numba=={TESTED['numba']}.*'"
                ) from None


def _warn_of_newer(package: str, version: str) -> None:
    """Warn of a version that came after the newest tested one."""
    found, newest = (tuple(map(int, v.split(".")[:2])) for v in (version, TESTED[package]))
    if found > newest:
        warnings.warn(
            f"meshprep was tested with {package} up to {TESTED[package]}, and this is "
            f"{version}: should anything fail,  pip install "
            f"'{package}=={TESTED[package]}.*'",
            UntestedVersionWarning,
            stacklevel=2,
        )


@cache
def versions() -> tuple[str, ...]:
    """Python, NumPy, numba and llvmlite: other releases compile other machine code."""
    import llvmlite
    import numba
    import numpy as np

    return (sys.version, np.__version__, numba.__version__, llvmlite.__version__)


def thread_limit() -> int:
    """NUMBA_NUM_THREADS: the most threads that ``numba.set_num_threads`` takes.

    ``numba.get_num_threads`` gives the number of this thread, which may be smaller, and
    starts numba's threads.
    """
    return int(import_numba().config.NUMBA_NUM_THREADS)


def calls_vector_library() -> bool:
    """True where vectorised code takes ``exp`` and the like from Intel's SVML.

    Its last digits are others than those of plain code. numba tells it by a setting that
    only its report ``numba -s`` shows: https://github.com/numba/numba/issues/3022
    """
    return bool(import_numba().config.USING_SVML)


def processor() -> str:
    """The processor that numba compiles for: this one, or that of ``NUMBA_CPU_NAME``.

    numba has no function that says it.
    """
    from llvmlite import binding

    return str(_setting("CPU_NAME") or binding.get_host_cpu_name())


def chosen_processor() -> str | None:
    """The processor of ``NUMBA_CPU_NAME``; None where the user has chosen none."""
    name: str | None = _setting("CPU_NAME")
    return name


def processor_features() -> Mapping[str, bool]:
    """The instructions that this processor has, in LLVM's words."""
    from llvmlite import binding

    features: Mapping[str, bool] = binding.get_host_cpu_features()
    return features


def compile_for(family: str) -> dict[str, str]:
    """Compile for a family of processors from now on, before anything is compiled.

    Returns the environment variables that say the same to other processes. numba reads the
    variables once, when it is imported, which here has happened already; its code
    generator asks for the settings when the first function is compiled.
    """
    settings = {"CPU_NAME": family, "CPU_FEATURES": ""}
    for name, value in settings.items():
        setattr(_config(), name, value)
    return {f"NUMBA_{name}": value for name, value in settings.items()}


@contextmanager
def cache_beside_source() -> Iterator[None]:
    """Let functions keep machine code beside their source, not in NUMBA_CACHE_DIR.

    numba has one folder for a whole process, and a decorator cannot name another:
    https://github.com/numba/numba/issues/9350. It is read while a decorator with
    ``cache=True`` runs.
    """
    config = _config()
    before = config.CACHE_DIR
    config.CACHE_DIR = ""
    try:
        yield
    finally:
        config.CACHE_DIR = before


def _config() -> Any:
    import numba

    return numba.config


def _setting(name: str) -> Any:
    """The value of a setting; None for one that this release does not have."""
    return getattr(_config(), name, None)
