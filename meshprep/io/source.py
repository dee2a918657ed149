"""A mesh file, and what it does not say by itself."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from meshprep_runtime.plan import Plan

from ..mesh import Mesh
from .format import Format
from .front import find_input, read


@dataclass(frozen=True)
class MeshSource:
    """A mesh file to read."""

    path: Path
    format: str | None = (
        None  # the name of a format; without it the ending of the name tells
    )
    dimension: int | None = None  # accepts loose cells of a lower dimension than this
    # What the datasets of a file are that does not say it (:mod:`meshprep.io.declared`).
    sets: Mapping[str, str] = field(default_factory=dict)

    def find_format(self) -> Format:
        """The file's format; raises MeshprepError if unknown or missing."""
        return find_input(self.path, self.format)

    def read(self) -> Mesh:
        """The mesh, validated, as :func:`meshprep.io.read` gives it."""
        return read(
            self.path, format=self.format, dimension=self.dimension, sets=self.sets or None
        )

    def declared_by(self, plans: Iterable[Plan]) -> "MeshSource":
        """With the sets that the first of the plans declares, where none are given yet.

        Loose cells were accepted when a plan was made: its hash tells whether it is the
        same mesh.
        """
        plans = list(plans)
        format_ = next(
            (s for p in plans if isinstance(s := p.options.get("sets"), dict)), None
        )
        if plans and self.dimension is None:
            undeclared = replace(self, dimension=0)
        else:
            undeclared = self
        if self.sets or not format_ or "sets" not in self.find_format().read_options:
            return undeclared
        return replace(
            undeclared, sets={str(name): str(place) for name, place in format_.items()}
        )
