"""Freed memory: kept by a program that asks for it, given back by all others."""

import platform
import subprocess
import sys

import pytest

PAGES = 10_000
# An array above the size from which glibc maps one alone, whatever it has seen before.
PROGRAM = f"""
import resource, sys
import numpy as np
from meshprep.kernels.parallel import give_back, keep_freed

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones({PAGES} * resource.getpagesize(), np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if "keep" in sys.argv:
    keep_freed()
found = [faults()]
give_back()
print(*found, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc of another system")
@pytest.mark.parametrize("word", ["keep", "not"])
def test_the_second_array_gets_the_memory_of_the_first_where_it_is_kept(word, monkeypatch):
    # a large page would be one fault
    monkeypatch.setenv("NUMPY_MADVISE_HUGEPAGE", "0")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, word], capture_output=True, text=True, check=True
    )
    first, second = map(int, done.stdout.split())
    assert first > 0.9 * PAGES
    assert second < 0.1 * PAGES if word == "keep" else second > 0.9 * PAGES
