"""Options of a partitioner as data: one table gives parsing, defaults, help and errors."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from meshprep_runtime.errors import MeshprepError

from .blocks_of import BlockProblem, Blocks

YES, NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


@dataclass(frozen=True)
class Option:
    """One option: its type, default and help, and what it may be.

    ``type`` is int, float, bool or str. ``low`` and ``high`` bound a number, ends included;
    ``choices`` lists what a text may be, ``names`` are texts that stand for numbers.
    """

    type: type
    default: Any
    help: str
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()
    names: Mapping[str, float] = field(default_factory=dict)

    def parse(self, value: object, name: str) -> Any:
        """The value in the option's type, from that or text; raises MeshprepError otherwise."""
        made = self.names.get(str(value), _PARSERS[self.type](value))
        if made is None:
            raise MeshprepError(f"option '{name}' is {value!r}, must be {self.expects}")
        if self.choices and made not in self.choices:
            raise MeshprepError(f"option '{name}' is {value!r}, must be {self.expects}")
        if self.type in (int, float) and not self.low <= made <= self.high:
            raise MeshprepError(f"option '{name}' is {value!r}, must be {self.expects}")
        return made

    @property
    def expects(self) -> str:
        """What may be given, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        words = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
        text = words[self.type]
        if self.low > -math.inf:
            text += f" from {self.low:g}"
        text += f" to {self.high:g}" if self.high < math.inf else ""
        return f"one of {', '.join(self.names)}, or {text}" if self.names else text


@dataclass(frozen=True)
class Partitioner:
    """A way to cut blocks: ``function(problem, options)``, with every option of the table set."""

    function: Callable[[BlockProblem, Mapping[str, Any]], Blocks]
    options: Mapping[str, Option]
    description: str


def effective(
    known: Mapping[str, Option], given: Mapping[str, object] | None, owner: str
) -> dict[str, Any]:
    """Every option of ``known``, from ``given`` or its default; raises MeshprepError for others."""
    given = given or {}
    for name in given:
        if name not in known:
            choices = f"choose {', '.join(known)}" if known else "it takes none"
            raise MeshprepError(f"{owner} has no option '{name}': {choices}")
    return {
        name: option.parse(given[name], name) if name in given else option.default
        for name, option in known.items()
    }


def _to_number(kind: type[int] | type[float], value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, kind, str)):
        return None
    try:
        made = kind(value)
    except (ValueError, OverflowError):
        return None
    return made if kind is int or math.isfinite(made) else None


def _to_bool(value: object) -> bool | None:
    text = str(value).strip().lower() if isinstance(value, (bool, str)) else ""
    return True if text in YES else False if text in NO else None


_PARSERS: dict[type, Callable[[object], Any]] = {
    int: partial(_to_number, int),
    float: partial(_to_number, float),
    bool: _to_bool,
    str: lambda value: value if isinstance(value, str) else None,
}
