"""Reading TOML with errors that say where."""

import tomllib
from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError


def read_toml(path: str | Path) -> dict[str, Any]:
    """The content of a TOML file; raises MeshprepError where it cannot be read or is none."""
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise MeshprepError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        text = str(error).splitlines()[0]
        raise MeshprepError(f"{path}: not valid TOML: {text}") from None
