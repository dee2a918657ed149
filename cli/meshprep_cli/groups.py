"""Options in groups: a command takes dataclasses, and its users see an option for each field."""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from meshprep.loops.options import OptionRow, Options, table
from meshprep_runtime.errors import MeshprepError

from .shipped import use_shipped

Builder = Callable[[dict[str, Any]], Any]
# The headings of the options of the table.
CUTTING, RUNNING = "How it is numbered and cut into blocks", "How the command runs"


def with_options(run: Callable[..., Any]) -> Callable[..., Any]:
    """The command ``run`` with a parameter an option, as typer reads them.

    A parameter of ``run`` whose type is a dataclass stands for one option a field, described by the
    field's ``Annotated`` type, under the first line of the dataclass as a heading; one of type
    :class:`Options` for those of the table that the command, named as its module, takes.
    """
    command = run.__module__.rpartition(".")[2]
    parameters: list[Parameter] = []
    groups: dict[str, tuple[Builder, list[str]]] = {}
    for name, own in inspect.signature(run, eval_str=True).parameters.items():
        if not is_dataclass(own.annotation):
            kept = described(name, own.annotation)
            parameters.append(own.replace(kind=Parameter.KEYWORD_ONLY, annotation=kept))
            continue
        kind: Any = own.annotation
        options = list(_of_table(command) if kind is Options else _of_fields(kind))
        parameters += options
        build = _chosen if kind is Options else lambda values, kind=kind: kind(**values)
        groups[name] = build, [p.name for p in options]

    def flat(**values: Any) -> Any:
        # what `tune` times is compiled for this very processor
        if command != "tune":
            use_shipped()
        for name, (build, names) in groups.items():
            values[name] = build({n: values.pop(n) for n in names})
        return run(**values)

    flat.__doc__ = run.__doc__
    flat.__annotations__ = {p.name: p.annotation for p in parameters}
    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return flat


def words(group: Any, always: Collection[str] = ()) -> Iterator[str]:
    """The flags and values, as a shell takes them, that give a group its values.

    Values that are the default are left out, but for those of the fields in ``always``.
    """
    default = type(group)()
    for name, flag in _flags(type(group)).items():
        value = getattr(group, name)
        if value == getattr(default, name) and name not in always:
            continue
        if isinstance(value, bool):
            yield flag
            continue
        if isinstance(value, Mapping):
            value = [f"{option}={own}" for option, own in value.items()]
        for one in value if isinstance(value, list) else [value]:
            yield from (flag, str(one))


def _flags(group: type) -> dict[str, str]:
    if group is Options:
        return {name: row.flag for name, row in table()}
    hints = get_type_hints(group, include_extras=True)
    return {name: _first_flag(hint.__metadata__[0]) for name, hint in hints.items()}


def _first_flag(option: Any) -> str:
    # typer takes the first flag for a default until it meets the function
    flags = (option.default, *(option.param_decls or ()))
    return next(flag for flag in flags if str(flag).startswith("--"))


def _of_fields(group: Any) -> Iterator[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    title = group.__doc__.partition("\n")[0].partition(";")[0].rstrip(".")
    for one in fields(group):
        default = Parameter.empty if one.default is MISSING else one.default
        said = described(one.name, hints[one.name], title)
        yield Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=said)


def _of_table(command: str) -> Iterator[Parameter]:
    hints = get_type_hints(Options)
    for name, row in table(command):
        kind, default = hints[name], getattr(Options(), name)
        if isinstance(default, Mapping):
            kind, default = list[str] | None, None
        elif _negated(row):
            default = not default
        names = _names(row.choices) if row.choices else None
        option = typer.Option(row.flag, help=row.help, min=row.least, autocompletion=names)
        heading = RUNNING if name in ("seed", "proof") else CUTTING
        said = described(name, Annotated[kind, option], heading)
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=said)


def _names(choices: tuple[str, ...]) -> Callable[[], list[str]]:
    """What completes the value of an option in a shell."""
    return lambda: list(choices)


def _chosen(values: dict[str, Any]) -> Options:
    rows = dict(table())
    chosen: dict[str, Any] = {n: not v if _negated(rows[n]) else v for n, v in values.items()}
    if "partition_options" in chosen:
        chosen["partition_options"] = pairs(chosen["partition_options"], "--partition-option")
    return Options(**chosen)


def _negated(row: OptionRow) -> bool:
    return row.flag.startswith("--no-")


def listed(text: str) -> list[str]:
    """The words between the commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def pairs(texts: list[str] | None, flag: str) -> dict[str, str]:
    """What ``NAME=VALUE`` says, each time that the flag was given."""
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise MeshprepError(f"{flag} '{text}' must read NAME=VALUE")
        if found.get(name, value) != value:
            raise MeshprepError(f"{flag} {name} is given twice: {found[name]} and {value}")
        found[name] = value
    return found


# What stands for a value, by its type.
_METAVARS = {Path: "FILE", str: "TEXT", int: "N", float: "NUMBER"}


class Command(typer.core.TyperCommand):
    """A command whose help has a heading for each group of options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, what belongs to no group, then the groups in their order."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        for param in sorted(self.get_params(ctx), key=lambda p: group_of(p) is not None):
            record = param.get_help_record(ctx)
            is_option = param.param_type_name == "option"
            title = (group_of(param) or "Options") if is_option else "Arguments"
            if record is not None:
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def described(name: str, annotation: Any, group: str | None = None) -> Any:
    """The annotated type of a parameter, which now says its group and what stands for its value.

    An option that several commands share keeps the group that it was given first.
    """
    kind, *_ = get_args(annotation)
    for said in annotation.__metadata__:
        said.rich_help_panel = said.rich_help_panel or group
        is_option = isinstance(said, typer.models.OptionInfo)
        said.metavar = _METAVARS.get(_value_type(kind)) if is_option else name.upper()
    return annotation


def group_of(param: Any) -> str | None:
    """The heading of an option; --help itself has none."""
    group: str | None = getattr(param, "rich_help_panel", None)
    return group


def _value_type(kind: Any) -> Any:
    """``Path`` of ``Path``, ``Path | None`` and ``list[Path]``."""
    inner = [one for one in get_args(kind) if one is not type(None)]
    return _value_type(inner[0]) if inner else kind
