"""meshoptimizer's clusters of triangles and of points, from the C functions of a wheel.

The wheel ``almeshopt`` (extra ``bench``) is the one that has a meshoptimizer new enough; its own
Python functions leave out what is needed here.
"""

import ctypes
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep.partitioning import BlockProblem, Blocks, blocks_of

# meshoptimizer's own limits on a meshlet.
MOST_VERTICES, MOST_TRIANGLES = 256, 512
_POINTER, _SIZE, _FLOAT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_float


def spatial_clusters(problem: BlockProblem) -> tuple[Blocks, float]:
    """``spatialClusterPoints`` on the elements' centroids: clusters of exactly S."""
    assert problem.coordinates is not None
    places, order = _positions(problem.coordinates), np.empty(problem.n, np.uint32)
    stride, size = places.strides[0], problem.block_size
    begin = time.perf_counter()
    _library().meshopt_spatialClusterPoints(
        _at(order), _at(places), problem.n, stride, size
    )
    seconds = time.perf_counter() - begin
    block = np.empty(problem.n, np.int32)
    block[order] = np.arange(problem.n) // size
    return blocks_of(block, -(-problem.n // size)), seconds


def meshlets(
    problem: BlockProblem, points: NDArray[np.float64], most_vertices: int = MOST_VERTICES
) -> tuple[Blocks, float]:
    """``buildMeshlets`` with at most S triangles, and its processor time.

    Which triangle is which is found afterwards.
    """
    places = _positions(points)
    corner = np.ascontiguousarray(problem.table, dtype=np.uint32).reshape(-1)
    limits = most_vertices, min(problem.block_size, MOST_TRIANGLES)
    most = _library().meshopt_buildMeshletsBound(corner.size, *limits)
    record = np.zeros((most, 4), np.uint32)
    vertex = np.zeros(most * limits[0], np.uint32)
    local = np.zeros(most * limits[1] * 3, np.uint8)
    arrays = [_at(a) for a in (record, vertex, local, corner)]
    mesh = corner.size, _at(places), len(places), places.strides[0]
    begin = time.process_time()
    count = _library().meshopt_buildMeshlets(*arrays, *mesh, *limits, 0.0)
    seconds = time.process_time() - begin
    block, triangle = _triangles(record[:count].astype(np.int64), vertex, local)
    element = np.empty(problem.n, np.int32)
    element[_sorted_rows(problem.table)] = block[_sorted_rows(triangle)]
    return blocks_of(element, count), seconds


def _triangles(
    record: NDArray[np.int64], vertex: NDArray[np.uint32], local: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """The meshlet and the corners of every triangle, in the order of the meshlets.

    A record has where the vertices and the corners of a meshlet begin, and how many there are.
    """
    first_vertex, first_corner, _, count = record.T
    block = np.repeat(np.arange(len(record)), count)
    inside = np.arange(block.size) - np.repeat(np.cumsum(count) - count, count)
    corner = (first_corner[block] + 3 * inside)[:, None] + np.arange(3)
    return block, vertex[first_vertex[block][:, None] + local[corner]]


def _sorted_rows(table: NDArray[Any]) -> NDArray[np.intp]:
    """Rows in the order of their corners, whichever corner is named first."""
    return np.lexsort(np.sort(table, axis=1).T)


def _positions(points: NDArray[np.float64]) -> NDArray[np.float32]:
    """Coordinates as meshoptimizer takes them: three, in single precision."""
    places = np.zeros((len(points), 3), np.float32)
    places[:, : points.shape[1]] = points
    return places


def _at(array: NDArray[Any]) -> int:
    return array.ctypes.data


@cache
def _library() -> ctypes.CDLL:
    spec = find_spec("almeshopt")
    assert spec is not None
    assert spec.submodule_search_locations
    library = ctypes.CDLL(str(next(Path(spec.submodule_search_locations[0]).glob("*.so"))))
    sizes = [_SIZE] * 4
    library.meshopt_buildMeshletsBound.argtypes = [_SIZE] * 3
    library.meshopt_buildMeshletsBound.restype = _SIZE
    library.meshopt_buildMeshlets.argtypes = [
        *[_POINTER] * 4,
        _SIZE,
        _POINTER,
        *sizes,
        _FLOAT,
    ]
    library.meshopt_buildMeshlets.restype = _SIZE
    library.meshopt_spatialClusterPoints.argtypes = [_POINTER, _POINTER, *[_SIZE] * 3]
    library.meshopt_spatialClusterPoints.restype = None
    return library
