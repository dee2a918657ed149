"""The numbers of XDMF files, and the elements that stand for others."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, parse

import h5py
import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.file.atomic import check_input

from ..guard import DamagedFileError
from ..hdf.dump import check_hdf5
from ..text.cursor import Cursor
from ..text.quoting import quoted

KINDS = {"Int": "i", "UInt": "u", "Float": "f"}
# Types of one byte each have a name.
_BYTES = {"char": "i1", "uchar": "u1"}
_INCLUDE = "}include"
_POINTER = re.compile(r"\s*xpointer\((.*)\)\s*", re.DOTALL)
_ONE_OF = re.compile(r"(.*)/\*\[\s*(self::\w+(?:\s+or\s+self::\w+)*)\s*\]")
# More references than this one after the other go round in a circle.
_MOST_STEPS = 20


class Document:
    """The elements of a file, with what they refer to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root = parse(path).getroot()

    def children(self, element: Element) -> Iterator[Element]:
        """The elements in one, with those in place that others stand for."""
        for child in self.target(element):
            if child.tag.endswith(_INCLUDE):
                yield from self._included(child)
            else:
                yield self.target(child)

    def target(self, element: Element) -> Element:
        """The element itself, or the one that it refers to."""
        referenced = element
        for _ in range(_MOST_STEPS):
            reference = referenced.get("Reference")
            if reference is None:
                return referenced
            if reference.upper() == "XML":
                place = referenced.text
            else:
                place = reference
            referenced = self._find(place or "")[0]
        raise MeshprepError(f"reference {quoted(place or '')} leads in a circle: repair it")

    def _included(self, include: Element) -> list[Element]:
        pointer = _POINTER.fullmatch(include.get("xpointer", ""))
        if include.get("href") or pointer is None:
            raise MeshprepError(
                "includes another file, or a part that it does not name by xpointer(): put "
                "it in"
            )
        path = pointer[1].strip()
        if one_of := _ONE_OF.fullmatch(path):
            tags = re.findall(r"self::(\w+)", one_of[2])
            children: list[Element] = []
            for parent in self._find(one_of[1]):
                children += [child for child in parent if child.tag in tags]
            return children
        return self._find(path)

    def _find(self, path: str) -> list[Element]:
        """The elements of an absolute path; raises MeshprepError where there is none."""
        xpath = path.strip()
        top = f"/{self.root.tag}/"
        if xpath.startswith("//"):
            inner = f".//{xpath[2:]}"
        else:
            inner = f"./{xpath.removeprefix(top)}"
        try:
            elements = self.root.findall(inner)
        except (SyntaxError, KeyError):
            elements = []
        if not elements:
            raise MeshprepError(f"refers to {quoted(xpath)}, which is not there: repair it")
        return elements

    def numbers(self, parent: Element) -> NDArray[Any]:
        """The numbers of the only item of an element."""
        items = [child for child in self.children(parent) if child.tag == "DataItem"]
        if len(items) != 1:
            raise DamagedFileError(
                f"a {parent.tag} has {len(items)} items of numbers in place of one"
            )
        return self.item(items[0])

    def item(self, item: Element, slices: Sequence[slice] | None = None) -> NDArray[Any]:
        """The numbers of an item, or some of them."""
        kind = item.get("ItemType", item.get("Type", "Uniform")).lower()
        if kind == "hyperslab":
            return self._slab(item)
        if kind != "uniform":
            raise MeshprepError(
                f"has numbers of the item type {quoted(kind)}, which is not read: write "
                "the numbers themselves"
            )
        # Numbers stand in the element itself (XML) or in a file beside it (HDF).
        form = item.get("Format", "XML").upper()
        if form == "HDF":
            return self._of_hdf5(item, slices)
        if form != "XML":
            raise MeshprepError(
                "keeps numbers in raw binary files or elsewhere: write it with HDF5 or XML "
                "data"
            )
        found = self._of_text(item)
        if slices is None:
            return found
        return found[tuple(slices)]

    def _slab(self, item: Element) -> NDArray[Any]:
        """A part of an array: where it begins, the steps and the counts along each axis."""
        children = [child for child in self.children(item) if child.tag == "DataItem"]
        if len(children) != 2:
            raise DamagedFileError(
                "a HyperSlab needs two items: what it takes, and of what"
            )
        selection = self.item(children[0]).astype(np.int64).reshape(-1)
        if selection.size % 3 or (selection < 0).any():
            raise DamagedFileError(
                "a HyperSlab needs a beginning, a step and a count an axis"
            )
        # The first item has three rows: beginnings, steps and counts, a number an axis.
        start, step, count = selection.reshape(3, -1).tolist()
        slices = [
            slice(begin, begin + (n - 1) * stride + 1 if n else begin, max(stride, 1))
            for begin, stride, n in zip(start, step, count, strict=True)
        ]
        values = self.item(children[1], slices)
        if list(values.shape) != count:
            raise MeshprepError(
                f"a HyperSlab takes {_by(count)} numbers, but there are "
                f"{_by(values.shape)}: correct it"
            )
        return _in_dimensions(values, _dimensions(item))

    def _of_hdf5(self, item: Element, slices: Sequence[slice] | None) -> NDArray[Any]:
        # The text of an HDF item is FILE:DATASET, the file in the folder of this one.
        name, _, dataset = (item.text or "").strip().partition(":")
        beside = self.path.resolve().parent / name
        try:
            check_input(beside)
        except MeshprepError as error:
            raise MeshprepError(f"its data file {name} {error}") from None
        check_hdf5(beside)
        with h5py.File(beside, "r") as file:
            data = file.get(dataset)
            if not isinstance(data, h5py.Dataset):
                raise MeshprepError(
                    f"its data file {name} has no dataset {quoted(dataset)}"
                )
            if slices is None:
                check_dimensions(item, data.shape)
                return np.asarray(data[()])
            if len(slices) != data.ndim:
                raise MeshprepError(
                    f"a HyperSlab has {len(slices)} axes where {quoted(dataset)} has "
                    f"{data.ndim}"
                )
            return np.asarray(data[tuple(slices)])

    def _of_text(self, item: Element) -> NDArray[Any]:
        text = item.text or ""
        # XDMF 2 and 3 differ in the name of this
        name = item.get("DataType") or item.get("NumberType") or "Float"
        kinds = {word.lower(): letter for word, letter in KINDS.items()}
        if name.lower() in _BYTES:
            dtype = np.dtype(_BYTES[name.lower()])
        elif name.lower() in kinds:
            dtype = np.dtype(f"{kinds[name.lower()]}{item.get('Precision', '4')}")
        else:
            raise MeshprepError(
                f"has numbers of type {quoted(name)}: write them as Float or Int"
            )
        dims = _dimensions(item)
        if dtype.kind == "f":
            return _in_dimensions(self._doubles(text, dims).astype(dtype, copy=False), dims)
        # NumPy cuts numbers that do not fit: wider ones tell
        if dtype == np.uint64:
            wide = dtype
        else:
            wide = np.dtype(np.int64)
        try:
            parsed = np.fromstring(text, wide, sep=" ")
        except (ValueError, DeprecationWarning):
            raise DamagedFileError("something is no number among whole numbers") from None
        values = parsed.astype(dtype)
        if (values != parsed).any():
            raise DamagedFileError(
                f"a number is too large for {name} of {dtype.itemsize} bytes"
            )
        return _in_dimensions(values, dims)

    def _doubles(self, text: str, dims: list[int]) -> NDArray[np.float64]:
        # a copy, since kernels are compiled anew for arrays that refuse writing
        cursor = Cursor(self.path, np.array(np.frombuffer(text.encode(), np.uint8)))
        if dims:
            n = int(np.prod(dims, dtype=object))
        else:
            n = len(text.split())
        values = cursor.doubles(n)
        if cursor.behind_blank(cursor.pos) < cursor.data.size:
            raise DamagedFileError(f"there are more numbers than the {n} that are declared")
        return values


def _dimensions(item: Element) -> list[int]:
    words = item.get("Dimensions", "").split()
    if not all(word.isdigit() for word in words):
        raise DamagedFileError(f"Dimensions are {quoted(' '.join(words))}, no numbers")
    return [int(word) for word in words]


def _in_dimensions(values: NDArray[Any], dims: list[int]) -> NDArray[Any]:
    """Values in these dimensions, where there are any."""
    if not dims:
        return values
    if values.size != np.prod(dims, dtype=object):
        raise DamagedFileError(
            f"{_by(dims)} numbers are declared, but there are {values.size} numbers"
        )
    return values.reshape(dims)


def _by(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


def check_dimensions(item: Element, shape: Sequence[int]) -> None:
    """Raise MeshprepError where an item and its dataset differ in size."""
    declared = _dimensions(item)
    if declared and np.prod(declared, dtype=object) != np.prod(shape, dtype=object):
        raise MeshprepError(
            f"declares {_by(declared)} numbers where {(item.text or '').strip()} has "
            f"{_by(shape)}: correct one of them"
        )
