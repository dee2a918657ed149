"""Meshes as other programs hold them, and files by their names, as a Mesh."""

from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError, import_package

from ..mesh import Mesh
from .front import read
from .meshio_objects import from_meshio
from .skfem_objects import from_skfem

NO_PYVISTA = "PyVista is not installed: pip install pyvista"


def as_mesh(given: Any) -> Mesh:
    """The mesh that is given: itself, a file's, or that of an object of another library.

    Meshes of meshio, scikit-fem and PyVista are taken. Raises MeshprepError for everything
    else, and where a file cannot be read.
    """
    if isinstance(given, Mesh):
        return given
    if isinstance(given, str | Path):
        return read(given)
    if hasattr(given, "doflocs"):
        return from_skfem(given)
    if hasattr(given, "cast_to_unstructured_grid"):
        return from_pyvista(given)
    if hasattr(given, "cells") and hasattr(given, "points"):
        return from_meshio(given)
    raise MeshprepError(
        f"mesh is a {type(given).__name__}: give a file, a meshprep.Mesh, or a mesh of "
        "meshio, scikit-fem or PyVista"
    )


def from_pyvista(source: Any) -> Mesh:
    """The mesh that a grid or surface of PyVista holds, with its arrays.

    Parameters
    ----------
    source : pyvista.UnstructuredGrid or pyvista.PolyData
        It is not changed.

    Returns
    -------
    Mesh

    Raises
    ------
    MeshprepError
        For cells that are not supported, and where ``read`` would refuse a file.
    """
    pyvista = import_package("pyvista", NO_PYVISTA)

    if not isinstance(source, pyvista.UnstructuredGrid):
        source = source.cast_to_unstructured_grid()
    return from_meshio(pyvista.to_meshio(source))


def to_pyvista(mesh: Mesh) -> Any:
    """The grid of PyVista of a mesh, with its values and groups as arrays.

    Parameters
    ----------
    mesh : Mesh

    Returns
    -------
    pyvista.UnstructuredGrid
        Its cells stand type by type, in the order of the mesh.

    Raises
    ------
    MeshprepError
        For content that meshio has no place for.
    """
    pyvista = import_package("pyvista", NO_PYVISTA)

    from .meshio_objects import to_meshio

    return pyvista.from_meshio(to_meshio(mesh))
