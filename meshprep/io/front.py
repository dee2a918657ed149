"""One way in and one way out for every mesh file.

Reading checks the path, reads, and validates; writing asks first what would be lost, writes
beside the target, reads the result back, compares it with the mesh, and only then puts it
in place.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.file.atomic import check_input, reason, together
from meshprep_runtime.types.ordering import Ordering

from ..mesh import Dat, Mesh, Tag
from ..mesh.cells import shape_of
from .format import Format
from .format.names import ORIGIN
from .gmsh.layout import ENTITY_DIM, ENTITY_TAG, PARAMETRIC
from .outputs import check_targets
from .registry import FORMATS, find, find_folder
from .text.quoting import one_line


def read(
    path: str | Path,
    *,
    format: str | None = None,
    dimension: int | None = None,
    **options: Any,
) -> Mesh:
    """Read and validate a mesh file.

    Parameters
    ----------
    path : str or Path
        A file, or the folder of an OpenFOAM case.
    format : str, optional
        The name of a format; without it the ending of the name tells.
    dimension : int, optional
        Accepts loose cells of a lower dimension than this; loops run over cells of this
        one. 0 is the highest there is.
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
        chosen = {name: value for name, value in options.items() if value is not None}
        _check_options(
            target=source,
            options=chosen,
            known=source.read_options,
            what="option for reading",
        )
        mesh = source.read(path, **chosen)
        # meshes of polyhedra are sets and maps alone
        if source.cells and (mesh.cell_sets or not mesh.maps):
            validate(mesh, dimension, overlaid=source.overlaid)
        if source.groups is not None:
            mesh = replace(mesh, extras={**mesh.extras, ORIGIN: source.name})
    return mesh


def file_groups(
    mesh: Mesh, target: Format | None = None
) -> Mapping[str, NDArray[np.integer]]:
    """By set of cells, (n,): cells of one number stand together in a file, in this order.

    A file of ``target``, unless given of the format that the mesh was read from. Empty
    where the cells of a type stand in any order.
    """
    chosen = target
    if target is None and ORIGIN in mesh.extras:
        chosen = FORMATS.get(mesh.extras[ORIGIN])
    if chosen is None or chosen.groups is None:
        return {}
    if not mesh.cell_sets or mesh.coordinates is None:
        return {}
    try:
        return chosen.groups(mesh)
    except MeshprepError:
        if target is None:
            # it has become a mesh that no file of its format holds
            return {}
        raise


def grouped_orders(mesh: Mesh, target: Format) -> dict[str, Ordering]:
    """By set of cells, the order that brings those of a group of the format together.

    Those of a group stand as in the mesh. Only of sets where it is another order than the
    mesh's.
    """
    orders = {}
    for name, group in file_groups(mesh, target).items():
        if (group[1:] < group[:-1]).any():
            order = np.argsort(group, kind="stable")
            orders[name] = Ordering.from_new_to_old(order, name)
    return orders


def find_input(path: Path, name: str | None) -> Format:
    """The format of a mesh to be read; raises MeshprepError where it cannot be read."""
    with named(path):
        format = find_folder(path, name)
        if format is not None:
            return format
        if path.is_dir() and name is None:
            raise MeshprepError(
                "is a directory: name a file in it, or the folder of a case"
            )
        check_input(path)
        return find(path, name)


