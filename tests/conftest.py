"""What all tests share."""

import os
import shutil

import pytest

from meshprep.kernels import folder
from meshprep_runtime import MissingPackageError
from meshprep_runtime.cuda.nvrtc import compile_program

IN_CI = "MESHPREP_REQUIRE_C"


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Compiled loops of these tests go into a folder of their own, fresh in every run.

    meshprep's own kernels stay where they are.
    """
    own, kept = tmp_path_factory.mktemp("cache"), folder()
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        (own / "kernels").symlink_to(kept)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MESHPREP_CACHE_DIR", str(own))
        yield


@pytest.fixture(scope="session")
def needs_gxx():
    """Skip where this machine has no g++, except in CI."""
    if shutil.which("g++") is None:
        assert IN_CI not in os.environ, "no compiler 'g++'"
        pytest.skip("no compiler 'g++' on this machine")


@pytest.fixture(scope="session")
def compiled():
    """compile_program; skips where its packages are missing, except in CI."""

    def call(made, arch="sm_90"):
        try:
            return compile_program(made, arch)
        except MissingPackageError as error:
            if IN_CI in os.environ:
                raise
            pytest.skip(str(error))

    return call
