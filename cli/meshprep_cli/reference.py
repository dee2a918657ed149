"""Every command and option, as what completes them in a shell and as a page.

Both come from the commands themselves, whose options come from the dataclasses and the table.
"""

from collections.abc import Iterator
from typing import Any

from meshprep.loops.options import table

from .groups import group_of

SHELLS = ("bash", "zsh", "fish")


def completion(app: Any, shell: str) -> str:
    """What a shell sources: commands, their options, and the names that an option takes."""
    if shell == "fish":
        return "\n".join(_fish(app))
    commands = {name: " ".join(f for f, _, _ in _flags(one)) for name, one in app.commands.items()}
    found = [f"  {name}) words='{flags}' ;;" for name, flags in commands.items()]
    values = [f"  {flag}) words='{' '.join(names)}' ;;" for flag, names in _choices().items()]
    start = ["autoload -U +X bashcompinit && bashcompinit"] * (shell == "zsh")
    return "\n".join(
        [
            *start,
            "_meshprep() {",
            "  local words current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}",
            "  case ${COMP_WORDS[1]} in",
            *found,
            "  esac",
            f"  [ $COMP_CWORD -eq 1 ] && words='{' '.join(commands)}'",
            "  [ $COMP_CWORD -gt 1 ] && [[ $current != -* ]] && words=",
            "  case $before in",
            *values,
            "  esac",
            '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
            "}",
            "complete -o default -F _meshprep meshprep",
        ]
    )


def _fish(app: Any) -> Iterator[str]:
    choices = _choices()
    for name, command in app.commands.items():
        said = command.help.partition("\n")[0]
        yield f"complete -c meshprep -n __fish_use_subcommand -f -a {name} -d {_quoted(said)}"
        for flag, _, text in _flags(command):
            of, kind = f"'__fish_seen_subcommand_from {name}'", "l" if flag[1] == "-" else "s"
            names = f" -x -a '{' '.join(choices[flag])}'" if flag in choices else ""
            yield (
                f"complete -c meshprep -n {of} -{kind} {flag.lstrip('-')}{names} -d {_quoted(text)}"
            )


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _choices() -> dict[str, tuple[str, ...]]:
    """The names that an option takes, by its flag."""
    return {row.flag: row.choices for _, row in table() if row.choices}


def _flags(command: Any) -> Iterator[tuple[str, Any, str]]:
    """The flags of a command with their option and what it says."""
    for param in command.params:
        if param.param_type_name == "option":
            yield from ((flag, param, param.help or "") for flag in param.opts)


def page(app: Any) -> str:
    """All commands in Markdown: what each does, its arguments, and its options by heading."""
    parts = ["# Commands", f"{app.help} `meshprep COMMAND --help` shows the same in a terminal."]
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