def write(
    mesh: Mesh,
    path: str | Path,
    *,
    format: str | None = None,
    overwrite: bool = False,
    drop: bool = False,
    check: bool = True,
    grouped: bool = False,
    **options: Any,
) -> list[str]:
    """Write a mesh file in the order of the mesh; the file appears whole or not at all.

    That holds whenever the program ends; it does not wait for the disk, as mesh writers do
    not.

    Parameters
    ----------
    mesh : Mesh
    path : str or Path
    format : str, optional
        The name of a format; without it the ending of the name tells.
    overwrite : bool
        Replaces a file that exists.
    drop : bool
        Accepts that not everything is written to the format.
    check : bool
        Reads the file back and compares it with the mesh before it is put in place.
    grouped : bool
        Brings cells together that such files keep together, as Gmsh's those of an entity.
        The cells have another order than the mesh then. Without it, where they stand apart
        in the mesh, the file has a block for each run of them, and programs that hand cells
        out group by group, as Gmsh's API does, have another order than the mesh. What
        :func:`meshprep.prepare` makes of a mesh that was read from the format has them
        together, and so has 'meshprep reorder'.
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
        target = find(path, format, writing=True)
        if target.write is None:
            raise MeshprepError(f"format '{target.name}' can only be read: choose another")
    _check_options(target=target, options=options, known=target.options, what="option")
    if grouped:
        with named(path):
            mesh = mesh.renumber(grouped_orders(mesh, target))
    lost = refuse_losses(mesh, path, target, drop=drop, **options)
    check_targets([path], overwrite=overwrite, folder=target.folder)
    with named(path), together([path], overwrite=overwrite) as (staged,):
        target.write(mesh, staged, **{**target.options, **options})
        if check:
            _prove_written(target=target, mesh=mesh, staged=staged, partial=bool(lost))
    return lost


def refuse_losses(
    mesh: Mesh, path: str | Path, target: Format, *, drop: bool = False, **options: Any
) -> list[str]:
    """Raise MeshprepError that names everything of this mesh that would not be in the file.

    With ``drop`` only where the cells are not written to the format at all. ``options`` are
    those that the mesh is to be written with. Gives what is left out then, notes among it.
    """
    with named(Path(path)):
        lost = left_out(mesh, target, **options)
        if lost and not drop:
            missed = losses(mesh, target, **options)
        else:
            missed = []
    if missed:
        raise MeshprepError(
            f"{path}: format '{target.name}' would be written without {'; '.join(missed)}: "
            "use --drop (in Python drop=True) to accept that, or another format"
        )
    return lost


def losses(mesh: Mesh, target: Format, **options: Any) -> list[str]:
    """What of this mesh the format cannot hold, in a few words each; empty if it holds all.

    ``options`` are those that the mesh is to be written with: what a version has no place
    for counts.

    Besides what the format says: what a reader left out (``extras["unread"]``), and extras
    that hold content. Extras whose key begins with the name of a format (or ``skfem``) are
    notes of that format on its own file; the formats that have no such notes go without.
    The same holds for the :func:`~meshprep.io.front.notes` among values and groups.
    """
    lost = left_out(mesh, target, **options)
    if not lost:
        return []
    # notes are no losses
    for item in notes(mesh):
        place = f"'{item.name}' on '{item.set}'"
        lost = [text for text in lost if place not in text]
    return lost


def left_out(mesh: Mesh, target: Format, **options: Any) -> list[str]:
    """What of this mesh is not in a file of the format, whether it is a loss or a note."""
    lost = list(target.losses(mesh, **options))
    for key, value in mesh.extras.items():
        if key == "unread":
            lost += [f"{what} (not read)" for what in value]
        elif key not in target.extras and not _is_note(key):
            lost.append(", ".join(f"'{name}' of the {key}" for name in value))
    return lost


def _is_note(key: str) -> bool:
    """Whether extras of this key are notes of a format, or scikit-fem, on its own."""
    origin = key.partition(":")[0]
    return origin in ("skfem", ORIGIN) or origin in FORMATS


def _check_options(
    target: Format, options: Mapping[str, Any], known: Mapping[str, Any], what: str
) -> None:
    for name in options:
        if name not in known:
            if known:
                choice = f"use {', '.join(sorted(known))}"
            else:
                choice = "leave it out"
            raise MeshprepError(f"format '{target.name}' has no {what} '{name}': {choice}")


def _prove_written(target: Format, mesh: Mesh, staged: Path, *, partial: bool) -> None:
    from .compare import difference

    # Compare with what the format keeps of the mesh, which is less than the mesh where
    # losses were accepted.
    if target.reduce is None:
        expected = mesh
    else:
        expected = target.reduce(mesh)
    if target.again is None:
        again = {}
    else:
        again = target.again(expected)
    first_difference = difference(
        expected,
        target.read(staged, **again),
        digits=target.digits,
        partial=partial and target.reduce is None,
    )
    if first_difference is not None:
        raise MeshprepError(
            f"format '{target.name}' does not keep this mesh ({first_difference}): "
            "nothing was written, use another format"
        )


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Errors that leave begin with the path, once."""
    try:
        yield
    except MeshprepError as error:
        whole = f"{path}: {one_line(str(error).removeprefix(f'{path}: '))}"
        if whole == str(error):
            raise
        raise type(error)(whole) from error.__cause__
    except OSError as error:
        raise MeshprepError(f"{path}: {reason(error)}") from None
    except UnicodeEncodeError as error:
        letter = f"U+{ord(error.object[error.start]):04X}"
        raise MeshprepError(
            f"{path}: no text holds the letter {letter} of a name"
        ) from None
    except MemoryError:
        raise MeshprepError(f"{path}: there is not enough memory") from None


# The last is what meshio makes of the first two.
_OF_GMSH = (ENTITY_DIM, ENTITY_TAG, PARAMETRIC, "gmsh:dim_tags")


def notes(mesh: Mesh) -> list[Dat | Tag]:
    """What only one format has a use for, and a group that all cells are in.

    The section of a CGNS file that a boundary condition is stored in is a note beside it.

    Gmsh notes the entity of its geometry that each node and cell lies on. Those of cells
    are no notes where there are no physical groups: they are the only groups then. A
    physical group of all cells of the highest dimension separates nothing; Gmsh wants one
    to save the cells. O(size).
    """
    dats = [d for d in mesh.dats if d.set == "nodes" and d.name in _OF_GMSH]
    physical = [t for t in mesh.tags if t.name == "physical" and t.set != "nodes"]
    entities = [t for t in mesh.tags if t.name == "entity" and physical]
    stored = {
        t.set for t in mesh.tags if t.name == "cgns:bc" and (t.first_ids() != 0).all()
    }
    sections = [t for t in mesh.tags if t.name == "cgns:section" and t.set in stored]
    return [*dats, *entities, *sections, *_of_all(mesh, physical)]


def _of_all(mesh: Mesh, physical: list[Tag]) -> list[Tag]:
    """The tags of the highest-dimensional cells, where all are in one group."""
    dims = {s.name: shape_of(str(s.cell_type)).dim for s in mesh.cell_sets if s.size}
    top = {name for name, dim in dims.items() if dim == max(dims.values())}
    tags = [t for t in physical if t.set in top]
    groups: set[int] = set()
    for tag in tags:
        groups.update(tag.group_id.tolist(), tag.names)
    single = all((np.diff(t.group_offset)[t.values] == 1).all() for t in tags)
    if single and len(groups) == 1 and len(tags) == len(top):
        return tags
    return []
