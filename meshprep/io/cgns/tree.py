"""A CGNS file as a tree of nodes with name, label and data [SIDS, mapping to HDF5]."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..guard import guarded
from ..hdf import Item
from ..hdf import load as load_apart

# The first bytes of the other kind of CGNS file: "@(#)", later with the highest bits set.
_ADF = (b"@(#)", b"\xc0\xa8\xa3\xa9")
# What to do where a file has links.
_ADVICE = (
    "put everything into one by  cgnsconvert -h -f -l old.cgns new.cgns  "
    "(of the CGNS tools)"
)
# CGNS's name of each type of data; text stands as signed bytes.
_KIND = {"i1": "C1", "u1": "B1", "i4": "I4", "i8": "I8", "u4": "U4", "u8": "U8"}
_KIND |= {"f4": "R4", "f8": "R8"}
# The first version whose MIXED, NGON_n and NFACE_n sections have offsets; all later readers
# know.
_VERSION = 3.4
# Names of nodes that every reader takes.
NAME = r"(?!\.{1,2}$)[!-.0-~]([ -.0-~]{0,30}[!-.0-~])?"


@dataclass(eq=False)
class Node:
    """A node of the tree.

    ``data`` stands in the order of the file, with the last axis of CGNS first.

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
        if self.data is None:
            data = np.zeros(0, np.int8)
        else:
            data = self.data
        return data.astype(np.uint8).tobytes().decode("utf-8", "replace").strip("\0 ")

    def integers(self, size: int | None = None) -> NDArray[np.int64]:
        """The data as whole numbers in one row, of this size where it is given.

        Raises MeshprepError that names the node.
        """
        data = self.data
        if (
            data is None
            or data.dtype.kind not in "iu"
            or data.size != (size or data.size or 1)
        ):
            if size is None:
                count = ""
            else:
                count = f"{size} "
            raise MeshprepError(
                f"'{self.name}' ({self.label}) must hold {count}whole numbers: the file is "
                "damaged"
            )
        return data.ravel().astype(np.int64, copy=False)

    def walk(self) -> "Iterator[Node]":
        """The node and everything below."""
        yield self
        for child in self.children:
            yield from child.walk()


def drop_values(node: Node) -> None:
    """Take the data sets and arrays out of a boundary condition or region."""
    labels = ("BCDataSet_t", "DataArray_t", "UserDefinedData_t")
    node.children = [c for c in node.children if c.label not in labels]


def merged(*nodes: Node) -> Node:
    """A copy of the first node with the children of all; equal names are merged."""
    children_by_name: dict[str, list[Node]] = {}
    for node in nodes:
        for child in node.children:
            children_by_name.setdefault(child.name, []).append(child)
    children = [merged(*same_name) for same_name in children_by_name.values()]
    return replace(nodes[0], children=children)


def text(name: str, label: str, words: str) -> Node:
    """A node that holds text."""
    return Node(name, label, np.frombuffer(words.encode(), np.int8))


def load(path: Path) -> Node:
    """The tree of a file, whole.

    Raises MeshprepError for ADF files, links, and what is no CGNS file.
    """
    with path.open("rb") as file:
        if file.read(4) in _ADF:
            raise MeshprepError(
                "is a CGNS file in ADF, the older kind: convert it by  adf2hdf "
                f"{path.name} new.cgns  (of the CGNS tools)"
            )
    with guarded("not a readable CGNS file"):
        root = load_apart(path, "hdf5", advice=_ADVICE)
        return Node(name="", label="", data=None, children=_children(root))


def _children(group: Item) -> list[Node]:
    out = []
    for name, item in group.items():
        # Names with a leading blank are those of the mapping itself, such as " data" for
        # the data of a node.
        if name.startswith(" ") or not item.is_group:
            continue
        if _decoded_word(item.attrs.get("type", b"")) == "LK":
            raise MeshprepError(
                f"'/{item.path}' is a link to another place or file: {_ADVICE}"
            )
        label = _decoded_word(item.attrs.get("label", b""))
        out.append(Node(name=name, label=label, data=_data(item), children=_children(item)))
    return out


def _decoded_word(value: Any) -> str:
    if isinstance(value, bytes):
        word = value.decode("ascii", "replace")
    else:
        word = str(value)
    return word.rstrip("\0 ")


def _data(group: Item) -> NDArray[Any] | None:
    found = group.get(" data")
    if found is None:
        return None
    values = found.values
    if values.dtype.str[1:] not in _KIND:
        raise MeshprepError(
            f"'/{group.path}' holds data of type {values.dtype}, which CGNS does not have"
        )
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def save(nodes: list[Node], path: Path) -> None:
    """Write a file with these nodes at its root, after its version.

    Into memory first: HDF5 prints at exit, or crashes, when the disk is full.
    """
    version = Node(
        "CGNSLibraryVersion", "CGNSLibraryVersion_t", np.array([_VERSION], np.float32)
    )
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", track_order=True) as file:
        # The root has the type MT (no data), and says in what format numbers stand.
        _write_attributes(
            group=file, name="HDF5 MotherNode", label="Root Node of HDF5 File", kind="MT"
        )
        file[" format"] = _padded_label("IEEE_LITTLE_32", 15)
        file[" hdf5version"] = _padded_label("HDF5 Version 1.10.0", 33)
        for node in [version, *nodes]:
            _write_node(file, node)
    path.write_bytes(buffer.getvalue())


def _write_node(parent: Any, node: Node) -> None:
    group = parent.create_group(node.name, track_order=True)
    if node.data is None:
        kind = "MT"
    else:
        kind = _KIND[node.data.dtype.str[1:]]
    _write_attributes(group=group, name=node.name, label=node.label, kind=kind)
    group.attrs.create("flags", np.array([1], np.int32))
    if node.data is not None:
        group.create_dataset(" data", data=node.data)
    for child in node.children:
        _write_node(group, child)


def _write_attributes(group: Any, name: str, label: str, kind: str) -> None:
    for key, word, size in (("label", label, 33), ("name", name, 33), ("type", kind, 3)):
        group.attrs.create(key, np.bytes_(word.encode()), dtype=f"S{size}")


def _padded_label(words: str, size: int) -> NDArray[np.int8]:
    return np.frombuffer(words.encode().ljust(size, b"\0"), np.int8)
