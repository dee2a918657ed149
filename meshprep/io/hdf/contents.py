"""What a file holds, as a tree that remembers what of it was looked at."""

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError


class Item:
    """A group or a dataset of a file.

    Parameters
    ----------
    path : str
        Names from the root on, with ``/`` between; empty for the root.
    attributes : dict
    values : array, optional
        None for a group, and for a dataset that holds neither numbers nor text of fixed
        length.
    is_group : bool
    sizes : dict, optional
        The dimensions of a netCDF file, by name; at its root alone.
    """

    def __init__(
        self,
        path: str,
        attributes: dict[str, Any],
        values: NDArray[Any] | None = None,
        *,
        is_group: bool = True,
        sizes: dict[str, int] | None = None,
    ) -> None:
        self.path = path
        self.is_group = is_group
        self.sizes = sizes or {}
        self.children: dict[str, Item] = {}
        self.seen = False
        self._attributes = attributes
        self._values = values

    @property
    def name(self) -> str:
        """The last name of the path."""
        return self.path.rpartition("/")[2]

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes; the item counts as looked at."""
        self.seen = True
        return self._attributes

    @property
    def values(self) -> NDArray[Any]:
        """The values of a dataset, which counts as looked at."""
        self.seen = True
        if self._values is None:
            if self.is_group:
                what = "group"
            else:
                what = "dataset of another kind"
            raise MeshprepError(
                f"'{self.path}' is a {what}, must hold numbers: the file is damaged"
            )
        return self._values

    @property
    def has_values(self) -> bool:
        """Whether there are values of a kind that can be read."""
        return self._values is not None

    def get(self, path: str) -> "Item | None":
        """What is below under this path, or None."""
        item: Item | None = self
        for name in path.split("/"):
            if item is None:
                item = None
            else:
                item = item.children.get(name)
        return item

    def __getitem__(self, path: str) -> "Item":
        found = self.get(path)
        if found is None:
            place = f"{self.path}/{path}".lstrip("/")
            raise MeshprepError(f"'{place}' is missing: the file is damaged")
        return found

    def __contains__(self, path: str) -> bool:
        return self.get(path) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self.children)

    def __len__(self) -> int:
        return len(self.children)

    def items(self) -> Iterator[tuple[str, "Item"]]:
        """Names and items directly below, in the order of the file."""
        return iter(self.children.items())

    def skip(self) -> None:
        """Count this and everything below as looked at: nobody misses it."""
        self.seen = True
        for child in self.children.values():
            child.skip()

    def untouched(self) -> Iterator["Item"]:
        """What was not looked at; of a group of which nothing was, the group alone.

        An empty group holds nothing that could be lost.
        """
        if self.is_untouched():
            if self.children or self._attributes or not self.is_group:
                yield self
            return
        for child in self.children.values():
            yield from child.untouched()

    def is_untouched(self) -> bool:
        """Whether neither this nor anything below was looked at."""
        return not self.seen and all(c.is_untouched() for c in self.children.values())
