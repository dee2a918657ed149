"""Checks the arrays of a call on a GPU, and finds the addresses that kernels work on."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError
from ..kernel.bind import ArrayForm, Slot, bound, check_form, check_names, sharing
from ..types.loops import Loop
from ..types.maps import cupy_pointer, on_device
from .device import Device


@dataclass(frozen=True, eq=False)
class BoundArray:
    """The array of a slot, checked."""

    value: Any  # the object that was given
    # Its memory, shape and dtype, to see whether it is still the array that was checked.
    form: object
    pointer: int = 0  # address on the device
    nbytes: int = 0
    # The values of a global of the host, which has no address.
    host: NDArray[Any] | None = None
    view: Any = None  # the view of the object, to be kept alive

    def still(self, value: Any) -> bool:
        """True when it is the same object, in the same memory, and has the same form."""
        return value is self.value and _form_of(value) == self.form


class DeviceBinder:
    """Turns the arrays of a call into addresses, and keeps those of the last call.

    A call with the same arrays takes about a microsecond for each argument.
    """

    def __init__(self, loop: Loop, wanted: Sequence[Slot]) -> None:
        self.loop = loop
        self.wanted = tuple(wanted)
        self._last: tuple[Device | None, tuple[BoundArray, ...] | None] = (None, None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": (None, None)}

    def __call__(self, given: Mapping[str, Any], device: Device) -> tuple[BoundArray, ...]:
        """Check the arrays of a call; returns one for each slot.

        Raises MeshprepError for names that are missing or unknown; arrays of the host or of
        another device; a dtype, shape or layout that does not fit; arrays that cannot be
        written; memory that is written under one name and used under another.
        """
        slots = self.wanted
        # What was checked for another device is not bound to this one.
        last_device, last = self._last
        if last_device is not device:
            last = None
        check_names(self.loop, slots, given)
        # Check the arrays that are not those of the last call.
        changed = [
            i
            for i, slot in enumerate(slots)
            if last is None or not last[i].still(given[slot.name])
        ]
        if last is not None and not changed:
            return last
        # Bind the changed arrays, and keep the others as they are.
        if last is not None:
            bound_arrays = list(last)
        else:
            bound_arrays = [BoundArray(None, None)] * len(slots)
        for i in changed:
            bound_arrays[i] = self._bind_array(slots[i], given[slots[i].name], device)
        self._check_shared(bound_arrays)
        self._last = (device, tuple(bound_arrays))
        return tuple(bound_arrays)

    def _bind_array(self, slot: Slot, value: Any, device: Device) -> BoundArray:
        if on_device(value):
            return self._on_device(slot, value, device)
        if slot.rows is None:
            # A constant, or a reduction whose result is to be on the host.
            return BoundArray(value, _form_of(value), host=bound(self.loop, slot, value))
        if isinstance(value, np.ndarray):
            raise self._refused(
                slot,
                "lies in the memory of the host, but others on a GPU: pass a CuPy array",
            )
        raise self._refused(
            slot, f"is a {type(value).__name__}, must be an array on the GPU"
        )

    def _on_device(self, slot: Slot, value: Any, device: Device) -> BoundArray:
        # Take the interface of the array, or of a view of it that DLPack gives.
        try:
            form = _form_of(value)
            if hasattr(value, "__cuda_array_interface__"):
                view = value
            else:
                view = device.from_dlpack(value)
            interface = view.__cuda_array_interface__
        except Exception as error:
            raise self._refused(slot, f"cannot be seen by CUDA: {error}") from error
        if interface.get("mask") is not None:
            raise self._refused(
                slot, "has a mask, which loops do not look at: pass it without"
            )
        # Check the form and where the memory lies.
        shape = tuple(interface["shape"])
        dtype = np.dtype(interface["typestr"])
        pointer, read_only = interface["data"]
        nbytes = math.prod(shape) * dtype.itemsize
        dense = _is_dense(shape, dtype.itemsize, interface.get("strides"))
        aligned = pointer % dtype.itemsize == 0
        array_form = ArrayForm(
            dtype=dtype,
            shape=shape,
            contiguous=dense and aligned,
            writeable=not read_only,
            library="cupy",
        )
        check_form(self.loop, slot, array_form)
        if nbytes:
            self._check_home(slot, pointer, device)
        return BoundArray(value=value, form=form, pointer=pointer, nbytes=nbytes, view=view)

    def _check_home(self, slot: Slot, pointer: int, device: Device) -> None:
        """Raise MeshprepError for memory that is not of the current device."""
        home = device.home(pointer)
        if home is None:
            raise self._refused(slot, "calls itself an array of CUDA but lies on no GPU")
        if home != device.number:
            raise self._refused(
                slot,
                f"lies on GPU {home}, but GPU {device.number} is the current one: "
                f"call inside 'with cupy.cuda.Device({home})'",
            )

    def _check_shared(self, arrays: Sequence[BoundArray]) -> None:
        """Raise MeshprepError for memory that is written and has another name, too."""
        for slot, array in zip(self.wanted, arrays, strict=True):
            if not slot.written:
                continue
            for other_slot, other in zip(self.wanted, arrays, strict=True):
                if other_slot is not slot and _overlap(array, other):
                    raise sharing(self.loop, slot, other_slot)

    def _refused(self, slot: Slot, what: str) -> MeshprepError:
        return MeshprepError(f"loop '{self.loop.name}': argument '{slot.name}' {what}")


@dataclass(frozen=True)
class _Address:
    """An address inside an array of the device."""

    pointer: int


@dataclass(frozen=True, eq=False)
class RowsOnDevice:
    """Copies some tens of rows of an array on a device to the host."""

    device: Device
    slot: Slot
    pointer: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the array."""
        return self.slot.dtype

    def __getitem__(self, rows: NDArray[np.integer[Any]]) -> NDArray[Any]:
        slot = self.slot
        itemsize = slot.dtype.itemsize
        values = np.empty((len(rows), slot.dim), slot.dtype)
        for i, row in enumerate(rows.tolist()):
            if not slot.soa:
                address = self.pointer + row * slot.dim * itemsize
                self.device.read(_Address(address), values[i])
                continue
            # In soa the components of a row lie a whole dat apart.
            for k in range(slot.dim):
                address = self.pointer + (k * slot.shape[1] + row) * itemsize
                self.device.read(_Address(address), values[i, k : k + 1])
        return values


