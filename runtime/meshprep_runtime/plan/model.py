"""The plan: the arrays with which a solver runs its loops in blocks, without a race.

The arrays are frozen; :mod:`.file.store` reads and writes them, :mod:`.checks.verify`
proves them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UnknownNameError, import_package, name_entries
from ..types.loops import Loop, among, cut_by_shell
from ..types.maps import SetMap, rows_of_entries
from ..types.ordering import Ordering
from .conflicts import blocks_that_meet, written_columns
from .metrics import Metrics
from .tuned import Tuned

if TYPE_CHECKING:
    from .file.tree import Tree
    from .matrices import MatrixPlan


@dataclass(frozen=True, eq=False)
class Staging:
    """The distinct points of one to-set that each block touches.

    Parameters
    ----------
    point_offset : (n_blocks + 1,) int64
        Block ``b`` stages ``points[point_offset[b]:point_offset[b + 1]]``.
    points : (loads,) int32
        Ascending inside a block.
    exclusive : (loads,) bool
        True where no other block touches the point: then a plain write is safe.
    """

    point_offset: NDArray[np.int64]
    points: NDArray[np.int32]
    exclusive: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
@name_entries(staging="staged set", local="map")
class Variant:
    """One way to cut a loop's from-set into blocks.

    Blocks are ranges of *places*. A place holds the element of its number, or the one that
    ``elements`` names.

    Parameters
    ----------
    name : str
        ``"s448"`` for a block size of 448.
    block_size : int
        No block has more elements.
    target : str
        ``"gpu"`` or ``"cpu"``.
    partitioner : str
        The partitioner that cut the blocks.
    sorted_by_colour : bool
        True when the elements of each block are in the order of their thread colours.
    block_offset : (n_blocks + 1,) int64
        Block ``b`` owns places ``block_offset[b]`` to ``block_offset[b + 1] - 1``.
    block_colour_offset : (n_block_colours + 1,) int64
        Blocks of colour ``c`` are
        ``block_order[block_colour_offset[c]:block_colour_offset[c+1]]``.
    block_order : (n_blocks,) int32
        Blocks grouped by colour, ascending inside a colour.
    thread_colour : (n_from,) uint8 or uint16
        Colour of the element at each place inside its block, from 0.
    thread_colours : (n_blocks,) int32
        Number of thread colours of each block.
    staging : mapping of to-set name to Staging
    local : mapping of map name to (arity, n_from) uint16
        The map as positions in the block's staging list, place by place; transposed for
        coalesced reading.
    elements : (n_from,) int32 or None
        The element at each place, a permutation; None where it is the place itself. So
        blocks need not be ranges of the set's numbering.
    """

    name: str
    block_size: int
    target: str
    partitioner: str
    sorted_by_colour: bool
    block_offset: NDArray[np.int64]
    block_colour_offset: NDArray[np.int64]
    block_order: NDArray[np.int32]
    thread_colour: NDArray[np.uint8] | NDArray[np.uint16]
    thread_colours: NDArray[np.int32]
    staging: Mapping[str, Staging]
    local: Mapping[str, NDArray[np.uint16]]
    elements: NDArray[np.int32] | None = None

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return int(self.block_offset.size) - 1

    @property
    def n_block_colours(self) -> int:
        """Number of block colours: launches a loop takes."""
        return int(self.block_colour_offset.size) - 1

    def __repr__(self) -> str:
        return (
            f"Variant('{self.name}': {self.n_blocks:,} blocks by {self.partitioner}, "
            f"{self.n_block_colours:,} block colours)"
        )

    def block_of_element(self) -> NDArray[np.int32]:
        """The block of every element of the from-set.

        Returns
        -------
        (n_from,) int32
        """
        return self.by_element(self.block_of_place())

    def block_of_place(self) -> NDArray[np.int32]:
        """The block of every place.

        Returns
        -------
        (n_from,) int32
        """
        return rows_of_entries(self.block_offset)

    def by_place(self, values: NDArray[Any]) -> NDArray[Any]:
        """Bring values of the elements into the order of the places.

        Parameters
        ----------
        values : (n_from, ...) array

        Returns
        -------
        (n_from, ...) array
            ``values`` itself where blocks list no elements.
        """
        if self.elements is None:
            return values
        return values[self.elements]

    def by_element(self, values: NDArray[Any]) -> NDArray[Any]:
        """Bring values of the places into the order of the elements.

        Such as the values of ``thread_colour``.

        Parameters
        ----------
        values : (n_from, ...) array

        Returns
        -------
        (n_from, ...) array
            ``values`` itself where blocks list no elements.
        """
        if self.elements is None:
            return values
        values_of_elements = np.empty_like(values)
        values_of_elements[self.elements] = values
        return values_of_elements

    def colour_of_block(self) -> NDArray[np.int32]:
        """The colour of every block.

        Returns
        -------
        (n_blocks,) int32
        """
        colour = np.empty(self.n_blocks, dtype=np.int32)
        colour[self.block_order] = rows_of_entries(self.block_colour_offset)
        return colour


@dataclass(frozen=True, eq=False)
class Ranges:
    """Ranges of places for the threads of a CPU, in the order in which they are begun.

    Parameters
    ----------
    offset : (n_ranges + 1,) int64
        Range ``r`` holds places ``offset[r]`` to ``offset[r + 1] - 1`` of the default
        variant.
    order : (n_ranges,) int32
        The range that is begun at each turn.
    wait_offset : (n_ranges + 1,) int64
        The range of turn ``i`` begins when those of turns
        ``waits[wait_offset[i]:wait_offset[i + 1]]`` are done.
    waits : (n_waits,) int32
        Turns, each lower than the one that waits. Of any two ranges that write a common
        point, the later one waits for the earlier one.
    """

    offset: NDArray[np.int64]
    order: NDArray[np.int32]
    wait_offset: NDArray[np.int64]
    waits: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
@name_entries(sizes="set", maps="map", variants="variant", matrices="matrix")
class LoopPlan:
    """The plan of one loop, as ``ParLoop`` takes it.

    Parameters
    ----------
    loop : Loop
    sizes : mapping of set name to number of elements
    maps : mapping of map name to SetMap
        The maps of the loop, in the plan's numbering.
    variants : mapping of variant name to Variant
    default : str
        The variant that is used where none is named.
    tuned : tuple of Tuned
        The results of ``meshprep tune``, an entry for each machine and layout.
    rows : mapping of set name to int
        Rows of the dats of a set, where they are more than its size: on one part of a mesh,
        copies of other parts' elements follow the elements that the loop runs over.
    matrices : mapping of matrix name to MatrixPlan
        The matrices that the loop adds to. Of a matrix that is not here, the loop stores
        the matrices of the elements, a row each.
    ranges : Ranges or None
        The ranges that the threads of a CPU run, in their order; None in a file of an older
        version.
    """

    loop: Loop
    sizes: Mapping[str, int]
    maps: Mapping[str, SetMap]
    variants: Mapping[str, Variant]
    default: str
    tuned: tuple[Tuned, ...] = ()
    rows: Mapping[str, int] = field(default_factory=dict)
    matrices: Mapping[str, "MatrixPlan"] = field(default_factory=dict)
    ranges: Ranges | None = None

    def __repr__(self) -> str:
        args = ", ".join(a.name for a in self.loop.args)
        variants = ", ".join(self.variants)
        return (
            f"LoopPlan({self.loop.name}({args}) over {self.loop.over}, variants {variants})"
        )

    @property
    def tables(self) -> list[NDArray[np.int32]]:
        """The tables of a compiled loop: those of its maps, then those of its matrices."""
        tables = [self.maps[name].table for name in self.loop.maps]
        tables += [
            self.matrices[arg.name].place[self.loop.name]
            for arg in self.loop.matrices
            if arg.name in self.matrices
        ]
        return tables

    def rows_of(self, name: str) -> int:
        """Rows of the dats of one set.

        Parameters
        ----------
        name : str
            Of the set.

        Returns
        -------
        int
        """
        return self.rows.get(name, self.sizes[name])

    @property
    def reuse(self) -> float | None:
        """The reuse factor of the default variant's blocks; None without maps [S19]."""
        loads = sum(s.points.size for s in self.variant().staging.values())
        entries = sum(self.maps[name].arity for name in self.loop.maps)
        if loads:
            return entries * self.sizes[self.loop.over] / loads
        return None

    def variant(self, name: str | None = None) -> Variant:
        """One way to cut the loop into blocks.

        Parameters
        ----------
        name : str, optional
            None for the default.

        Returns
        -------
        Variant

        Raises
        ------
        PlanError
            For an unknown name; the message lists the variants of the loop.
        """
        if name is None:
            name = self.default
        if name not in self.variants:
            raise UnknownNameError(
                f"loop '{self.loop.name}' has no variant '{name}': "
                f"choose {', '.join(self.variants)}"
            )
        return self.variants[name]

    def conflicts(self, variant: str | None = None) -> Any:
        """The graph of the blocks: which of them write a common point.

        Parameters
        ----------
        variant : str, optional
            None for the default.

        Returns
        -------
        scipy.sparse.csr_array
            (n_blocks, n_blocks), True where two different blocks may not run at once. O(sum
            over points of their blocks squared).

        Raises
        ------
        PlanError
            For an unknown variant.
        MissingPackageError
            Where scipy is not installed.
        """
        chosen = self.variant(variant)
        columns, n_points = written_columns(self.loop, self.maps, self.sizes)
        return blocks_that_meet(
            columns=columns,
            n_points=n_points,
            block=chosen.block_of_element(),
            n_blocks=chosen.n_blocks,
        )

    def conflict_graph(self, variant: str | None = None) -> Any:
        """The graph of :meth:`conflicts` for networkx, with the colour of each block.

        Parameters
        ----------
        variant : str, optional
            None for the default.

        Returns
        -------
        networkx.Graph
            Nodes are the numbers of blocks, with ``colour`` and ``elements``.

        Raises
        ------
        PlanError
            For an unknown variant.
        MissingPackageError
            Where networkx or scipy is not installed.
        """
        networkx = import_package(
            "networkx", "graphs of blocks need networkx: pip install networkx"
        )
        chosen = self.variant(variant)
        graph = networkx.from_scipy_sparse_array(self.conflicts(variant).astype(np.int8))
        colours = chosen.colour_of_block().tolist()
        elements = np.diff(chosen.block_offset).tolist()
        for _, _, attributes in graph.edges(data=True):
            attributes.clear()
        networkx.set_node_attributes(graph, dict(enumerate(colours)), "colour")
        networkx.set_node_attributes(graph, dict(enumerate(elements)), "elements")
        return graph


