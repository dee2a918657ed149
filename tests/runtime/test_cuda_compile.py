"""The CUDA text of every strategy becomes machine code, without a GPU."""

import effort
import pytest
from cuda_loops import BODY, LAYOUT, OFTEN, WAYS, random_plan, run_and_check

from meshprep_runtime import MeshprepError
from meshprep_runtime.cuda import DeviceFunction, program, programs


@pytest.mark.parametrize(("strategy", "commit"), effort.some(WAYS, OFTEN))
@pytest.mark.parametrize("lists", effort.first([False, True]))
def test_compiles_without_spills(lists, strategy, commit, slow, compiled):
    plan = random_plan(slow, 70, 40, 16, 3, lists=lists)
    made = program(BODY, plan, strategy, commit=commit, layout=LAYOUT)
    for one in (made, *made.then):
        found = compiled(one)
        assert found.cubin.startswith(b"\x7fELF")
        assert 0 < found.registers <= 128
        assert found.spilled == 0


@pytest.mark.long
@pytest.mark.parametrize("layout", [{}, LAYOUT], ids=["aos", "mixed"])
@pytest.mark.parametrize("arch", ["sm_75", "sm_80"])
def test_older_devices(arch, layout, slow, compiled):
    plan = random_plan(slow, 70, 40, 16, 3)
    for strategy, commit in WAYS:
        made = program(BODY, plan, strategy, commit=commit, layout=layout)
        for one in (made, *made.then):
            assert compiled(one, arch).spilled == 0, (strategy, commit)


def test_mistakes_are_one_line(slow, compiled):
    plan = random_plan(slow, 40, 20, 8, 0)
    broken = DeviceFunction("body", BODY.text.replace("w[0] * c[0]", "nothing"))
    with pytest.raises(MeshprepError, match=r'does not compile: .*"nothing" is undefined'):
        compiled(program(broken, plan))
    with pytest.raises(MeshprepError, match="gpu-architecture"):
        compiled(program(BODY, plan), "sm_1")


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize("strategy", effort.first(["hierarchical", "global-atomics"]))
def test_indices_of_64_bits_where_32_do_not_count(strategy, slow, compiled, monkeypatch):
    """As for a mesh too large for a test; numbers of blocks are wider, too."""
    plan = random_plan(slow, 70, 40, 16, 3)
    short = program(BODY, plan, strategy, layout=LAYOUT)
    assert short.cuda.startswith("#define MP_NARROW\n")
    monkeypatch.setattr(programs, "INDEX_LIMIT", 100)
    made = program(BODY, plan, strategy, layout=LAYOUT)
    assert not made.narrow
    assert "MP_NARROW\n" not in made.cuda.partition("#ifdef")[0]
    if "blocks" in made.arrays:
        assert (short.arrays["blocks"].dtype, made.arrays["blocks"].dtype) == ("i4", "i8")
        assert "long long head[" in made.text
    assert compiled(made).spilled == 0
    run_and_check(made, plan)
