"""A kernel in CUDA C, as the user hands it over."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import MeshprepError


@dataclass(frozen=True)
class DeviceFunction:
    """The body for one element, in CUDA C."""

    name: str  # the function's name
    # Its definition, ``__device__ void NAME(...)``, with what it needs before it: a pointer to
    # ``dim`` values for each argument and index in the order of the loop, as a Python kernel has
    # rows; ``const`` where it only reads.
    text: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z_]\w*", self.name, re.ASCII):
            raise MeshprepError(f"device function '{self.name}': not a name that C takes")
        if not re.search(rf"\b{self.name}\s*\(", self.text):
            raise MeshprepError(f"device function '{self.name}' does not stand in its text")


def name_of(function: DeviceFunction | Callable[..., None]) -> str:
    return function.name if isinstance(function, DeviceFunction) else function.__name__
