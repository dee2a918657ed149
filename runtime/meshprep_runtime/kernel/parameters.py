"""The parameters of a kernel in Python: one for each row, or one for each argument.

A hexahedron hands a kernel eight rows of a dat of its nodes. The kernel has a parameter for
each of them; or one for the argument, which is the tuple of its rows, as OP2 hands the rows
of a vector argument.
"""

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ..types.loops import Arg, Loop


@dataclass(frozen=True)
class KernelParameter:
    """What a parameter of a kernel stands for: columns of an argument's map."""

    arg: Arg
    columns: tuple[int, ...]

    @property
    def is_row(self) -> bool:
        """True for a row, False for a tuple of rows."""
        return len(self.columns) == 1

    @property
    def rows(self) -> tuple["KernelParameter", ...]:
        """Each of its rows as a parameter of its own."""
        return tuple(KernelParameter(self.arg, (column,)) for column in self.columns)

    @property
    def dim(self) -> int:
        """Components of a row; of a matrix those of one element's."""
        if self.arg.columns is None:
            return self.arg.dim
        return self.arg.dim * len(self.arg.index)

    @property
    def is_mapped(self) -> bool:
        """True where a map leads to its rows, whose columns messages name."""
        return self.arg.map is not None and self.arg.columns is None

    @property
    def what(self) -> str:
        """A row as messages name it: argument, and column of its map."""
        index = f", index {self.columns[0]}" if self.is_mapped else ""
        return f"argument '{self.arg.name}'{index}"


def parameters_by_row(loop: Loop) -> tuple[KernelParameter, ...]:
    """A parameter for each row that an element hands to its kernel."""
    return tuple(row for whole in parameters_by_argument(loop) for row in whole.rows)


def parameters_by_argument(loop: Loop) -> tuple[KernelParameter, ...]:
    """A parameter for each argument."""
    return tuple(KernelParameter(arg, arg.kernel_columns) for arg in loop.args)


def parameters_of_kernel(count: int, loop: Loop) -> tuple[KernelParameter, ...]:
    """The parameters of a kernel that has ``count`` of them.

    They are rows unless there is one for each argument.
    """
    by_argument = parameters_by_argument(loop)
    if count == len(by_argument):
        return by_argument
    return parameters_by_row(loop)


def rows_of_parameters(kernel: Callable[..., None], loop: Loop) -> tuple[int, ...]:
    """The number of rows that each parameter of a kernel stands for."""
    function: Any = getattr(kernel, "py_func", kernel)
    parameters = parameters_of_kernel(function.__code__.co_argcount, loop)
    return tuple(len(parameter.columns) for parameter in parameters)


def kernel_by_row(kernel: Callable[..., None], loop: Loop) -> Callable[..., None]:
    """A function with a parameter for each row, which calls the kernel.

    It is the kernel itself, unless that takes tuples of rows.
    """
    function: Any = getattr(kernel, "py_func", kernel)
    by_row = parameters_by_row(loop)
    if function.__code__.co_argcount == len(by_row):
        return kernel
    # Write a function that puts the rows of each argument together.
    names = []
    handed = []
    for number, parameter in enumerate(parameters_by_argument(loop)):
        own = [f"r{number}_{place}" for place in range(len(parameter.columns))]
        names += own
        handed.append(own[0] if parameter.is_row else f"({', '.join(own)})")
    heading = f"def by_row({', '.join(names)}):"
    call = f"    kernel({', '.join(handed)})"
    text = f"{heading}\n{call}\n"
    # Its source is read like that of a kernel: to prove sums, and to find misuse of rows.
    file = f"<rows of a kernel {sha256(text.encode()).hexdigest()[:16]}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"__name__": __name__, "kernel": kernel}
    exec(compile(text, file, "exec"), scope)
    made: Callable[..., None] = scope["by_row"]
    # Messages and tuned entries name the user's kernel.
    made.__name__ = function.__name__
    made.__qualname__ = function.__qualname__
    return made
