"""Options of a partitioner as data: one table gives parsing, defaults, help and errors."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from meshprep_runtime.errors import MeshprepError

from .blocks_of import BlockProblem, Blocks

YES = ("true", "yes", "on", "1")
NO = ("false", "no", "off", "0")


@dataclass(frozen=True)
class Option:
    """One option: its type, default, help and admitted values.

    ``type`` is int, float, bool or str. ``low`` and ``high`` bound a number, ends included;
    ``choices`` lists the admitted texts; ``names`` maps texts to numbers.
    """

    type: type
    default: Any
    help: str
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()
    names: Mapping[str, float] = field(default_factory=dict)

    def parse(self, value: object, name: str) -> Any:
        """The value in the option's type, from a value of that type or from text.

        Raises MeshprepError where it does not fit.
        """
        parsed = self.names.get(str(value), _PARSERS[self.type](value))
        if parsed is None:
            raise MeshprepError(f"option '{name}' is {value!r}, must be {self.expects}")
        if self.choices and parsed not in self.choices:
            raise MeshprepError(f"option '{name}' is {value!r}, must be {self.expects}")
        if self.type in (int, float) and not self.low <= parsed <= self.high:
            raise MeshprepError(f"option '{name}' is {value!r}, must be {self.expects}")
        return parsed

    @property
    def expects(self) -> str:
        """The admitted values in words, for messages."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        words = {
            int: "a whole number",
            float: "a number",
            bool: "true or false",
            str: "text",
        }
        text = words[self.type]
        if self.low > -math.inf:
            text += f" from {self.low:g}"
        text += f" to {self.high:g}" if self.high < math.inf else ""
        if self.names:
            return f"one of {', '.join(self.names)}, or {text}"
        return text


@dataclass(frozen=True)
class Partitioner:
    """A way to cut blocks: its function, which takes a value for each of its options."""

    function: Callable[[BlockProblem, Mapping[str, Any]], Blocks]
    options: Mapping[str, Option]
    description: str


def effective(
    table: Mapping[str, Option], values: Mapping[str, object] | None, owner: str
) -> dict[str, Any]:
    """Every option of the table with its given value or its default.

    Raises MeshprepError for names that the table does not have; ``owner`` names the
    partitioner in messages.
    """
    values = values or {}
    for name in values:
        if name not in table:
            if table:
                choices = f"choose {', '.join(table)}"
            else:
                choices = "it takes none"
            raise MeshprepError(f"{owner} has no option '{name}': {choices}")
    return {
        name: option.parse(values[name], name) if name in values else option.default
        for name, option in table.items()
    }


def _to_number(kind: type[int] | type[float], value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, kind, str)):
        return None
    try:
        number = kind(value)
    except (ValueError, OverflowError):
        return None
    if kind is int or math.isfinite(number):
        return number
    return None


def _to_bool(value: object) -> bool | None:
    if isinstance(value, (bool, str)):
        text = str(value).strip().lower()
    else:
        text = ""
    if text in YES:
        return True
    if text in NO:
        return False
    return None


_PARSERS: dict[type, Callable[[object], Any]] = {
    int: partial(_to_number, int),
    float: partial(_to_number, float),
    bool: _to_bool,
    str: lambda value: value if isinstance(value, str) else None,
}
