"""Sums entries of all elements at once, in an order that is found once [K11]."""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError, import_package

# Dtypes that numba adds, by NumPy's letters.
DTYPES = "?bhilqBHILQfdFD"


class BatchSums:
    """Sums values by place, in an order that is found once.

    Parameters
    ----------
    place : array of integers
        The place to which each value is added; -1 for a value that is left out.
    n_places : int

    Raises
    ------
    MeshprepError
        For a place that is no whole number from -1 to ``n_places - 1``.

    Notes
    -----
    O(n log n) when it is made, 4 or 8 bytes a value. Values are summed in the order
    of ``place``, on one thread; numba compiles for each dtype at the first call, and keeps
    it on disk.

    Examples
    --------
    >>> import numpy as np
    >>> from meshprep_runtime.matrix import BatchSums
    >>> sums = BatchSums(np.array([[2, 0], [-1, 2]]), 4)
    >>> sums(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [2.0, 0.0, 5.0, 0.0]
    """

    def __init__(self, place: NDArray[np.integer], n_places: int) -> None:
        """Sort the places, once: parameters and errors are those of the class.

        Notes
        -----
        O(n log n) for n values.
        """
        flat = place.reshape(-1)
        whole = flat.dtype.kind in "iu" or not flat.size
        if not whole or (
            flat.size and not -1 <= int(flat.min()) <= int(flat.max()) < n_places
        ):
            raise MeshprepError(
                f"BatchSums: places must be whole numbers in -1..{n_places - 1}"
            )
        self._size = flat.size
        left_out = np.count_nonzero(flat < 0)
        order = np.argsort(flat, kind="stable")[left_out:]
        # Half the bytes to read in every call, where 32 bits suffice.
        self._order: NDArray[Any] = order
        if flat.size <= np.iinfo(np.int32).max:
            self._order = order.astype(np.int32)
        # Values that are left out come first.
        count = np.bincount(flat.astype(np.int64) + 1, minlength=n_places + 1)
        self._offset = np.cumsum(count) - left_out
        # Copies of both, by the number of the GPU.
        self._on_device: dict[int, tuple[Any, Any]] = {}

    def __call__(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum values, which are in the order of ``place``.

        Parameters
        ----------
        values : array of NumPy or CuPy
            Of the size of ``place``.

        Returns
        -------
        (n_places,) array
            The sums, on the same device; 0 for a place without values. The same bits on a
            CPU and on a GPU, where a thread sums each place. O(n).

        Raises
        ------
        MeshprepError
            For another number of values, and a dtype that numba does not add.
        """
        if values.size != self._size:
            raise MeshprepError(
                f"values has shape {values.shape}, must have {self._size} values: one a "
                "place"
            )
        if hasattr(values, "__cuda_array_interface__"):
            sums: NDArray[Any] = self._sums_on_gpu(values)
            return sums
        if values.dtype.char not in DTYPES or not values.dtype.isnative:
            raise MeshprepError(
                f"values has dtype {values.dtype}: pass bools, whole numbers, or floats or "
                "complex numbers of single or double precision, in this machine's byte "
                "order"
            )
        total = np.zeros(self._offset.size - 1, values.dtype)
        _add_up(
            order=self._order,
            offset=self._offset,
            values=np.ascontiguousarray(values).reshape(-1),
            total=total,
        )
        return total

    def _sums_on_gpu(self, values: Any) -> Any:
        """The sums of a CuPy array: a thread for each place, without atomics."""
        cupy = import_package("cupy", "sums on a GPU need CuPy: pip install cupy-cuda13x")
        add_up = cupy.ElementwiseKernel(
            "raw T values, raw I order, int64 begin, int64 end",
            "T total",
            """
            T sum_at_place = 0;
            for (long long i = begin; i < end; ++i) {
                sum_at_place += values[order[i]];
            }
            total = sum_at_place;
            """,
            "meshprep_sums_by_place",
        )
        # Keep the order on each device that has been used.
        device = cupy.cuda.Device().id
        if device not in self._on_device:
            self._on_device[device] = (
                cupy.asarray(self._order),
                cupy.asarray(self._offset, dtype=cupy.int64),
            )
        order, offset = self._on_device[device]
        return add_up(values.reshape(-1), order, offset[:-1], offset[1:])


@numba.njit(cache=True, nogil=True)
def _add_up(
    order: NDArray[Any], offset: NDArray[Any], values: NDArray[Any], total: NDArray[Any]
) -> None:
    for p in range(total.size):
        sum_at_place = total[p]
        for i in range(offset[p], offset[p + 1]):
            sum_at_place += values[order[i]]
        total[p] = sum_at_place
