"""A format of blocks of cells, made of a reader, a writer and what it carries."""

from collections.abc import Callable
from pathlib import Path

from ...mesh import Mesh
from ..format import Capabilities, Format
from ..format.calls import check_call
from ..format.model import Grouping
from ..format.reduce import reduce
from .file_mesh import FileMesh
from .limits import usual_limits


def block_format(
    *,
    read: Callable[[Path], FileMesh],
    write: Callable[[FileMesh, Path], None],
    carries: Capabilities,
    limits: Callable[[Mesh], tuple[Mesh, list[str]]] = usual_limits,
    extensions: tuple[str, ...] = (),
    description: str = "",
    digits: int = 17,
    overlaid: bool = False,
    groups: Grouping | None = None,
) -> Format:
    """The format of a reader and a writer of blocks of cells.

    Parameters
    ----------
    read : callable
        ``read(path)`` gives what the file holds. Whatever it raises is told as damage of
        the file.
    write : callable
        ``write(mesh, path)`` writes all of a mesh of a file, in its order.
    carries : Capabilities
        What of a mesh the writer can be given.
    limits : callable
        ``limits(mesh)`` takes out of a mesh that fits ``carries`` what the format cannot
        hold all the same, such as names of a form that it has no place for; it gives the
        mesh that is left and the losses in words.
    extensions, description, digits, overlaid, groups
        As of :class:`~meshprep.io.format.Format`.

    Raises
    ------
    MeshprepError
        Where ``read``, ``write`` or ``limits`` cannot be called so.
    """
    check_call("write", write, ("mesh", "path"))
    check_call("limits", limits, ("mesh",))
    reader = read_only_format(read)

    def reduced(mesh: Mesh) -> tuple[Mesh, list[str]]:
        fitting, lost = reduce(mesh, carries)
        left, more_lost = limits(fitting)
        return left, lost + more_lost

    def write_mesh(mesh: Mesh, path: Path) -> None:
        from .file_of_mesh import file_of_mesh

        write(file_of_mesh(reduced(mesh)[0], carries), path)

    return Format(
        extensions=extensions,
        description=description,
        read=reader.read,
        write=write_mesh,
        losses=lambda mesh, **_options: reduced(mesh)[1],
        reduce=lambda mesh: reduced(mesh)[0],
        digits=digits,
        overlaid=overlaid,
        extras=carries.extras,
        groups=groups,
        guarded=True,
    )


def read_only_format(
    read: Callable[[Path], FileMesh],
    *,
    extensions: tuple[str, ...] = (),
    description: str = "",
) -> Format:
    """The format of a reader of blocks of cells, without a writer."""
    check_call("read", read, ("path",))

    def read_mesh(path: Path) -> Mesh:
        from .mesh_of_file import mesh_of_file

        file_mesh = read(path)
        if not isinstance(file_mesh, FileMesh):
            kind = type(file_mesh).__name__
            raise TypeError(f"the reader gave a {kind}: it must give a FileMesh")
        return mesh_of_file(file_mesh)

    return Format(
        extensions=extensions,
        description=description,
        read=read_mesh,
        write=None,
        losses=lambda mesh, **_options: [],
        guarded=True,
    )
