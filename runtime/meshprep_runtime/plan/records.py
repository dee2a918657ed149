"""Frozen dataclasses as JSON values, and back with every type checked.

The one place that turns what a plan stores as JSON into objects. Its numbers are counts, shares and
seconds: finite, and never negative. What this version has no field for is kept as it is, see
"Versions" in docs/plan-format.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from types import UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from ..errors import PlanError

T = TypeVar("T")
# Metadata of a field: it is not written where it has its default; it is written in place of its
# record.
LEFT_OUT, IN_PLACE = {"left out": True}, {"in place": True}


@dataclass(frozen=True, kw_only=True)
class Record:
    """A JSON object. Fields without a default must be there when it is read."""

    # JSON values that this version has no field for.
    other: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)

    def check(self) -> None:
        """Raise ValueError where fields contradict each other; asked of what is read."""


def to_json(value: Any) -> Any:
    """Records, and mappings and lists of them, as JSON values."""
    if isinstance(value, Record):
        found = dict(value.other)
        for one in fields(value)[1:]:
            inner = getattr(value, one.name)
            if "in place" in one.metadata:
                return to_json(inner)
            if inner != one.default or "left out" not in one.metadata:
                found[one.name] = to_json(inner)
        return found
    if isinstance(value, Mapping):
        return {key: to_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(inner) for inner in value]
    return value


def from_json(kind: type[T], value: Any, where: str) -> T:
    """The reverse of :func:`to_json`.

    ``kind`` is a :class:`Record`, ``int``, ``float``, ``str``, ``bool`` or ``Any``; a mapping from
    ``str`` to one of these, a tuple of one, or one or None. Raises PlanError at the first value of
    another type; ``where`` names the place of ``value`` in the message.
    """
    return cast(T, _read(kind, value, where))


def wrong_figures(what: str) -> PlanError:
    """The error for figures that no meshprep wrote; ``what`` names the place and the fault."""
    return PlanError(f"the plan's figures are not those of a plan ({what}): make the plan anew")


def _read(kind: Any, value: Any, where: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any or (origin is UnionType and value is None):
        return value
    if origin is UnionType:
        return _read(inner[0], value, where)
    if origin is tuple:
        _require(isinstance(value, list | tuple), where, "no list")
        return tuple(_read(inner[0], one, f"{where}/{i}") for i, one in enumerate(value))
    if kind in _PLAIN:
        matches, what = _PLAIN[kind]
        _require(matches(value), where, what)
        return value
    if origin is None and "in place" in (first := fields(kind)[1]).metadata:
        return kind(**{first.name: _read(_types(kind)[first.name], value, where)})
    _require(isinstance(value, Mapping), where, "no JSON object")
    if origin is Mapping:
        return {key: _read(inner[1], one, f"{where}/{key}") for key, one in value.items()}
    return _record(kind, value, where)


def _record(kind: Any, values: Mapping[str, Any], where: str) -> Any:
    known, other = {}, dict(values)
    for one in fields(kind)[1:]:
        if one.name in values:
            place = f"{where}/{one.name}"
            known[one.name] = _read(_types(kind)[one.name], other.pop(one.name), place)
        elif one.default is one.default_factory is MISSING:
            raise wrong_figures(f"{where}/{one.name} is missing")
    made = kind(**known, other=other)
    try:
        made.check()
    except ValueError as error:
        raise wrong_figures(f"{where}/{error}") from None
    return made


def _require(matches: bool, where: str, what: str) -> None:
    if not matches:
        raise wrong_figures(f"{where} is {what}")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e18


_PLAIN: dict[Any, tuple[Callable[[Any], bool], str]] = {
    bool: (lambda value: isinstance(value, bool), "neither true nor false"),
    float: (_number, "no number from 0 to 1e18"),
    int: (lambda value: _number(value) and isinstance(value, int), "no whole number from 0"),
    str: (lambda value: isinstance(value, str), "no text"),
}


@cache
def _types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
