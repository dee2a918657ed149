"""A CGNS file as a tree of nodes with a name, a label and data [SIDS, file mapping to HDF5]."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..meshio_adapter.harden import check_hdf5, guarded

# The first bytes of the other kind of CGNS file: "@(#)" with the highest bit set.
_ADF = b"\xc0\xa8\xa3\xa9"
_DEEPEST = 32
# CGNS's name of each type of data; text stands as signed bytes.
_KIND = {"i1": "C1", "u1": "B1", "i4": "I4", "i8": "I8", "u4": "U4", "u8": "U8"}
_KIND |= {"f4": "R4", "f8": "R8"}
# The first version whose MIXED, NGON_n and NFACE_n sections have offsets; all later readers know.
_VERSION = 3.4
# Names of nodes that every reader takes.
NAME = r"(?!\.{1,2}$)[!-.0-~]([ -.0-~]{0,30}[!-.0-~])?"


@dataclass(eq=False)
class Node:
    """A node of the tree; ``data`` stands in the order of the file (the last axis is CGNS's first).

    Nodes whose data follow the mesh are kept without them.
    """

    name: str
    label: str
    data: NDArray[Any] | None = None
    children: list["Node"] = field(default_factory=list)

    def having(self, *labels: str) -> "Iterator[Node]":
        """The children that have one of these labels."""
        return (c for c in self.children if c.label in labels)

    def get(self, name: str) -> "Node | None":
        """The child of this name."""
        return next((c for c in self.children if c.name == name), None)

    def find(self, name: str, label: str) -> "Node":
        """The child of this name, made at the end where there is none."""
        found = self.get(name)
        if found is None:
            found = Node(name, label)
            self.children.append(found)
        return found

    @property
    def text(self) -> str:
        """The data as text."""
        data = np.zeros(0, np.int8) if self.data is None else self.data
        return data.astype(np.uint8).tobytes().decode("utf-8", "replace").strip("\0 ")

    def integers(self, size: int | None = None) -> NDArray[np.int64]:
        """The data as whole numbers in one row, of this size where it is given.

        Raises MeshprepError that names the node.
        """
        data = self.data
        if data is None or data.dtype.kind not in "iu" or data.size != (size or data.size or 1):
            count = "" if size is None else f"{size} "
            raise MeshprepError(
                f"'{self.name}' ({self.label}) must hold {count}whole numbers: the file is damaged"
            )
        return data.ravel().astype(np.int64, copy=False)

    def walk(self) -> "Iterator[Node]":
        """The node and everything below."""
        yield self
        for child in self.children:
            yield from child.walk()


def merged(*nodes: Node) -> Node:
    """A copy of the first of some nodes with the children of all; those of one name are one."""
    names = dict.fromkeys(c.name for n in nodes for c in n.children)
    same = ([c for n in nodes for c in n.children if c.name == name] for name in names)
    return replace(nodes[0], children=[merged(*found) for found in same])


def text(name: str, label: str, words: str) -> Node:
    """A node that holds text."""
    return Node(name, label, np.frombuffer(words.encode(), np.int8))


def load(path: Path) -> Node:
    """The tree of a file, whole.

    Raises MeshprepError for ADF files, links, and what is no CGNS file.
    """
    with path.open("rb") as file:
        if file.read(4) == _ADF:
            raise MeshprepError(
                "is a CGNS file in ADF, the older kind: convert it by  adf2hdf "
                f"{path.name} new.cgns  (of the CGNS tools)"
            )
    with guarded("not a readable CGNS file"):
        check_hdf5(path)
        with h5py.File(path, "r") as file:
            return Node("", "", None, _children(file, "", 0))


def _children(group: Any, path: str, depth: int) -> list[Node]:
    if depth > _DEEPEST:
        raise MeshprepError(f"'{path[:80]}...' is a node in a node in a node: the file is damaged")
    links = ((name, group.get(name, getlink=True)) for name in group)
    out = []
    for name, link in links:
        if name.startswith(" "):
            continue
        below = f"{path}/{name}"
        kind = None if not isinstance(link, h5py.HardLink) else group[name].attrs.get("type", b"")
        if kind is None or _word(kind) == "LK":
            raise MeshprepError(
                f"'{below}' is a link to another place or file: put everything into one by  "
                "cgnsconvert -h -f -l old.cgns new.cgns"
            )
        if isinstance(group[name], h5py.Group):
            label = _word(group[name].attrs.get("label", b""))
            nodes = _children(group[name], below, depth + 1)
            out.append(Node(name, label, _data(group[name], below), nodes))
    return out


def _word(value: Any) -> str:
    word = value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
    return word.rstrip("\0 ")


def _data(group: Any, path: str) -> NDArray[Any] | None:
    found = group.get(" data")
    if found is None:
        return None
    values = np.asarray(found[()])
    if values.dtype.str[1:] not in _KIND:
        raise MeshprepError(f"'{path}' holds data of type {values.dtype}, which CGNS does not have")
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def save(nodes: list[Node], path: Path) -> None:
    """Write a file with these nodes at its root, after its version.

    Into memory first: HDF5 prints at exit, or crashes, when the disk is full.
    """
    version = Node("CGNSLibraryVersion", "CGNSLibraryVersion_t", np.array([_VERSION], np.float32))
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", track_order=True) as file:
        _describe(file, "HDF5 MotherNode", "Root Node of HDF5 File", "MT")
        file[" format"] = _padded("IEEE_LITTLE_32", 15)
        file[" hdf5version"] = _padded("HDF5 Version 1.10.0", 33)
        for node in [version, *nodes]:
            _write(file, node)
    path.write_bytes(buffer.getvalue())


def _write(parent: Any, node: Node) -> None:
    group = parent.create_group(node.name, track_order=True)
    kind = "MT" if node.data is None else _KIND[node.data.dtype.str[1:]]
    _describe(group, node.name, node.label, kind)
    group.attrs.create("flags", np.array([1], np.int32))
    if node.data is not None:
        group.create_dataset(" data", data=node.data)
    for child in node.children:
        _write(group, child)


def _describe(group: Any, name: str, label: str, kind: str) -> None:
    for key, word, size in (("label", label, 33), ("name", name, 33), ("type", kind, 3)):
        group.attrs.create(key, np.bytes_(word.encode()), dtype=f"S{size}")


def _padded(words: str, size: int) -> NDArray[np.int8]:
    return np.frombuffer(words.encode().ljust(size, b"\0"), np.int8)
