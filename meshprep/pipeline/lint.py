"""A kernel's source against the accesses of its loop, without running or importing it."""

import ast
from collections.abc import Sequence
from pathlib import Path

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.kernel.lint import lint_kernel
from meshprep_runtime.plan.checks.result import CheckResult
from meshprep_runtime.plan.file.atomic import check_input
from meshprep_runtime.types.loops import Loop

from ..loops.request_maps import plan_request_maps
from ..loops.requests import LoopRequest, loop_of_kernel
from ..mesh import Mesh


def lint_file(
    kernel: str,
    requests: Sequence[LoopRequest],
    loop: str | None = None,
    mesh: Mesh | None = None,
) -> CheckResult:
    """What a kernel's source does against the accesses of its loop.

    Parameters
    ----------
    kernel : str
        ``"FILE.py:function"``. The file is parsed, not imported.
    requests : sequence of LoopRequest
    loop : str, optional
        The loop to take; default: the one of the function's name, or the only one.
    mesh : Mesh, optional
        Tells how many columns maps have; without it the function's parameters do.

    Returns
    -------
    CheckResult
        A line for each finding, with file, line, argument and what to do.

    Raises
    ------
    MeshprepError
        For a file that cannot be read or parsed, a function or loop that is not there; and
        without a mesh for tuples of rows whose length only a mesh tells.
    """
    # From the right: a path of Windows has a colon, too.
    file, colon, name = kernel.rpartition(":")
    if not (colon and file.endswith(".py") and name):
        raise MeshprepError(f"kernel '{kernel}' must read FILE.py:function")
    definition, numbers = _parsed(Path(file), name)
    request = _request_of(requests, loop, name)
    loop_to_check: Loop
    if mesh is None:
        _refuse_tuples_of_unknown_length(definition, request)
        loop_to_check = loop_of_kernel(request, len(definition.args.args))
    else:
        (spec,) = plan_request_maps(mesh, [request])[1]
        loop_to_check = spec.loop

    findings = [
        f"{file}:{found.line}: {found.row}: {found.what}"
        for found in lint_kernel(definition, loop_to_check, numbers)
    ]
    if findings:
        count = f"{len(findings)} finding{'s' if len(findings) > 1 else ''}"
        return CheckResult(
            findings, f"{name} is not as loop '{request.name}' says: {count}"
        )
    return CheckResult([], f"no path through {name} is against loop '{request.name}'")


def _parsed(file: Path, name: str) -> tuple[ast.FunctionDef, dict[str, int]]:
    """The function of a file, and the whole numbers that the file gives names to."""
    try:
        check_input(file)
        module = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        raise MeshprepError(f"{file}: cannot be read as Python: {error}") from None
    except MeshprepError as error:
        raise MeshprepError(f"{file}: {error}") from None
    numbers = {}
    function = None
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            function = node
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                if isinstance(target, ast.Name) and type(node.value.value) is int:
                    numbers[target.id] = node.value.value
    if function is None:
        raise MeshprepError(f"{file} has no function '{name}'")
    return function, numbers


def _refuse_tuples_of_unknown_length(
    definition: ast.FunctionDef, request: LoopRequest
) -> None:
    """Raise MeshprepError for a parameter that is a tuple of all rows of a map."""
    names = [argument.arg for argument in definition.args.args]
    args = request.values["args"]
    if len(names) != len(args):
        return
    for name, arg in zip(names, args, strict=True):
        is_whole = isinstance(arg, dict) and "map" in arg and "index" not in arg
        if is_whole and _is_used_as_tuple(definition, name):
            raise MeshprepError(
                f"{request.where}: kernel '{definition.name}' takes '{name}' as a tuple of "
                "rows, and only a mesh tells how many: give --mesh, or index = [0, 1] in "
                "the argument"
            )


def _is_used_as_tuple(definition: ast.FunctionDef, name: str) -> bool:
    """True where ``x[0][1]`` takes an item of an item, or ``a, b = x`` takes all items."""
    used_as_tuples: list[ast.expr] = []
    for node in ast.walk(definition):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Subscript):
            used_as_tuples.append(node.value.value)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            used_as_tuples.append(node.value)
    return any(isinstance(whole, ast.Name) and whole.id == name for whole in used_as_tuples)


def _request_of(
    requests: Sequence[LoopRequest], loop: str | None, kernel: str
) -> LoopRequest:
    """The loop that is named, that of the kernel's name, or the only one."""
    by_name = {request.name: request for request in requests}
    loop_name = loop or kernel
    if loop is None and len(by_name) == 1:
        (loop_name,) = by_name
    if loop_name not in by_name:
        raise MeshprepError(
            f"there is no loop '{loop_name}': name one of {', '.join(by_name)} by --loop"
        )
    return by_name[loop_name]
