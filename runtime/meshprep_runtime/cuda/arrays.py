"""From the arrays of a call on a GPU to addresses that kernels may trust, or an error."""

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
    """What was given for one slot.

    ``pointer`` is its address on the device, ``nbytes`` its size; a global of the host has
    ``host``, its values, in place of an address. ``value`` is the object itself, ``form`` what can
    be told of it at little cost, to see whether it still is what was checked; ``view`` keeps what
    was made of it alive.
    """

    value: Any
    form: object
    pointer: int = 0
    nbytes: int = 0
    host: NDArray[Any] | None = None
    view: Any = None

    def still(self, value: Any) -> bool:
        """True when it is the same object, in the same memory, and has the same form."""
        return value is self.value and _form(value) == self.form


class DeviceBinder:
    """Turns the arrays of a call into addresses; what was bound last is kept.

    A call with the same arrays costs about a microsecond an argument.
    """

    def __init__(self, loop: Loop, wanted: Sequence[Slot]) -> None:
        self.loop = loop
        self.wanted = tuple(wanted)
        self._last: tuple[Device | None, tuple[BoundArray, ...] | None] = (None, None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": (None, None)}

    def __call__(self, given: Mapping[str, Any], device: Device) -> tuple[BoundArray, ...]:
        """One for each slot.

        Raises MeshprepError for names that are missing or unknown; arrays of the host or of another
        device; dtype, shape, layout; arrays that cannot be written; memory that is written under
        one name and used under another.
        """
        wanted = self.wanted
        where, last = self._last
        if where is not device:
            last = None
        check_names(self.loop, wanted, given)
        fresh = [
            i
            for i, slot in enumerate(wanted)
            if last is None or not last[i].still(given[slot.name])
        ]
        if last is not None and not fresh:
            return last
        found = list(last) if last is not None else [BoundArray(None, None)] * len(wanted)
        for i in fresh:
            found[i] = self._see(wanted[i], given[wanted[i].name], device)
        self._check_shared(found)
        made = tuple(found)
        self._last = (device, made)
        return made

    def _see(self, slot: Slot, value: Any, device: Device) -> BoundArray:
        if on_device(value):
            return self._on_device(slot, value, device)
        if slot.rows is None:
            # Constants, and reductions that the host wants back.
            return BoundArray(value, _form(value), host=bound(self.loop, slot, value))
        if isinstance(value, np.ndarray):
            raise self._refused(
                slot, "lies in the memory of the host, but others on a GPU: pass a CuPy array"
            )
        raise self._refused(slot, f"is a {type(value).__name__}, must be an array on the GPU")

    def _on_device(self, slot: Slot, value: Any, device: Device) -> BoundArray:
        try:
            form = _form(value)
            seen = hasattr(value, "__cuda_array_interface__")
            view = value if seen else device.from_dlpack(value)
            told = view.__cuda_array_interface__
        except Exception as error:
            raise self._refused(slot, f"cannot be seen by CUDA: {error}") from error
        if told.get("mask") is not None:
            raise self._refused(slot, "has a mask, which loops do not look at: pass it without")
        shape, dtype = tuple(told["shape"]), np.dtype(told["typestr"])
        pointer, read_only = told["data"]
        nbytes = math.prod(shape) * dtype.itemsize
        dense = _dense(shape, dtype.itemsize, told.get("strides"))
        aligned = pointer % dtype.itemsize == 0
        facts = ArrayForm(dtype, shape, dense and aligned, not read_only, "cupy")
        check_form(self.loop, slot, facts)
        if nbytes:
            self._check_home(slot, pointer, device)
        return BoundArray(value, form, pointer, nbytes, view=view)

    def _check_home(self, slot: Slot, pointer: int, device: Device) -> None:
        home = device.home(pointer)
        if home is None:
            raise self._refused(slot, "calls itself an array of CUDA but lies on no GPU")
        if home != device.number:
            raise self._refused(
                slot,
                f"lies on GPU {home}, but GPU {device.number} is the current one: "
                f"call inside 'with cupy.cuda.Device({home})'",
            )

    def _check_shared(self, found: Sequence[BoundArray]) -> None:
        for i, (slot, one) in enumerate(zip(self.wanted, found, strict=True)):
            for j, (other, two) in enumerate(zip(self.wanted, found, strict=True)):
                if i != j and slot.written and _overlap(one, two):
                    raise sharing(self.loop, slot, other)

    def _refused(self, slot: Slot, what: str) -> MeshprepError:
        return MeshprepError(f"loop '{self.loop.name}': argument '{slot.name}' {what}")


def _form(value: Any) -> object:
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype, value.flags.writeable, value.flags.c_contiguous)
    memory = cupy_pointer(value)
    if memory is not None:
        return (memory, value.shape, value.dtype)
    told = getattr(value, "__cuda_array_interface__", None)
    if told is not None:
        return (told["data"], tuple(told["shape"]), told["typestr"], told.get("strides"))
    return (getattr(value, "shape", None), getattr(value, "dtype", None))


def _dense(shape: tuple[int, ...], itemsize: int, strides: tuple[int, ...] | None) -> bool:
    """True for values one behind the other, the last axis fastest."""
    if strides is None:
        return True
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
