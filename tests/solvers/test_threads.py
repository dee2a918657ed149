"""Threads of par_loop in C++: order, errors, how many run, and how many there may be."""

import os
import subprocess
from pathlib import Path

import pytest

INCLUDE = Path(__file__).parents[2] / "include" / "meshprep"
FLAGS = ["-std=c++17", "-fopenmp", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}"]
PROGRAM = r"""
#include "meshprep_threads.hpp"
#include <cstdio>
#include <stdexcept>
using namespace meshprep;

Team after(int calls, bool several, double seconds, Team team = {}) {
  for (int i = 0; i < calls; ++i) team.note(several, seconds);
  return team;
}

int main(int argc, char** argv) {
  if (argc > 1) return std::printf("%g %d\n", quota_of(argv[1]), thread_count()), 0;
  constexpr int n = 1000;
  // Turns of seven, each after those of the seven before.
  Ranges ranges;
  for (int k = 0; k < n; ++k) {
    ranges.order.push_back(n - 1 - k);
    ranges.wait_offset.push_back(std::int64_t(ranges.waits.size()));
    for (int before = std::max(k / 7 * 7 - 7, 0); before < k / 7 * 7; ++before)
      ranges.waits.push_back(before);
  }
  ranges.wait_offset.push_back(std::int64_t(ranges.waits.size()));
  const auto never = [] { std::puts("alone"); };
  for (int call = 0; call < 200; ++call) {
    Team team = after(3, false, 1.0);
    std::atomic<int> ran[n] = {}, missing{0};
    run_in_turns(
        team, ranges,
        [&](std::int64_t range) {
          const std::int64_t k = n - 1 - range;
          for (std::int64_t before = 0; before < k / 7 * 7; ++before) missing += ran[before] != 1;
          ++ran[k];
        },
        never);
    for (const auto& count : ran) missing += count != 1;
    if (missing) return std::puts("an element ran too early, twice or not at all"), 1;
  }
  try {
    Team team = after(3, false, 1.0);
    run_in_turns(
        team, ranges, [](std::int64_t k) { if (k == 57) throw std::runtime_error("element 57"); },
        never);
  } catch (const std::runtime_error& error) {
    std::puts(error.what());
  }
  Team fast = after(9, true, 1.6e-3, after(9, false, 3e-3));
  Team busy = after(9, true, 20e-3, fast);
  std::printf("%d %d %d\n", fast.threads(n), busy.threads(n), after(3, false, 15e-6).threads(n));
  int tried = 0;
  for (int call = 0; call < 640; ++call) tried += busy.threads(n) > 1;
  Team again = after(9, false, 3e-3, after(9, true, 1.6e-3, busy));
  std::printf("%d %d\n", tried, again.threads(n));
  // The first call of either way after the other takes longer: the dats are in other caches.
  Team moved = fast;
  bool before = true;
  int wrong = 0;
  for (int call = 0; call < 5120; ++call) {
    const bool several = moved.threads(n) > 1;
    const double one = 3e-3, two = call < 2560 ? 2e-3 : 3.2e-3;
    moved.note(several, (several ? two : one) + (several != before ? 1e-3 : 0));
    before = several;
    wrong += call >= 3840 && several;
  }
  std::printf("%d\n", wrong);
#pragma omp parallel num_threads(2)
#pragma omp single
  std::printf("%d\n", thread_count());
}
"""


@pytest.fixture(scope="module")
def program(compile_program, tmp_path_factory):
    folder = tmp_path_factory.mktemp("threads")
    (folder / "a.cpp").write_text(PROGRAM)
    assert compile_program("g++", FLAGS, folder / "a.cpp", folder / "a") == ""
    return folder / "a"


def run(program, *words, **environment):
    given = {"OMP_NUM_THREADS": "2", **environment}
    kept = {name: value for name, value in (os.environ | given).items() if value}
    return subprocess.run(
        [str(program), *map(str, words)],
        env=kept,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_order_errors_and_how_many_run(program):
    # two where they are faster, one where others are busy and for small loops; tried twice in 128
    assert run(program).splitlines() == ["element 57", "2 1 1", "10 2", "20", "1"]


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cpu.max": "150000 100000\n"}, "1.5"),
        ({"cpu.max": "max 100000\n"}, "0"),
        ({"cpu.cfs_quota_us": "300000\n", "cpu.cfs_period_us": "100000\n"}, "3"),
        ({"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}, "0"),
        ({}, "0"),
    ],
)
def test_how_many_there_may_be(program, tmp_path, files, quota):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert run(program, tmp_path, OMP_NUM_THREADS="5").split() == [quota, "5"]
    _, count = run(program, tmp_path, OMP_NUM_THREADS="").split()
    assert 1 <= int(count) <= len(os.sched_getaffinity(0))


FORKS = r"""
#include "meshprep_threads.hpp"
#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>
using namespace meshprep;

// Whether others took part in a loop of a tenth of a second, and all turns ran.
int run_a_loop() {
  constexpr int n = 50;
  Ranges ranges;
  for (int k = 0; k < n; ++k) ranges.order.push_back(k);
  ranges.wait_offset.assign(n + 1, 0);
  Team team;
  for (int i = 0; i < 3; ++i) team.note(false, 1.0);
  std::atomic<int> ran{0}, elsewhere{0};
  const auto here = std::this_thread::get_id();
  run_in_turns(
      team, ranges,
      [&](std::int64_t) {
        usleep(2000);
        ++ran;
        elsewhere += std::this_thread::get_id() != here;
      },
      [] {});
  return ran == n && elsewhere > 0;
}

int main() {
  std::printf("parent %d\n", run_a_loop());
  std::fflush(stdout);
  if (fork() == 0) {
    alarm(60);
    std::printf("child %d %d\n", run_a_loop(), run_a_loop());
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  wait(&status);
  std::printf("ended %d, parent %d\n", status, run_a_loop());
}
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_loops_of_a_forked_process_have_threads_of_their_own(compile_program, tmp_path):
    (tmp_path / "forks.cpp").write_text(FORKS)
    assert compile_program("g++", FLAGS, tmp_path / "forks.cpp", tmp_path / "forks") == ""
    lines = run(tmp_path / "forks", OMP_NUM_THREADS="3").splitlines()
    assert lines == ["parent 1", "child 1 1", "ended 0, parent 1"]
