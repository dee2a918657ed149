"""Every command and option as a page, made from the commands themselves."""

from typing import Any

from meshprep_cli.groups import group_of


def page(app: Any) -> str:
    """All commands in Markdown: what each does, its arguments, and its options by heading."""
    parts = [
        "# Commands",
        f"{app.help} `meshprep COMMAND --help` shows the same in a terminal.",
    ]
    for name, command in app.commands.items():
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        usage = " ".join([name, *(p.metavar + "..." * (p.nargs == -1) for p in arguments)])
        parts += [f"## {name}", command.help, f"```\nmeshprep {usage}\n```"]
        groups: dict[str, list[str]] = {}
        for param in command.params:
            if param.param_type_name == "option":
                groups.setdefault(group_of(param) or "Options", []).append(_row(param))
        lines = [f"| `{p.metavar}` | {_escaped(p.help)} |" for p in arguments]
        tables = {"Arguments": lines, **groups}.items()
        heads = ((rows, [f"| {title} | |", "|---|---|"]) for title, rows in tables if rows)
        parts += ["\n".join([*head, *rows]) for rows, head in heads]
    return "\n\n".join(parts) + "\n"


def _row(param: Any) -> str:
    value = "" if param.is_flag else f" {param.metavar or 'TEXT'}"
    flags = ", ".join(f"`{flag}{value}`" for flag in param.opts)
    default = param.default if isinstance(param.default, str | int | float) else None
    more = "" if param.is_flag or default is None else f" Default: `{default}`."
    return f"| {flags} | {_escaped(param.help or '')}{more} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
