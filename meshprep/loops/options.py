"""What can be chosen when preparing a mesh: one table for Python, commands and loops.toml.

Each field of :class:`Options` carries an :class:`OptionRow`: its flag, its help, the
commands that take it, and whether a loop may have its own in loops.toml. Name, type and
default are the field's.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import Field, asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from meshprep_runtime.errors import MeshprepError, check_choice, check_integer, check_number

from ..registry.orders import ORDERS
from ..registry.partitioners import FILE, GIVEN, PARTITIONERS, is_given

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The default block size of each target: elements.
TARGETS = {"gpu": 256, "cpu": 2048}

# The commands that order, that cut into blocks, and that prepare meshes at all.
ORDERING = ("reorder", "split")
CUTTING = ("reorder", "plan", "split")
EVERY = ("reorder", "plan", "sweep", "split")


@dataclass(frozen=True)
class OptionRow:
    """A row of the table: an option besides its name, type and default."""

    flag: str  # begins with ``--no-`` where the option is true without it
    help: str
    commands: tuple[str, ...]  # those that take it
    in_loops: bool = False  # whether a table ``[loop.NAME]`` may set it for its loop
    of_partitioner: bool = False  # whether the value goes to the partitioner, to be checked
    # Whether it only matters to a partitioner that searches; others are not given it.
    of_search: bool = False
    choices: Collection[str] | None = None
    least: float | None = None  # the smallest number allowed


@dataclass(frozen=True, eq=False)
class GivenBlocks:
    """Blocks from outside: the number of each element's block, in the order of the mesh."""

    # (n,), at least 0; not every number need be in use.
    number: "NDArray[np.integer]"
    source: str = "partition"  # how messages speak of it

    def __post_init__(self) -> None:
        import numpy as np

        number = np.asarray(self.number)
        if number.ndim != 1 or number.dtype.kind not in "iu":
            raise MeshprepError(
                f"{self.source} has shape {number.shape} and dtype {number.dtype}, "
                "must be a row of whole numbers: the block of each element"
            )
        if number.size and number.min() < 0:
            element = int(number.argmin())
            raise MeshprepError(
                f"{self.source}: element {element} is in block {number[element]}: "
                "number blocks from 0"
            )
        object.__setattr__(self, "number", number)


def _option(
    default: Any,
    flag: str,
    help: str,
    commands: tuple[str, ...],
    **more: Any,
) -> Any:
    return field(default=default, metadata={"row": OptionRow(flag, help, commands, **more)})


