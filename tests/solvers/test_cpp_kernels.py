"""The kernels of meshprep_cuda.hpp, compiled by NVRTC: for a GPU, without one and without nvcc."""

import re
from pathlib import Path

import effort
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES, INCLUDE = ROOT / "examples", ROOT / "include" / "meshprep"
# What the kernels take from the C++ library, which NVRTC does not have.
TYPE_TRAITS = """
namespace std {
using int32_t = int; using int64_t = long long; using size_t = decltype(sizeof 0);
template <bool, class A, class B> struct conditional { using type = A; };
template <class A, class B> struct conditional<false, A, B> { using type = B; };
template <bool If, class A, class B> using conditional_t = typename conditional<If, A, B>::type;
template <class T> inline constexpr bool is_integral_v = T(1) / T(2) == T(0);
}
"""
CMATH = "namespace std { using ::sqrt; using ::fabs; }"
AIRFOIL = """
#include "meshprep_cuda.hpp"
#include "airfoil_kernels.hpp"
using namespace meshprep;
template <class T, int Dim, Access access, Reach reach>
using A = DeviceArg<Arg<T, Dim, access, reach>>;
constexpr auto direct = Reach::direct, mapped = Reach::mapped, global = Reach::global;
using X = A<double, 2, Access::read, mapped>; using Q = A<double, 4, Access::read, mapped>;
using Adt = A<double, 1, Access::read, mapped>; using Res = A<double, 4, Access::inc, mapped>;
using OwnQ = A<double, 4, Access::read, direct>; using Set = A<double, 4, Access::write, direct>;
using OwnRes = A<double, 4, Access::rw, direct>; using OwnAdt = A<double, 1, Access::read, direct>;
using SetAdt = A<double, 1, Access::write, direct>; using Rms = A<double, 1, Access::inc, global>;
using Bound = A<long long, 1, Access::read, direct>;
"""
# What Airfoil has not: sums of other types, values through maps that take turns, a minimum.
OTHERS = """
struct Adds {
  template <class W, class R, class S> __device__ void operator()(W w, R r, S s) const {
    r[0] += w[0];
    s[0] -= 0.5f;
  }
};
struct Turn {
  template <class W, class T, class L> __device__ void operator()(W w, T t, L l) const {
    if (t[0] < w[0]) t[0] = w[0];
    if (w[0] < l[0]) l[0] = int(w[0]);
  }
};
using W = A<long long, 1, Access::read, direct>; using R = A<long long, 1, Access::inc, mapped>;
using S = A<float, 1, Access::inc, mapped>; using T = A<long long, 1, Access::rw, mapped>;
using L = A<int, 1, Access::min, global>;
template __global__ void meshprep::run_elements<Adds>(Adds, Index, int, W, R, S);
template __global__ void meshprep::run_blocks<false, Adds>(Adds, DeviceBlocks, Index, int, W, R, S);
template __global__ void meshprep::run_blocks<true, Turn>(Turn, DeviceBlocks, Index, int, W, T, L);
"""
SIGNATURES = {
    "SaveSoln": "OwnQ, Set",
    "AdtCalc": "X, X, X, X, OwnQ, SetAdt",
    "ResCalc": "X, X, Q, Q, Adt, Adt, Res, Res",
    "BresCalc": "X, X, Q, Adt, Res, Bound",
    "Update": "OwnQ, Set, OwnRes, OwnAdt, Rms",
}
RUNS = {
    "meshprep::run_elements<airfoil::{name}>": "airfoil::{name}, Index, int, {args}",
    "meshprep::run_blocks<false, airfoil::{name}>": (
        "airfoil::{name}, DeviceBlocks, Index, int, {args}"
    ),
}


def host_part():
    """Accesses and arguments of meshprep.hpp, without what reads files."""
    text = (INCLUDE / "meshprep.hpp").read_text(encoding="utf-8")
    enums = re.findall(r"^enum class .*;$", text, re.MULTILINE)
    argument = re.search(
        r"^template <class T, int Dim_.*?^};$", text, re.MULTILINE | re.DOTALL
    )
    return "\n".join(
        ["#include <type_traits>", "namespace meshprep {", *enums, argument[0], "}"]
    )


def machine_code(source, arch):
    """What NVRTC says of registers and spills, kernel by kernel."""
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
    headers = {
        "meshprep.hpp": host_part(),
        "meshprep_cuda.hpp": (INCLUDE / "meshprep_cuda.hpp").read_text(encoding="utf-8"),
        "airfoil_kernels.hpp": (EXAMPLES / "cpp" / "airfoil_kernels.hpp").read_text(
            "utf-8"
        ),
        **{"meshprep_launch.hpp": "", "cuda_runtime.h": "", "type_traits": TYPE_TRAITS},
        "cmath": CMATH,
    }
    texts, names = ([t.encode() for t in some] for some in (headers.values(), headers))
    _, handle = nvrtc.nvrtcCreateProgram(
        source.encode(), b"airfoil.cu", len(names), texts, names
    )
    options = ("--std=c++17", f"--gpu-architecture={arch}", "--ptxas-options=-v")
    (status,) = nvrtc.nvrtcCompileProgram(
        handle, len(options), [o.encode() for o in options]
    )
    log = bytearray(nvrtc.nvrtcGetProgramLogSize(handle)[1])
    nvrtc.nvrtcGetProgramLog(handle, log)
    nvrtc.nvrtcDestroyProgram(handle)
    assert not int(status), log.decode()
    return log.decode()


@pytest.mark.parametrize("arch", effort.first(["sm_90", "sm_75"]))
def test_kernels_without_spills(arch):
    """Every loop of examples/cpp/airfoil.cpp, an element and a block at a time, and three more."""
    kernels = [
        f"template __global__ void {run}({parameters});".format(name=name, args=args)
        for name, args in SIGNATURES.items()
        for run, parameters in RUNS.items()
    ]
    said = machine_code("\n".join([AIRFOIL, OTHERS, *kernels]), arch)
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", said)]
    spilled = re.findall(r"(\d+) bytes spill", said)
    assert len(registers) == len(kernels) + 3
    assert max(registers) <= 128
    assert set(spilled) == {"0"}
