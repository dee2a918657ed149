"""Functions of users that a command runs: ``module:function`` and ``FILE.py:function``."""

import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from meshprep_runtime.errors import MeshprepError


def function_of(text: str, option: str) -> Any:
    """What ``module:function`` or ``FILE.py:function`` names: a function, or one in CUDA C."""
    from meshprep_runtime.cuda import DeviceFunction

    where, colon, name = text.rpartition(":")
    if not (colon and where and name):
        raise MeshprepError(f"{option} '{text}' must read module:function or FILE.py:function")
    found = getattr(_module(where, option), name, None)
    if not callable(found) and not isinstance(found, DeviceFunction):
        raise MeshprepError(f"{option}: {where} has no function '{name}'")
    return found


def _module(where: str, option: str) -> ModuleType:
    try:
        if not where.endswith(".py"):
            if os.getcwd() not in sys.path:
                sys.path.insert(0, os.getcwd())
            return importlib.import_module(where)
        spec = importlib.util.spec_from_file_location(Path(where).stem, where)
        if spec is None or spec.loader is None:
            raise ImportError("no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(spec.name, module)
        spec.loader.exec_module(module)
        return module
    except FileNotFoundError as error:
        missing = error.filename or where
        raise MeshprepError(f"{option}: {missing} does not exist: check the name") from error
    except Exception as error:  # Whatever the user's module raises.
        raise MeshprepError(
            f"{option}: cannot import {where}: {type(error).__name__}: {error}"
        ) from error


def arrays_of(text: str | None, plan: Any) -> Mapping[str, Any] | None:
    """The arrays that a function of a loop's plan gives, by name."""
    if text is None:
        return None
    found = function_of(text, "--values")(plan)
    if not isinstance(found, Mapping):
        raise MeshprepError(f"--values {text} gave a {type(found).__name__}: give arrays by name")
    return found
