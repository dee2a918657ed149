"""Machine code on disk: what changes is compiled, what does not is found, damage is no matter."""

import os
from dataclasses import replace

import pytest
from cuda_loops import BODY, LAYOUT, random_plan

from meshprep_runtime.cuda import build as nvrtc
from meshprep_runtime.cuda import program
from meshprep_runtime.cuda.build import Compiled
from meshprep_runtime.kernel import cache

SCALE = 3.0


@pytest.fixture
def count(monkeypatch, tmp_path):
    """A compiler that counts; its code names what it compiled."""
    found = []

    def compile_program(made, arch):
        found.append(arch)
        return Compiled(f"{arch} {len(made.text)}".encode(), 40, 0)

    monkeypatch.setattr(nvrtc, "compile_program", compile_program)
    monkeypatch.setenv("MESHPREP_CACHE_DIR", str(tmp_path))
    return found


@pytest.fixture(scope="module")
def made(slow):
    return program(BODY, random_plan(slow, 70, 40, 16, 3), layout=LAYOUT)


def test_found_by_content(count, made, tmp_path):
    first = nvrtc.compiled(made, "sm_90")
    assert nvrtc.compiled(made, "sm_90") == first
    assert count == ["sm_90"]
    assert nvrtc.compiled(made, "sm_80").cubin != first.cubin
    longer = replace(made, text=made.text + "// more\n")
    assert nvrtc.compiled(longer, "sm_90").cubin != first.cubin
    assert count == ["sm_90", "sm_80", "sm_90"]
    assert len(list((tmp_path / "cubins").iterdir())) == 3


@pytest.mark.parametrize("damage", [b"", b"?", b"\n", b"1 2 3\nx", b"\xff\xfe"])
def test_damage(damage, count, made, tmp_path):
    first = nvrtc.compiled(made, "sm_90")
    (path,) = (tmp_path / "cubins").iterdir()
    for content in (damage, path.read_bytes()[:-1], path.read_bytes() + b"?"):
        path.write_bytes(content)
        assert nvrtc.compiled(made, "sm_90") == first
    assert len(count) == 4
    assert nvrtc.compiled(made, "sm_90") == first
    assert len(count) == 4


def test_nowhere_to_keep_it(count, made, monkeypatch, tmp_path):
    (tmp_path / "cubins").write_text("a file")
    nvrtc.compiled(made, "sm_90")
    monkeypatch.setenv("MESHPREP_CACHE_DIR", "")
    nvrtc.compiled(made, "sm_90")
    assert len(count) == 2


def test_few_are_kept(count, made, monkeypatch, tmp_path):
    monkeypatch.setattr(nvrtc, "MOST_KEPT", 2)
    for arch in ("sm_75", "sm_80", "sm_90"):
        nvrtc.compiled(made, arch)
    assert len(list((tmp_path / "cubins").glob("*.cubin"))) == 2


def test_what_is_used_stays(count, made, monkeypatch, tmp_path):
    monkeypatch.setattr(nvrtc, "MOST_KEPT", 2)
    for age, arch in enumerate(("sm_75", "sm_80")):
        nvrtc.compiled(made, arch)
        for path in (tmp_path / "cubins").iterdir():
            then = path.stat().st_mtime - (2 - age) * cache.DAY
            os.utime(path, (then, then))
    for arch in ("sm_75", "sm_90", "sm_75"):
        nvrtc.compiled(made, arch)
    assert count == ["sm_75", "sm_80", "sm_90"]


def kernel(x1, x2, q1, q2, adt1, adt2, res1, res2):
    res1[0] += SCALE * q1[0]


def test_a_constant_of_a_python_kernel_counts(count, airfoil, monkeypatch):
    """The text is the same; the kernel is not."""
    made = [program(kernel, airfoil["res_calc"])]
    nvrtc.compiled(made[0], "sm_90")
    monkeypatch.setitem(globals(), "SCALE", 4.0)
    made.append(program(kernel, airfoil["res_calc"]))
    assert made[0].cuda == made[1].cuda
    nvrtc.compiled(made[1], "sm_90")
    nvrtc.compiled(made[1], "sm_90")
    assert len(count) == 2


def test_what_cannot_be_compared_is_compiled(count, airfoil):
    class Thing:
        value = 2.0

    thing = Thing()

    def reaching(x1, x2, q1, q2, adt1, adt2, res1, res2):
        res1[0] += thing.value

    made = program(reaching, airfoil["res_calc"])
    nvrtc.compiled(made, "sm_90")
    nvrtc.compiled(made, "sm_90")
    assert len(count) == 2
