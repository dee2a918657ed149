"""One way in and one way out for every mesh file.

Reading checks the path, reads, and validates; writing asks first what would be lost, writes beside
the target, reads the result back, compares it with the mesh, and only then puts it in place.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.file.atomic import check_input, reason, together

from ..mesh import Dat, Mesh, Tag
from ..mesh.cells import shape_of
from . import cgns, deck, foam, graphs, meshio_adapter, op2, op2_grid, su2
from .gmsh import FORMAT as GMSH
from .gmsh.layout import ENTITY_DIM, ENTITY_TAG
from .outputs import check_targets
from .registry import Format, find

_ALL = (
    GMSH,
    su2.FORMAT,
    cgns.FORMAT,
    deck.FORMAT,
    op2.FORMAT,
    *meshio_adapter.FORMATS.values(),
    op2_grid.FORMAT,
    *graphs.FORMATS,
    foam.FORMAT,
)
FORMATS: dict[str, Format] = {f.name: f for f in _ALL}
# Whose extras are notes on their own kind of file or object.
_NOTED = {*FORMATS, "skfem"}


def read(
    path: str | Path, *, format: str | None = None, dimension: int | None = None, **options: Any
) -> Mesh:
    """Read and validate a mesh file.

    Parameters
    ----------
    path : str or Path
        A file, or the folder of an OpenFOAM case.
    format : str, optional
        The name of a format; without it the ending of the name tells.
    dimension : int, optional
        Accepts loose cells of a lower dimension than this; loops run over cells of this one. 0 is
        the highest there is.
    **options
        Of the format, as ``sets`` of HDF5 files; those that are None count for nothing.

    Returns
    -------
    Mesh
        In the order of the file.

    Raises
    ------
    MeshprepError
        One line that begins with the path: whatever is wrong with it or with what it holds.
    MissingPackageError
        Where the format needs a package that is not installed.

    Notes
    -----
    O(size of the file). Indices, coordinates and repeated cells are checked.
    """
    from .validate import validate

    path = Path(path)
    source = find_input(path, format)
    with named(path):
        given = {name: value for name, value in options.items() if value is not None}
        _check_options(source, given, source.read_options, "option for reading")
        made = source.read(path, **given)
        # meshes of polyhedra are sets and maps alone
        if source.cells and (made.cell_sets or not made.maps):
            validate(made, dimension)
    return made


def find_input(path: Path, name: str | None) -> Format:
    """The format of a mesh that is there to be read; raises MeshprepError where it cannot be."""
    with named(path):
        for one in FORMATS.values():
            if one.folder and name in (None, one.name) and one.folder(path) is not None:
                return one
        if path.is_dir() and name is None:
            raise MeshprepError("is a directory: name a file in it, or the folder of a case")
        check_input(path)
        return find(FORMATS, path, name)


def write(
    mesh: Mesh,
    path: str | Path,
    *,
    format: str | None = None,
    overwrite: bool = False,
    drop: bool = False,
    check: bool = True,
    **options: Any,
) -> list[str]:
    """Write a mesh file in the order of the mesh; the file appears whole or not at all.

    That holds whenever the program ends; it does not wait for the disk, as mesh writers do not.

    Parameters
    ----------
    mesh : Mesh
    path : str or Path
    format : str, optional
        The name of a format; without it the ending of the name tells.
    overwrite : bool
        Replaces a file that exists.
    drop : bool
        Accepts that the format cannot carry everything.
    check : bool
        Reads the file back and compares it with the mesh before it is put in place.
    **options
        Of the format, as ``version`` and ``binary`` of Gmsh's.

    Returns
    -------
    list of str
        What was left out, in a few words each; without ``drop`` only what no solver misses.

    Raises
    ------
    MeshprepError
        When the target cannot be written, something would be lost, or reading back differs.
    """
    path = Path(path)
    with named(path):
        target = find(FORMATS, path, format, writing=True)
        if target.write is None:
            raise MeshprepError(f"format '{target.name}' can only be read: choose another")
    _check_options(target, options, target.options, "option")
    lost = refuse_losses(mesh, path, target, drop=drop, **options)
    check_targets([path], overwrite=overwrite, folder=target.folder)
    with named(path), together([path], overwrite=overwrite) as (staged,):
        target.write(mesh, staged, **{**target.options, **options})
        if check:
            _prove(target, mesh, staged, partial=bool(lost))
    return lost


def refuse_losses(
    mesh: Mesh, path: str | Path, target: Format, *, drop: bool = False, **options: Any
) -> list[str]:
    """Raise MeshprepError that names everything of this mesh that the format cannot carry.

    With ``drop`` only where the format cannot hold the cells at all. ``options`` are those that the
    mesh is to be written with. Gives what is left out then, notes among it.
    """
    with named(Path(path)):
        lost = left_out(mesh, target, **options)
        missed = losses(mesh, target, **options) if lost and not drop else []
    if missed:
        raise MeshprepError(
            f"{path}: format '{target.name}' cannot carry {'; '.join(missed)}: "
            "use --drop (in Python drop=True) to write the rest, or another format"
        )
    return lost


def losses(mesh: Mesh, target: Format, **options: Any) -> list[str]:
    """What of this mesh the format cannot carry, in a few words each; empty when nothing is lost.

    ``options`` are those that the mesh is to be written with: what a version cannot carry counts.

    Besides what the format says: what a reader left out (``extras["unread"]``), and extras that
    hold content. Extras whose key begins with the name of a format (or ``skfem``) are notes of
    that format on its own file; the formats that have no such notes go without. The same holds for
    the :func:`~meshprep.io.front.notes` among values and groups.
    """
    lost = left_out(mesh, target, **options)
    places = [f"'{item.name}' on '{item.set}'" for item in notes(mesh)] if lost else []
    return [text for text in lost if not any(place in text for place in places)]


def left_out(mesh: Mesh, target: Format, **options: Any) -> list[str]:
    """What of this mesh is not in a file of the format, whether it is a loss or a note."""
    lost = list(target.losses(mesh, **options))
    for key, value in mesh.extras.items():
        if key == "unread":
            lost += [f"{what} (not read)" for what in value]
        elif key.partition(":")[0] not in _NOTED and key not in target.extras:
            lost.append(", ".join(f"'{name}' of the {key}" for name in value))
    return lost


def _check_options(
    target: Format, options: Mapping[str, Any], known: Mapping[str, Any], what: str
) -> None:
    for name in options:
        if name not in known:
            choice = f"use {', '.join(sorted(known))}" if known else "leave it out"
            raise MeshprepError(f"format '{target.name}' has no {what} '{name}': {choice}")


def _prove(target: Format, mesh: Mesh, staged: Path, *, partial: bool) -> None:
    from .compare import difference

    expected = mesh if target.reduce is None else target.reduce(mesh)
    again = {} if target.again is None else target.again(expected)
    found = difference(
        expected,
        target.read(staged, **again),
        digits=target.digits,
        partial=partial and target.reduce is None,
    )
    if found is not None:
        raise MeshprepError(
            f"format '{target.name}' does not keep this mesh ({found}): "
            "nothing was written, use another format"
        )


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Errors that leave begin with the path, once."""
    try:
        yield
    except MeshprepError as error:
        text = " ".join(str(error).split())
        if text.startswith(f"{path}: "):
            raise
        raise type(error)(f"{path}: {text}") from error.__cause__
    except OSError as error:
        raise MeshprepError(f"{path}: {reason(error)}") from None
    except UnicodeEncodeError as error:
        letter = f"U+{ord(error.object[error.start]):04X}"
        raise MeshprepError(f"{path}: no text holds the letter {letter} of a name") from None
    except MemoryError:
        raise MeshprepError(f"{path}: there is not enough memory") from None


