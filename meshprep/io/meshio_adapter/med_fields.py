"""What MED files say of their fields, and the numbers of nodes and cells: meshio passes over both.

Of a field these are names and units of its components, and the time of its only step. Values that
a profile gives to a part of the nodes or cells are put into their places here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from .numbers import NUMBERS, TakenNumbers

_WHOLE = "MED_NO_PROFILE_INTERNAL"
_OF_FIELD, _OF_STEP = ("NOM", "UNI", "UNT", "NCO"), ("NDT", "NOR", "PDT")


def read_fields(file: Any) -> tuple[dict[str, tuple[str, dict[str, Any]]], list[str]]:
    """Step and attributes of each field with one step, and what is left out of the others."""
    found, lost = {}, []
    for name, field in file.get("CHA", {}).items():
        steps = list(field)
        if len(steps) != 1:
            lost.append(f"the steps of '{name}'")
            continue
        attributes = {key: field.attrs[key] for key in _OF_FIELD if key in field.attrs}
        both = {t for t in field[steps[0]] if f"NOE.{t.partition('.')[2]}" in field[steps[0]]}
        if any(support.startswith("MAI.") for support in both):
            lost.append(f"values '{name}' of cells, beside those at their nodes")
        step = field[steps[0]].attrs
        found[name] = steps[0], attributes | {key: step[key] for key in _OF_STEP if key in step}
    return found, lost


def values_on(support: Any, profiles: Any, n: int) -> NDArray:
    """Values of nodes or of the cells of a type, ``n`` of them: (n, values at each, components).

    NaN where a profile leaves them out. Raises MeshprepError where it names others.
    """
    profile = bytes(support.attrs["PFL"]).decode()
    data = support[profile]
    index = np.arange(n) if profile == _WHOLE else profiles[profile]["PFL"][()] - 1
    for wrong in index[(index < 0) | (index >= n)][:1]:
        raise MeshprepError(f"profile '{profile}' names number {wrong + 1} of 1 to {n}: correct it")
    shape = (index.size, int(data.attrs.get("NGA", 1)), -1)
    values = data["CO"][()].reshape(shape, order="F")
    if profile == _WHOLE:
        return values
    out = np.full((n, *values.shape[1:]), np.nan, np.result_type(values, np.float32))
    out[index] = values
    return out


def write_fields(file: Any, fields: Mapping[str, tuple[str, Mapping[str, Any]]]) -> None:
    """Give the fields that are there these steps and attributes."""
    for name, (step, attributes) in fields.items():
        field = file.get(f"CHA/{name}")
        if field is None or field.attrs["NCO"] != attributes.get("NCO"):
            continue
        written = next(iter(field))
        if written != step:
            field.move(written, step)
        for key, value in attributes.items():
            place = field if key in _OF_FIELD else field[step]
            place.attrs[key] = value


def read_numbers(step: Any, mesh: Any) -> list[str]:
    """Give nodes and cells the numbers that they have in the file; returns what fits neither."""
    nodes = _number(step["NOE"], len(mesh.points))
    cells = [
        _number(one, len(block.data))
        for one, block in zip(step["MAI"].values(), mesh.cells, strict=True)
    ]
    lost = []
    for what, data, numbers in (
        ("nodes", mesh.point_data, [nodes]),
        ("cells", mesh.cell_data, cells),
    ):
        given = [one for one in numbers if one is not None]
        every = np.concatenate([*given, np.empty(0, int)])
        if all(np.array_equal(one, np.arange(1, one.size + 1)) for one in given):
            continue
        if len(given) < len(numbers) or np.unique(every).size < every.size or NUMBERS in data:
            lost.append(f"the numbers of the {what}")
        else:
            data[NUMBERS] = given[0] if what == "nodes" else given
    mesh.numbered = True
    return lost


def _number(group: Any, n: int) -> NDArray | None:
    found = group["NUM"][()] if "NUM" in group else None
    return found if found is None or found.shape == (n,) else None


def write_numbers(step: Any, groups: Sequence[Any], numbers: TakenNumbers) -> None:
    """The numbers of nodes and of the blocks of cells, whose groups these are."""
    nodes, cells = numbers
    given = [] if nodes is None else [(step["NOE"], nodes)]
    given += [] if cells is None else list(zip(groups, cells, strict=True))
    for group, values in given:
        made = group.create_dataset("NUM", data=values.astype(np.int64))
        made.attrs.create("CGT", 1)
        made.attrs.create("NBR", len(values))
