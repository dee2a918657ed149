"""Programs of the examples and tests, built with the compilers of this machine."""

import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def hdf5_flags():
    """What the compiler needs to find HDF5, or None.

    Debian's ``hdf5`` may be one that brings an MPI of its own, beside that of the tests.
    """
    config = shutil.which("pkg-config")
    for name in ("hdf5-serial", "hdf5") if config is not None else ():
        found = subprocess.run([config, "--cflags", "--libs", name], capture_output=True)
        if found.returncode == 0:
            return found.stdout.decode().split()
    return ["-lhdf5"] if Path("/usr/include/hdf5.h").exists() else None


def _kept(words, source):
    """Where the program lies if the same text, with all that it includes, was compiled before."""
    text = subprocess.run([*words, "-E", str(source)], capture_output=True)
    compiler = Path(words[0]).resolve().stat().st_mtime_ns
    content = repr((words, compiler)).encode() + text.stdout
    folder = Path(os.environ["MESHPREP_CACHE_DIR"]) / "programs"
    return folder / hashlib.sha256(content).hexdigest()[:32]


@cache
def sanitizers(compiler):
    """Flags of a checked program; none where the compiler's libraries for it are not installed."""
    # Without the optimiser, which takes two thirds of the time; other programs have it.
    flags = ["-g", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover"]
    with TemporaryDirectory() as folder:
        words = [compiler, *flags, "-x", "c", "-", "-o", f"{folder}/program"]
        empty = "int main(void) { return 0; }"
        built = subprocess.run(words, input=empty, text=True, capture_output=True)
    assert built.returncode == 0 or "MESHPREP_REQUIRE_C" not in os.environ, built.stderr
    return flags if built.returncode == 0 else []


@pytest.fixture(autouse=True)
def leaks_are_looked_for_in_ci(monkeypatch):
    """Which takes most of the time of a small program's run."""
    if "MESHPREP_REQUIRE_C" not in os.environ:
        monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")


@pytest.fixture(scope="session")
def compile_program():
    """A function that compiles, and returns what the compiler says.

    It skips where this machine cannot; in CI, only where the compiler is an ``optional`` one. What
    a ``checked`` program reads or frees wrongly, or never frees, ends it. Without a ``program`` the
    compiler reads the source, templates and all, and stops there.
    """

    def compile_program(
        compiler, flags, source, program=None, optional=False, checked=False
    ):
        found, hdf5 = shutil.which(compiler), hdf5_flags()
        if found is None or hdf5 is None:
            missing = f"no compiler '{compiler}'" if found is None else "no libhdf5-dev"
            assert optional or "MESHPREP_REQUIRE_C" not in os.environ, missing
            pytest.skip(f"{missing} on this machine")
        if program is None:
            words = [found, *flags, "-fsyntax-only", str(source), *hdf5]
            read = subprocess.run(words, capture_output=True, text=True)
            assert read.returncode == 0, read.stderr
            return read.stderr
        flags = [*flags, *(sanitizers(found) if checked else [])]
        kept = _kept([found, *flags, *hdf5], source)
        if kept.exists():
            shutil.copy(kept, program)
            return ""
        words = [found, *flags, str(source), "-o", str(program), *hdf5]
        built = subprocess.run(words, capture_output=True, text=True)
        assert built.returncode == 0, built.stderr
        if not built.stderr:
            whole = kept.with_suffix(f".{os.getpid()}")
            whole.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(program, whole)
            os.replace(whole, kept)
        return built.stderr

    return compile_program


@pytest.fixture
def build(compile_program):
    """A function that compiles the example into a folder."""
    from c_builds import BUILDS, FOLDER, STRICT

    def build(language, folder, example="heat"):
        compiler, kind = BUILDS[language]
        flags, program = ["-x", kind, f"-std={language.lower()}", *STRICT], folder / example
        checked = language == "C99"
        compile_program(compiler, flags, FOLDER / f"{example}.c", program, checked=checked)
        return folder / example

    return build