# The last is what meshio makes of the first two.
_OF_GMSH = (ENTITY_DIM, ENTITY_TAG, "gmsh:dim_tags")


def notes(mesh: Mesh) -> list[Dat | Tag]:
    """What only one format has a use for, and a group that all cells are in.

    The section of a CGNS file that a boundary condition is stored in is a note beside it.

    Gmsh notes the entity of its geometry that each node and cell lies on. Those of cells are no
    notes where there are no physical groups: they are the only groups then. A physical group of all
    cells of the highest dimension separates nothing; Gmsh wants one to save the cells. O(size).
    """
    dats = [d for d in mesh.dats if d.set == "nodes" and d.name in _OF_GMSH]
    physical = [t for t in mesh.tags if t.name == "physical" and t.set != "nodes"]
    entities = [t for t in mesh.tags if t.name == "entity" and physical]
    stored = {t.set for t in mesh.tags if t.name == "cgns:bc" and (t.first_ids() != 0).all()}
    sections = [t for t in mesh.tags if t.name == "cgns:section" and t.set in stored]
    return [*dats, *entities, *sections, *_of_all(mesh, physical)]


def _of_all(mesh: Mesh, physical: list[Tag]) -> list[Tag]:
    """The tags of the cells of the highest dimension where these are all in one and one group."""
    dims = {s.name: shape_of(str(s.cell_type)).dim for s in mesh.cell_sets if s.size}
    top = {name for name, dim in dims.items() if dim == max(dims.values())}
    tags = [t for t in physical if t.set in top]
    groups = {i for t in tags for i in (*t.group_id.tolist(), *t.names)}
    single = all((np.diff(t.group_offset)[t.values] == 1).all() for t in tags)
    return tags if single and len(groups) == 1 and len(tags) == len(top) else []
