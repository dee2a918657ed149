"""Frozen dataclasses as JSON values, and back with every type checked.

All JSON of a plan is read here. Its numbers are counts, shares and seconds: finite, and
never negative. Values that this version has no field for are kept unchanged, see "Versions"
in docs/plan-format.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from types import UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from ..errors import PlanError

T = TypeVar("T")
# Metadata of a field that is not written where it has its default.
LEFT_OUT = {"left out": True}
# Metadata of the only field of a record, whose value is written in place of the record.
IN_PLACE = {"in place": True}


@dataclass(frozen=True, kw_only=True)
class Record:
    """A JSON object; fields without a default must be in it when it is read.

    ``other`` holds JSON values that this version has no field for.
    """

    other: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)

    def check(self) -> None:
        """Raise ValueError where fields contradict each other; called after reading."""


def to_json(value: Any) -> Any:
    """Records, and mappings and lists of them, as JSON values."""
    if isinstance(value, Record):
        values = dict(value.other)
        # The first field is `other`.
        for record_field in fields(value)[1:]:
            inner = getattr(value, record_field.name)
            if "in place" in record_field.metadata:
                return to_json(inner)
            if inner != record_field.default or "left out" not in record_field.metadata:
                values[record_field.name] = to_json(inner)
        return values
    if isinstance(value, Mapping):
        return {key: to_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(inner) for inner in value]
    return value


def from_json(kind: type[T], value: Any, where: str) -> T:
    """The value of a type that :func:`to_json` has turned into JSON.

    ``kind`` is a :class:`Record`, ``int``, ``float``, ``str``, ``bool`` or ``Any``; a
    mapping from ``str`` to one of these, a tuple of one of them, or one of them or None.
    Raises PlanError at the first value of another type; ``where`` names the place of
    ``value`` in the message.
    """
    return cast(T, _read_json(kind, value, where))


def wrong_figures(what: str) -> PlanError:
    """The error for figures that no meshprep wrote; ``what`` is place and fault."""
    return PlanError(
        f"the plan's figures are not those of a plan ({what}): make the plan anew"
    )


def _read_json(kind: Any, value: Any, where: str) -> Any:
    origin = get_origin(kind)
    inner_kinds = get_args(kind)
    if kind is Any or (origin is UnionType and value is None):
        return value
    if origin is UnionType:
        return _read_json(inner_kinds[0], value, where)
    if origin is tuple:
        _require_type(isinstance(value, list | tuple), where, "no list")
        return tuple(
            _read_json(inner_kinds[0], entry, f"{where}/{i}")
            for i, entry in enumerate(value)
        )
    # Numbers, texts and truth values stand for themselves.
    if kind in PLAIN_KINDS:
        matches, fault = PLAIN_KINDS[kind]
        _require_type(matches(value), where, fault)
        return value
    if origin is None:
        only_field = fields(kind)[1]
        if "in place" in only_field.metadata:
            inner_kind = _types_of_fields(kind)[only_field.name]
            return kind(**{only_field.name: _read_json(inner_kind, value, where)})
    # All else is an object: a mapping, or the fields of a record.
    _require_type(isinstance(value, Mapping), where, "no JSON object")
    if origin is Mapping:
        return {
            key: _read_json(inner_kinds[1], entry, f"{where}/{key}")
            for key, entry in value.items()
        }
    return _read_record(kind, value, where)


def _read_record(kind: Any, values: Mapping[str, Any], where: str) -> Any:
    """A record with the fields of a JSON object; all other values go to ``other``."""
    values_of_fields = {}
    other = dict(values)
    types = _types_of_fields(kind)
    for record_field in fields(kind)[1:]:
        name = record_field.name
        if name in values:
            values_of_fields[name] = _read_json(
                types[name], other.pop(name), f"{where}/{name}"
            )
        elif record_field.default is record_field.default_factory is MISSING:
            raise wrong_figures(f"{where}/{name} is missing")
    # Fields of later versions stay in the record, and are written again.
    record = kind(**values_of_fields, other=other)
    try:
        record.check()
    except ValueError as error:
        raise wrong_figures(f"{where}/{error}") from None
    return record


def _require_type(matches: bool, where: str, fault: str) -> None:
    if not matches:
        raise wrong_figures(f"{where} is {fault}")


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value < 1e18


def _is_whole_number(value: Any) -> bool:
    return isinstance(value, int) and _is_number(value)


def _is_str(value: Any) -> bool:
    return isinstance(value, str)


# How plain values are checked, and what a message says of others.
PLAIN_KINDS: dict[Any, tuple[Callable[[Any], bool], str]] = {
    bool: (_is_bool, "neither true nor false"),
    float: (_is_number, "no number from 0 to 1e18"),
    int: (_is_whole_number, "no whole number from 0"),
    str: (_is_str, "no text"),
}


@cache
def _types_of_fields(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
