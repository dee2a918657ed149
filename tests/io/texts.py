"""Files by their content: what is read of them, and why they are refused."""

from pathlib import Path

import pytest

from meshprep import io
from meshprep.mesh import Mesh
from meshprep_runtime import MeshprepError


def put(content: str | bytes, path: Path) -> Path:
    """A file with this content."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(content: str | bytes, path: Path) -> Mesh:
    """The mesh of a file with this content."""
    return io.read(put(content, path))


def refused(content: str | bytes, path: Path, match: str | None = None) -> str:
    """The error of a file with this content."""
    return refusal(put(content, path), match)


def refusal(path: Path, match: str | None = None) -> str:
    """The error of a file: one line that begins with its name."""
    with pytest.raises(MeshprepError, match=match) as caught:
        io.read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message