def rows_on_device(
    device: Device, wanted: Sequence[Slot], given: Sequence[BoundArray]
) -> dict[str, Any]:
    """A :class:`RowsOnDevice` for each dat, and the values of each global."""
    rows: dict[str, Any] = {}
    for slot, array in zip(wanted, given, strict=True):
        if array.host is not None:
            rows[slot.name] = array.host.reshape(slot.shape)
        elif slot.rows is not None:
            rows[slot.name] = RowsOnDevice(device, slot, array.pointer)
        else:
            rows[slot.name] = np.empty(slot.shape, slot.dtype)
            device.read(_Address(array.pointer), rows[slot.name])
    return rows


def _form_of(value: Any) -> object:
    """The memory, shape and dtype of an array, equal while it is the same array."""
    if isinstance(value, np.ndarray):
        # A global, whose values are read and written where they lie.
        return (value.ctypes.data, value.shape, value.strides, value.dtype, value.flags.num)
    memory = cupy_pointer(value)
    if memory is not None:
        return (memory, value.shape, value.dtype)
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return (
            interface["data"],
            tuple(interface["shape"]),
            interface["typestr"],
            interface.get("strides"),
        )
    return (getattr(value, "shape", None), getattr(value, "dtype", None))


def _is_dense(
    shape: tuple[int, ...], itemsize: int, strides: tuple[int, ...] | None
) -> bool:
    """True for values without gaps, the last axis fastest."""
    if strides is None:
        return True
    # Strides of axes of length 1 may be anything, and those of empty arrays.
    step = itemsize
    for size, stride in zip(reversed(shape), reversed(tuple(strides)), strict=True):
        if size != 1 and stride != step:
            return 0 in shape
        step *= size
    return True


def _overlap(one: BoundArray, two: BoundArray) -> bool:
    if one.host is not None and two.host is not None:
        return bool(np.may_share_memory(one.host, two.host))
    if one.host is not None or two.host is not None:
        return False
    return one.pointer < two.pointer + two.nbytes and two.pointer < one.pointer + one.nbytes