@dataclass(frozen=True, eq=False)
@name_entries(
    sizes="set",
    ordering="set",
    maps="map",
    loops="loop",
    tags="tag of set",
    matrices="matrix",
    group_names="set with named groups",
    further_groups="set with further groups",
    coordinates="set with coordinates",
    extensions="extension",
)
class PlanContent:
    """Everything prepared for one mesh; :class:`~.plan.Plan` documents and saves it."""

    sizes: Mapping[str, int]
    ordering: Mapping[str, Ordering]
    maps: Mapping[str, SetMap]
    loops: Mapping[str, LoopPlan]
    source_hash: str
    mesh_hash: str
    metrics: Metrics = field(default_factory=Metrics)
    options: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, Mapping[str, NDArray[np.int64]]] = field(default_factory=dict)
    matrices: Mapping[str, "MatrixPlan"] = field(default_factory=dict)
    group_names: Mapping[str, Mapping[str, Mapping[int, str]]] = field(default_factory=dict)
    further_groups: Mapping[str, Mapping[str, NDArray[np.int64]]] = field(
        default_factory=dict
    )
    coordinates: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    extensions: Mapping[str, "Tree"] = field(default_factory=dict)

    def __repr__(self) -> str:
        sets = ", ".join(f"{name} {size:,}" for name, size in self.sizes.items())
        return (
            f"Plan(loops {', '.join(self.loops)}; sets {sets}; maps {', '.join(self.maps)})"
        )

    def __contains__(self, loop: object) -> bool:
        return isinstance(loop, str) and among(loop, self.loops) in self.loops

    def __iter__(self) -> Iterator[str]:
        return iter(self.loops)

    def __len__(self) -> int:
        return len(self.loops)

    def __getitem__(self, loop: str) -> LoopPlan:
        name = among(loop, self.loops)
        if name not in self.loops:
            raise UnknownNameError(
                f"the plan has no loop '{loop}'{cut_by_shell(loop)}: "
                f"it has {', '.join(self.loops)}"
            )
        return self.loops[name]
