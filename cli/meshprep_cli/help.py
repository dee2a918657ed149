"""What ``--help`` shows: options under the headings of their groups, and what a value is."""

from pathlib import Path
from typing import Any, get_args

import typer

# What stands for a value, by its type.
_METAVARS = {Path: "FILE", str: "TEXT", int: "N", float: "NUMBER"}


class Command(typer.core.TyperCommand):
    """A command whose help has a heading for each group of options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, what belongs to no group, then the groups in their order."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        for param in sorted(self.get_params(ctx), key=lambda p: _group(p) is not None):
            record = param.get_help_record(ctx)
            is_option = param.param_type_name == "option"
            title = (_group(param) or "Options") if is_option else "Arguments"
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


def _group(param: Any) -> str | None:
    # --help itself has none
    group: str | None = getattr(param, "rich_help_panel", None)
    return group


def _value_type(kind: Any) -> Any:
    """``Path`` of ``Path``, ``Path | None`` and ``list[Path]``."""
    inner = [one for one in get_args(kind) if one is not type(None)]
    return _value_type(inner[0]) if inner else kind
