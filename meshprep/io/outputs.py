"""Whether outputs can be written, said before any work is done."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.file.atomic import refuse_device


def check_targets(
    paths: Sequence[Path],
    *,
    overwrite: bool,
    inputs: Sequence[Path] = (),
    folder: Callable[[Path], object] | None = None,
) -> None:
    """Raise MeshprepError unless every path can be written: said before any work is done.

    The first may be a folder where ``folder`` says of it that it holds a mesh.
    """
    targets: set[str] = set()
    # Path.resolve would raise for a link that leads to itself.
    input_paths = {os.path.realpath(i) for i in inputs}
    for i, path in enumerate(paths):
        target = os.path.realpath(path)
        if target in targets:
            raise MeshprepError(f"{path}: two outputs have this name: choose another")
        targets.add(target)
        if (
            folder
            and not i
            and any(o != target and target.startswith(o + os.sep) for o in input_paths)
        ):
            raise MeshprepError(f"{path}: is inside the input: choose another place")
        if path.is_dir() and (i or not folder or not folder(path)):
            what = "a new folder" if folder and not i else "a file"
            raise MeshprepError(f"{path}: is a directory: name {what}")
        refuse_device(Path(target), path)
        if target in input_paths:
            raise MeshprepError(f"{path}: is the input itself: choose another name")
        if (path.exists() or path.is_symlink()) and not overwrite:
            raise MeshprepError(
                f"{path}: exists already: use --force (in Python overwrite=True) to "
                "overwrite it"
            )
        if not path.parent.is_dir():
            raise MeshprepError(
                f"{path}: folder {path.parent} does not exist: make it first"
            )
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise MeshprepError(f"{path}: no permission to write in folder {path.parent}")
