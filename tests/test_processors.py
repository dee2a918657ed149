"""The same plans on every processor: child processes make them as other processors would.

OpenBLAS, NumPy, glibc and numba choose their instructions by the processor that they run on, and
each can be told to take it for another one. What a child makes must be what was recorded
(test_recorded_plans.py) all the same. ``make test-processors`` also compiles all kernels anew.
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

# `make test-processors` runs them, also in CI.
pytestmark = pytest.mark.long

SCRIPT = Path(__file__).with_name("test_recorded_plans.py")
# Neither the vector instructions that NumPy finds at run time nor glibc's versions with fused
# multiplications; glibc reads names that it does not know over.
PLAIN = {
    "NPY_DISABLE_CPU_FEATURES": " ".join(
        np.show_config("dicts")["SIMD Extensions"]["found"]
    ),
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F,-AVX2_Usable,-FMA_Usable",
}
# What a child is told; it makes all plans, so that one tries several libraries and threads at once.
# Two compile all kernels anew, which takes longest: each of two workers begins with one of them.
SETTINGS = {
    "x86-64-v2, 1 thread": {"NUMBA_CPU_NAME": "x86-64-v2", "NUMBA_NUM_THREADS": "1"}
    | PLAIN,
    "haswell, 2 threads": {"OPENBLAS_CORETYPE": "HASWELL", "NUMBA_NUM_THREADS": "2"},
    "x86-64-v3, 2 threads": {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_NUM_THREADS": "2"},
    "skylakex": {"OPENBLAS_CORETYPE": "SKYLAKEX"},
    "nehalem, 1 thread": {"OPENBLAS_CORETYPE": "NEHALEM", "NUMBA_NUM_THREADS": "1"} | PLAIN,
}


def child(setting, *words):
    return subprocess.run(
        [sys.executable, *words], env=os.environ | setting, capture_output=True, text=True
    )


def check(setting):
    begun = child(setting, "-c", "import numpy")
    if begun.returncode < 0:
        pytest.skip(
            f"NumPy itself does not start here with {setting}: signal {-begun.returncode}"
        )
    assert begun.returncode == 0, begun.stderr
    done = child(setting, str(SCRIPT), "--check")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert found["made"] >= 70


@pytest.mark.parametrize("name", SETTINGS)
def test_plans_do_not_depend_on_the_processor(name, tmp_path):
    setting = SETTINGS[name]
    if "NUMBA_CPU_NAME" in setting:
        if platform.machine() != "x86_64":
            pytest.skip("names processors of another kind")
        setting = setting | {"MESHPREP_CACHE_DIR": str(tmp_path), "NUMBA_CPU_FEATURES": ""}
    check(setting)
