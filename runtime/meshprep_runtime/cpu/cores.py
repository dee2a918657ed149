"""How many threads share work: numba's number, at most the cores that the process may use."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from math import ceil, inf
from pathlib import Path
from typing import Any, TypeVar

from ..kernel.compiler import import_numba

R = TypeVar("R")


def thread_count() -> int:
    """Threads that share the work of this one.

    numba's number (``numba.set_num_threads``, one of each thread), at most :func:`core_count`.
    """
    numba = import_numba()
    try:
        asked: int = numba.get_num_threads()
    except ValueError:  # numba has no threads of its own, which nothing here needs
        asked = numba.config.NUMBA_NUM_THREADS
    return min(asked, core_count())


def core_count() -> int:
    """Threads that this process can keep busy, at least one.

    What ``NUMBA_NUM_THREADS``, else ``OMP_NUM_THREADS`` said when this was first asked, where that
    is a whole number. Else the cores on which the process may run (its affinity), at most the
    quota of processor time of its control groups, rounded up, as containers have one.
    """
    asked = _asked_for()
    return asked or min(_affinity(), max(1, ceil(min(_quota(), 1 << 20))))


@cache
def _asked_for() -> int:
    """What the environment asks for, 0 where it says nothing that can be read."""
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        # OpenMP takes a list, a number for each level of nesting
        first = os.environ.get(name, "").partition(",")[0].strip()
        if first.isascii() and first.isdecimal() and int(first) > 0:
            return int(first)
    return 0


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _quota(groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> float:
    """Seconds of processor time a second: the least that a control group of the process allows."""
    try:
        lines = own.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # another system
        return inf
    least = inf
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        for base in (groups, groups / "unified", groups / "cpu", groups / controllers):
            # in a container the group may be named as the host sees it, and be the topmost here
            place = base / path.strip("/")
            for group in (place, *place.parents):
                least = min(least, _quota_of(group))
                if group == base:
                    break
    return least


def _quota_of(group: Path) -> float:
    """Of one control group, of version 2 (one file) or 1 (two)."""
    try:
        if (group / "cpu.max").is_file():
            quota, period = (group / "cpu.max").read_text(encoding="ascii").split()
        else:
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            quota, period = ((group / name).read_text(encoding="ascii").strip() for name in names)
        return float(quota) / float(period) if float(quota) > 0 else inf
    except (OSError, ValueError):  # no such file, or "max"
        return inf


def on_threads(work: Callable[..., R], *items: Iterable[Any]) -> list[R]:
    """What ``map`` gives, several items at a time."""
    given = list(zip(*items, strict=True))
    many = min(thread_count(), len(given))
    if many < 2:
        return [work(*one) for one in given]
    with ThreadPoolExecutor(many) as pool:
        return list(pool.map(lambda one: work(*one), given))
