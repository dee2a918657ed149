"""Options in groups: a command takes dataclasses, and shows an option for each field."""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from meshprep.loops.options import OptionRow, Options, table
from meshprep.registry.entries import Registry
from meshprep.registry.formats import FORMATS
from meshprep_runtime.errors import MeshprepError

from .shipped import use_shipped

Builder = Callable[[dict[str, Any]], Any]
# The headings of the options of the table.
CUTTING = "How it is numbered and cut into blocks"
RUNNING = "How the command runs"


def with_options(command: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a command with a parameter an option, as typer reads them.

    A parameter of ``function`` whose type is a dataclass stands for one option a field,
    described by the field's ``Annotated`` type, under the first line of the dataclass as a
    heading; one of type :class:`Options` for those of the table that the command takes.
    """
    parameters: list[Parameter] = []
    groups: dict[str, tuple[Builder, list[str]]] = {}
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        kind: Any = parameter.annotation
        # An option or argument of its own stays as it is.
        if not is_dataclass(kind):
            annotation = described(name, kind)
            parameters.append(
                parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=annotation)
            )
            continue
        # A group becomes an option a field; remember how it is put together again.
        build: Builder
        if kind is Options:
            options = list(_of_table(command))
            build = _chosen
        else:
            options = list(_of_fields(kind))
            build = partial(_built, parameter.annotation)
        parameters += options
        groups[name] = build, [p.name for p in options]

    def flat(**values: Any) -> Any:
        # What `tune` times is compiled for this very processor.
        if command != "tune":
            use_shipped()
        for name, (build, names) in groups.items():
            values[name] = build({n: values.pop(n) for n in names})
        return function(**values)

    # Typer reads help, types and defaults from here.
    flat.__doc__ = function.__doc__
    flat.__annotations__ = {p.name: p.annotation for p in parameters}
    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return flat


def _built(kind: Callable[..., Any], values: dict[str, Any]) -> Any:
    return kind(**values)


def words(group: Any, always: Collection[str] = ()) -> Iterator[str]:
    """The flags and values, as a shell takes them, that give a group its values.

    Values that are the default are left out, but for those of the fields in ``always``.
    """
    default = type(group)()
    for name, flag in _flags(type(group)).items():
        value = getattr(group, name)
        if value == getattr(default, name) and name not in always:
            continue
        # A switch that differs from its default is on.
        if isinstance(value, bool):
            yield flag
            continue
        # A flag that takes several values is given once for each.
        values = [value]
        if isinstance(value, Mapping):
            values = [f"{option}={own}" for option, own in value.items()]
        elif isinstance(value, list):
            values = value
        for item in values:
            yield from (flag, str(item))


def _flags(group: type) -> dict[str, str]:
    if group is Options:
        return {name: row.flag for name, row in table()}
    hints = get_type_hints(group, include_extras=True)
    return {name: _first_flag(hint.__metadata__[0]) for name, hint in hints.items()}


def _first_flag(option: Any) -> str:
    # Typer takes the first flag for a default until it meets the function.
    flags = (option.default, *(option.param_decls or ()))
    return next(flag for flag in flags if str(flag).startswith("--"))


def _of_fields(group: Any) -> Iterator[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    title = group.__doc__.partition("\n")[0].partition(";")[0].rstrip(".")
    for field_ in fields(group):
        if field_.default is MISSING:
            default = Parameter.empty
        else:
            default = field_.default
        annotation = described(field_.name, hints[field_.name], title)
        yield Parameter(
            field_.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )


def _of_table(command: str) -> Iterator[Parameter]:
    hints = get_type_hints(Options)
    for name, row in table(command):
        kind = hints[name]
        default = getattr(Options(), name)
        # Arrays are for Python.
        if str in get_args(kind):
            kind = str | None
        # A shell knows neither mappings nor negations: NAME=VALUE, and a flag that is off.
        if isinstance(default, Mapping):
            kind = list[str] | None
            default = None
        elif _negated(row):
            default = not default
        names = None
        if row.choices is not None:
            names = _names(row.choices)
        option = typer.Option(row.flag, help=row.help, min=row.least, autocompletion=names)
        if name in ("seed", "proof"):
            heading = RUNNING
        else:
            heading = CUTTING
        annotation = described(name, Annotated[kind, option], heading)
        yield Parameter(
            name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )


def _names(choices: Collection[str]) -> Callable[[], list[str]]:
    """The function that lists the values of an option when a shell completes one."""
    return lambda: list(choices)


def _chosen(values: dict[str, Any]) -> Options:
    rows = dict(table())
    # Undo what a shell needs otherwise: flags that deny, and NAME=VALUE.
    chosen: dict[str, Any] = {}
    for name, value in values.items():
        if _negated(rows[name]):
            chosen[name] = not value
        else:
            chosen[name] = value
    if "partition_options" in chosen:
        chosen["partition_options"] = pairs(
            chosen["partition_options"], "--partition-option"
        )
    return Options(**chosen)


def _negated(row: OptionRow) -> bool:
    return row.flag.startswith("--no-")


def listed(text: str) -> list[str]:
    """The words between the commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def pairs(texts: list[str] | None, flag: str) -> dict[str, str]:
    """What ``NAME=VALUE`` says, each time that the flag was given."""
    values: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise MeshprepError(f"{flag} '{text}' must read NAME=VALUE")
        # The last one would win silently.
        if values.get(name, value) != value:
            raise MeshprepError(f"{flag} {name} is given twice: {values[name]} and {value}")
        values[name] = value
    return values


def names_added() -> dict[str, tuple[str, ...]]:
    """The names that other packages add, by the option that takes them."""
    registries = {name: row.choices for name, row in table()}
    registries |= dict.fromkeys(("input_format", "output_format"), FORMATS)
    added = {}
    for name, choices in registries.items():
        if isinstance(choices, Registry) and choices.added:
            added[name] = choices.added
    return added


# What stands for a value, by its type.
_METAVARS = {Path: "FILE", str: "TEXT", int: "N", float: "NUMBER"}


class Command(typer.core.TyperCommand):
    """A command whose help has a heading for each group of options."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words behind the command's name; versions of typer decorate arguments."""
        arguments = [p for p in self.get_params(ctx) if p.param_type_name == "argument"]
        return ["[OPTIONS]", *map(_usage_of, arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, what belongs to no group, then the groups in their order."""
        added = names_added()
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        for param in sorted(self.get_params(ctx), key=lambda p: group_of(p) is not None):
            # Packages may be installed after this program was: their names come late.
            if param.name in added:
                assert isinstance(param, typer.core.TyperOption)
                param.help = (
                    f"{param.help} Of other packages: {', '.join(added[param.name])}."
                )
            record = param.get_help_record(ctx)
            # Options of no group come first, under the plain heading.
            if param.param_type_name == "option":
                title = group_of(param) or "Options"
            else:
                title = "Arguments"
                record = _usage_of(param), getattr(param, "help", None) or ""
            if record is not None:
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def _usage_of(argument: Any) -> str:
    """``MESH``; ``[KIND]`` that may be left out, ``PLANS...`` that are several."""
    name = str(argument.metavar)
    if argument.nargs != 1:
        name += "..."
    if argument.required:
        return name
    return f"[{name}]"


def described(name: str, annotation: Any, group: str | None = None) -> Any:
    """The annotated type of a parameter, completed by its group and its metavariable.

    An option that several commands share keeps the group that it was given first.
    """
    # Help shows FILE or NUMBER in place of Python's types.
    kind, *_ = get_args(annotation)
    for info in annotation.__metadata__:
        info.rich_help_panel = info.rich_help_panel or group
        if isinstance(info, typer.models.OptionInfo):
            info.metavar = _METAVARS.get(_value_type(kind))
        else:
            info.metavar = name.upper()
    return annotation


def group_of(param: Any) -> str | None:
    """The heading of an option; --help itself has none."""
    group: str | None = getattr(param, "rich_help_panel", None)
    return group


def _value_type(kind: Any) -> Any:
    """``Path`` of ``Path``, ``Path | None`` and ``list[Path]``."""
    inner = [member for member in get_args(kind) if member is not type(None)]
    if inner:
        return _value_type(inner[0])
    return kind
