"""The orders by name, ready to run: those of meshprep and those of other packages."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.ordering import Ordering

from ..kernels import Int32s
from ..registry.entries import (
    LoadedEntries,
    RegistryEntry,
    import_from,
    in_one_line,
    named_errors,
)
from ..registry.orders import ORDERS
from .figures import LocalityProblem, Method


def _method_of_entry(entry: RegistryEntry) -> Method:
    """The order of an entry of meshprep."""
    return Method(
        function=import_from(entry.function),
        description=entry.help,
        needs_coordinates=entry.needs_coordinates,
    )


def _method_of_package(method: Any, described: str) -> Method:
    """The order that another package adds, whose results are checked."""
    if not isinstance(method, Method):
        raise MeshprepError(
            f"{described} is a {type(method).__name__}: its entry point must name a "
            "meshprep.ordering.Method"
        )
    return replace(method, function=partial(_run_checked_order, method, described))


def _run_checked_order(method: Method, described: str, problem: LocalityProblem) -> Int32s:
    """Run another package's order; raise MeshprepError unless it gives a permutation."""
    if method.needs_coordinates and problem.coordinates is None:
        raise MeshprepError(f"{described} needs coordinates: use gps or rcm on this set")
    try:
        new_to_old = np.asarray(method.function(problem))
    except MeshprepError:
        raise
    except Exception as error:
        raise MeshprepError(
            f"{described} failed: {in_one_line(error)}: choose another order"
        ) from error
    if new_to_old.shape != (problem.n_points,):
        raise MeshprepError(
            f"{described} gave an array of shape {new_to_old.shape}: it must give the old "
            f"number of each of the {problem.n_points} points"
        )
    with named_errors(described):
        return Ordering.from_new_to_old(new_to_old).new_to_old


METHODS: LoadedEntries[Method] = LoadedEntries(
    registry=ORDERS,
    from_entry=_method_of_entry,
    from_package=_method_of_package,
)
