"""The share of each part by what a run on equal parts was measured to take [R14 6.3].

If a rank takes as long for each of its elements whatever their number, all ranks end
together where each owns elements in proportion to those that it ran in a second.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError

# How weights begin that name a file of times.
AUTO = "auto:"
# Seconds of computing; those of waiting for the slower ranks say nothing of a rank itself.
COMPUTING = ("core", "boundary", "exec", "other")
OWNED = ("core", "boundary")


def shares_by_times(path: Path, parts: int) -> tuple[float, ...]:
    """What each part shall own relative to the others: elements a second on its rank.

    ``path`` has what ``program.timings().to_json()`` gives, of a run on ``parts`` ranks.
    Raises MeshprepError for files that cannot be read, hold something else or another
    number of ranks, and where a rank has no speed. O(loops * ranks).
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MeshprepError(f"{path}: {error.strerror or error}") from None
    except ValueError:
        raise MeshprepError(f"{path}: is no JSON text") from None
    try:
        speeds = elements_a_second(content["loops"])
    except (KeyError, TypeError, AttributeError):
        raise MeshprepError(
            f"{path}: holds no times of loops on ranks: write program.timings().to_json()"
        ) from None
    except MeshprepError as error:
        raise MeshprepError(f"{path}: {error}") from None
    if len(speeds) != parts:
        raise MeshprepError(
            f"{path}: has the times of {len(speeds)} ranks, but there are {parts} parts: "
            "time a run on as many"
        )
    return tuple(speeds)


def elements_a_second(loops: Mapping[str, Mapping[str, Any]]) -> list[float]:
    """By rank, the elements that it owns in one call of each loop, by all its seconds.

    ``loops`` is ``{loop: {rank: {"core": seconds, ..., "elements": {"core": n, ...}}}}``.
    Raises MeshprepError for a rank without elements or seconds: its speed is unknown.
    """
    ranks = sorted({rank for times in loops.values() for rank in times}, key=int)
    speeds = []
    for rank in ranks:
        elements = 0
        seconds = 0.0
        for times in loops.values():
            elements += sum(times[rank]["elements"].get(name, 0) for name in OWNED)
            seconds += sum(times[rank][name] for name in COMPUTING)
        if not (elements > 0 and 0 < seconds < float("inf")):
            raise MeshprepError(
                f"rank {rank} ran {elements} elements in {seconds:g} seconds, so that its "
                "speed is unknown: time a run in which every rank owns some"
            )
        speeds.append(elements / seconds)
    return speeds
