"""Whether functions that others write can be called as meshprep calls them."""

import inspect
from collections.abc import Sequence
from typing import Any

from meshprep_runtime.errors import MeshprepError


def check_call(what: str, function: Any, arguments: Sequence[str]) -> None:
    """Raise MeshprepError unless a function takes these arguments, in this order."""
    expected = f"must be a function of ({', '.join(arguments)})"
    if not callable(function):
        raise MeshprepError(f"{what} is a {type(function).__name__}: it {expected}")
    try:
        signature = inspect.signature(function)
    except ValueError:
        # compiled functions may say nothing about what they take
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise MeshprepError(f"{what} takes {signature}: it {expected}") from error