@dataclass(frozen=True)
class Options:
    """The options of a preparation; the defaults suit a GPU.

    Parameters
    ----------
    method : str
        Locality order: a name in ``reorder.METHODS``, or ``auto`` for the best of them.
    order_time : float
        Seconds after which ``auto`` begins no further method.
    partition : str, array or None
        A name in ``partition.PARTITIONERS``; None takes the target's: ``blocks`` for the
        GPU, ``contiguous`` for the CPU and where the loop's set has its order already.
        Blocks from outside are ``"file:BLOCKS"`` or an array (n,) of whole numbers: the
        number of the block of each element of the loop's set, in the order of the mesh.
        Named for a loop over such a set, or for a mesh that keeps its order, it gives
        blocks that list their elements.
    partition_options : mapping
        Options of the partitioner, by name; the next two go before them.
    repair : bool
        Move elements out of given blocks that are over the block size, and join blocks of
        less than a quarter of it with their neighbours; without it the former are refused.
    effort : str or None
        How long to search: ``"fast"``, ``"default"``, ``"strong"``, or a multiple of the
        default; for the CPU, whose blocks are runs, there is no search unless ``partition``
        asks for one.
    staged_bytes : int or None
        The most bytes that a block may stage.
    block_size : int or None
        The largest number of elements in a block; a loop's own wins. None takes the
        target's: 256 for the GPU, 2,048 for the CPU.
    target : str
        ``"gpu"``: compact blocks, and points grouped by the blocks that use them, for a GPU
        and for the runtime on cores; ``"cpu"``: one banded order for an unchanged solver
        that streams through its loops, cut where it stands.
    sort_by_colour : bool
        Sort the elements of each block by thread colour (leading loops, and blocks that
        list their elements).
    own_blocks : bool
        Blocks of its own, as lists of elements, for a loop whose set has its order already,
        where they load at least 1 % less than runs of that order.
    coordinates : bool
        Write the nodes' coordinates into the plan, for solvers that read no mesh.
    seed : int
        Of whatever is random; the same seed gives the same plan.
    proof : bool
        Prove the plan before it is given out.

    Raises
    ------
    MeshprepError
        On unknown names, a block size below 1 and a negative time.

    Examples
    --------
    >>> from meshprep import Options
    >>> Options(target="cpu").block_elements, Options(block_size=448).partitioner
    (2048, 'blocks')
    """

    method: str = _option(
        default="gps",
        flag="--method",
        help=f"Locality order: {', '.join(ORDERS.built_in)}; auto: the best of these. "
        "For an unchanged solver of finite volumes gps, of finite elements hilbert.",
        commands=ORDERING,
        choices=ORDERS,
    )
    order_time: float = _option(
        default=10.0,
        flag="--order-time",
        help="Seconds after which --method auto starts no further method.",
        commands=ORDERING,
        least=0,
    )
    partition: str | GivenBlocks | None = field(
        default=None,
        metadata={
            "row": OptionRow(
                flag="--partition",
                help="How loops are cut into blocks: "
                f"{', '.join(PARTITIONERS.built_in)}, or file:BLOCKS, the block of each "
                "element (.npy, .h5, text); default: blocks for the GPU, contiguous for "
                "the CPU.",
                commands=CUTTING,
                in_loops=True,
                choices=PARTITIONERS,
            )
        },
    )
    partition_options: Mapping[str, Any] = field(
        default_factory=dict,
        metadata={
            "row": OptionRow(
                "--partition-option",
                "NAME=VALUE for the partitioner, such as effort=strong. Repeatable.",
                CUTTING,
            )
        },
    )
    repair: bool = _option(
        default=False,
        flag="--repair",
        help="Of file:BLOCKS: move elements out of blocks that are too large, "
        "and join slivers.",
        commands=("reorder", "plan"),
        in_loops=True,
    )
    effort: str | None = _option(
        default=None,
        flag="--effort",
        help="How long to search for blocks: fast, default, strong, "
        "or a factor such as 2.5. --target cpu does not search.",
        commands=CUTTING,
        in_loops=True,
        of_partitioner=True,
        of_search=True,
    )
    staged_bytes: int | None = _option(
        default=None,
        flag="--staged-bytes",
        help="The most bytes a block may stage; default: any.",
        commands=("reorder", "plan"),
        of_partitioner=True,
    )
    block_size: int | None = _option(
        default=None,
        flag="--block-size",
        help="The most elements a block may have; "
        "default: 256 for the GPU, 2048 for the CPU.",
        commands=CUTTING,
        in_loops=True,
        least=1,
    )
    target: str = _option(
        default="gpu",
        flag="--target",
        help="gpu: compact blocks, for a GPU and meshprep's runtime on cores; "
        "cpu: a banded order, for "
        "an unchanged solver that streams through it.",
        commands=EVERY,
        in_loops=True,
        choices=tuple(TARGETS),
    )
    sort_by_colour: bool = _option(
        default=False,
        flag="--sort-by-colour",
        help="Sort the elements of each block by thread colour.",
        commands=("reorder", "plan"),
    )
    own_blocks: bool = _option(
        default=False,
        flag="--own-blocks",
        help="For sets whose order is fixed: "
        "blocks that list their elements, if these load less.",
        commands=("reorder", "plan", "sweep"),
        in_loops=True,
    )
    coordinates: bool = _option(
        default=False,
        flag="--coordinates",
        help="Write the nodes' coordinates into the plan, for solvers that read no mesh.",
        commands=("reorder", "plan"),
    )
    seed: int = _option(
        default=0,
        flag="--seed",
        help="Seed of what is random; the same seed gives the same plan.",
        commands=EVERY,
    )
    proof: bool = _option(
        default=True,
        flag="--no-proof",
        help="Do not prove plans and parts before they are saved.",
        commands=(*EVERY, "tune"),
    )

    def __post_init__(self) -> None:
        if not isinstance(self.partition_options, Mapping):
            raise MeshprepError(
                f"partition_options is {self.partition_options!r}, must be a dict"
            )
        # Blocks that are given are no choice of a table.
        from_outside = not isinstance(self.partition, str | None)
        if not isinstance(self.partition, str | GivenBlocks | None):
            object.__setattr__(self, "partition", GivenBlocks(self.partition))
        if isinstance(self.partition, str):
            from_outside = self.partition.startswith(FILE)
        # Check each value by its row of the table and by its type.
        for option in _FIELDS:
            name = option.name
            row = option.metadata["row"]
            value = getattr(self, name)
            # ``int | None`` has two kinds, ``int`` one.
            kinds = get_args(option.type) or (option.type,)
            if value is None and NoneType in kinds:
                continue
            if row.choices is not None and not (name == "partition" and from_outside):
                what = "partitioner" if name == "partition" else name
                check_choice(what, value, row.choices)
            if bool in kinds and not isinstance(value, bool):
                raise MeshprepError(f"{name} is {value!r}, must be True or False")
            if int in kinds:
                check_integer(name, value, row.least or 0)
            elif float in kinds:
                check_number(name, value, row.least or 0)

    @property
    def block_elements(self) -> int:
        """The largest number of elements in a block: as asked, or the target's."""
        if self.block_size is None:
            return TARGETS[self.target]
        return self.block_size

    @property
    def partitioner(self) -> str:
        """How a loop that leads is cut: as asked, or the target's.

        Of blocks in a file it is the name of the file without its folder.
        """
        if self.partition is None:
            return {"gpu": "blocks", "cpu": "contiguous"}[self.target]
        if not isinstance(self.partition, str):
            return GIVEN
        if self.partition.startswith(FILE):
            return f"{FILE}{Path(self.partition.removeprefix(FILE)).name}"
        return self.partition

    @property
    def given_to_partitioner(self) -> dict[str, Any]:
        """``partition_options``, and over them what has an option of its own."""
        values = dict(self.partition_options)
        searches = self.partition is not None or self.partitioner != "contiguous"
        for name, row in table():
            value = getattr(self, name)
            if row.of_partitioner and value is not None and (searches or not row.of_search):
                values[name] = value
        if is_given(self.partitioner):
            values["repair"] = self.repair
        return values

    def effective(self) -> dict[str, Any]:
        """Every option with the value that is used.

        Returns
        -------
        dict
            JSON values.
        """
        values = asdict(self) | {"block_size": self.block_elements}
        values["partition_options"] = self.given_to_partitioner
        del values["repair"]
        if isinstance(self.partition, GivenBlocks):
            values["partition"] = GIVEN
        for name, row in table():
            if row.of_partitioner:
                del values[name]
        return values

    def for_names(self, chosen: Mapping[str, Any]) -> "Options":
        """These options with others over them.

        Parameters
        ----------
        chosen : mapping
            Values by the names of options.

        Returns
        -------
        Options

        Raises
        ------
        MeshprepError
            For names that no option has, and values that cannot be.
        """
        names = dict(table())
        for name in chosen:
            if name not in names:
                near = get_close_matches(name, names, 2, 0.5) or names
                raise MeshprepError(f"there is no option '{name}': use {', '.join(near)}")
        return replace(self, **chosen)


def table(command: str | None = None) -> Iterator[tuple[str, OptionRow]]:
    """Names and rows of the options, of all or of those that a command takes."""
    for option in _FIELDS:
        row: OptionRow = option.metadata["row"]
        if command is None or command in row.commands:
            yield option.name, row


def loop_options() -> dict[str, type]:
    """The options that a table ``[loop.NAME]`` may set, with their types."""
    hints = get_type_hints(Options)
    types = {}
    for name, row in table():
        if row.in_loops:
            # Of ``int | None`` the first: TOML has no None.
            types[name] = next(iter(get_args(hints[name])), hints[name])
    return types


_FIELDS: tuple[Field[Any], ...] = fields(Options)
