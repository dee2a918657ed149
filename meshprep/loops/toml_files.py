"""Reading TOML with errors that say where."""

import tomllib
from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.inputs import check_input, reason

# Bytes of a file of loops: those of large programs have a few thousand.
LARGEST = 1 << 20


def read_toml(path: str | Path) -> dict[str, Any]:
    """The content of a TOML file; raises MeshprepError where it cannot be read or is none."""
    path = Path(path)
    try:
        size = check_input(path)
        if size > LARGEST:
            raise MeshprepError(
                f"it has {size:,} bytes, more than any list of loops: check the name"
            )
        with path.open("rb") as file:
            return tomllib.load(file)
    except MeshprepError as error:
        raise MeshprepError(f"{path}: cannot be read: {error}") from None
    except OSError as error:
        raise MeshprepError(f"{path}: cannot be read: {reason(error)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        text = str(error).splitlines()[0]
        raise MeshprepError(f"{path}: not valid TOML: {text}") from None
