"""What can be chosen when preparing a mesh: one table for Python, commands and loops.toml.

Each field of :class:`Options` carries an :class:`OptionRow`: its flag, its help, the commands that
take it, and whether a loop may have its own in loops.toml. Name, type and default are the field's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import Field, asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from types import NoneType
from typing import Any, get_args, get_type_hints

from meshprep_runtime.errors import MeshprepError, check_choice, check_integer, check_number

# The block size of each target, where none is asked for.
TARGETS = {"gpu": 256, "cpu": 2048}
METHODS = ("auto", "gps", "rcm", "sloan", "hilbert", "none")
PARTITIONERS = ("blocks", "contiguous", "metis")

ORDERING = ("reorder", "split")
CUTTING = ("reorder", "plan", "split")
EVERY = ("reorder", "plan", "sweep", "split")


@dataclass(frozen=True)
class OptionRow:
    """What the table says of an option besides its name, type and default.

    ``flag`` begins with ``--no-`` where the option is true without it. ``commands`` take it.
    ``in_loops``: a table ``[loop.NAME]`` may set it for its loop. ``of_partitioner``: the value
    goes to the partitioner, which checks it. ``least`` is the smallest number allowed.
    """

    flag: str
    help: str
    commands: tuple[str, ...]
    in_loops: bool = False
    of_partitioner: bool = False
    choices: tuple[str, ...] = ()
    least: float | None = None


def _option(default: Any, flag: str, help: str, commands: tuple[str, ...], **more: Any) -> Any:
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
    partition : str or None
        A name in ``partition.PARTITIONERS``; None takes the target's: ``blocks`` for the GPU,
        ``contiguous`` for the CPU and where the loop's set has its order already. Named for a loop
        over such a set, or for a mesh that keeps its order, it gives blocks that list their
        elements.
    partition_options : mapping
        Options of the partitioner, by name; the next two go before them.
    effort : str or None
        How long to search: ``"fast"``, ``"default"``, ``"strong"``, or a multiple of the default.
    staged_bytes : int or None
        The most bytes that a block may stage.
    block_size : int or None
        The largest number of elements in a block; a loop's own wins. None takes the target's: 256
        for the GPU, 2,048 for the CPU.
    target : str
        ``"gpu"``: compact blocks, and points grouped by the blocks that use them, for a GPU and for
        the runtime on cores; ``"cpu"``: one banded order for an unchanged solver that streams
        through its loops, cut where it stands.
    sort_by_colour : bool
        Sort the elements of each block by thread colour (leading loops, and blocks that list their
        elements).
    own_blocks : bool
        Blocks of its own, as lists of elements, for a loop whose set has its order already, where
        they load at least 1 % less than runs of that order.
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
        "gps",
        "--method",
        f"Locality order: {', '.join(METHODS[1:])}; auto: the best of all.",
        ORDERING,
        choices=METHODS,
    )
    order_time: float = _option(
        10.0,
        "--order-time",
        "Seconds after which --method auto starts no further method.",
        ORDERING,
        least=0,
    )
    partition: str | None = _option(
        None,
        "--partition",
        f"How loops are cut into blocks: {', '.join(PARTITIONERS)}; default: blocks for the GPU, "
        "contiguous for the CPU.",
        CUTTING,
        in_loops=True,
        choices=PARTITIONERS,
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
    effort: str | None = _option(
        None,
        "--effort",
        "How long to search for blocks: fast, default, strong, or a factor such as 2.5.",
        CUTTING,
        in_loops=True,
        of_partitioner=True,
    )
    staged_bytes: int | None = _option(
        None,
        "--staged-bytes",
        "The most bytes a block may stage; default: any.",
        ("reorder", "plan"),
        of_partitioner=True,
    )
    block_size: int | None = _option(
        None,
        "--block-size",
        "The most elements a block may have; default: 256 for the GPU, 2048 for the CPU.",
        CUTTING,
        in_loops=True,
        least=1,
    )
    target: str = _option(
        "gpu",
        "--target",
        "gpu: compact blocks, for a GPU and meshprep's runtime on cores; cpu: a banded order, for "
        "an unchanged solver that streams through it.",
        EVERY,
        in_loops=True,
        choices=tuple(TARGETS),
    )
    sort_by_colour: bool = _option(
        False,
        "--sort-by-colour",
        "Sort the elements of each block by thread colour.",
        ("reorder", "plan"),
    )
    own_blocks: bool = _option(
        False,
        "--own-blocks",
        "For sets whose order is fixed: blocks that list their elements, if these load less.",
        ("reorder", "plan", "sweep"),
        in_loops=True,
    )
    coordinates: bool = _option(
        False,
        "--coordinates",
        "Write the nodes' coordinates into the plan, for solvers that read no mesh.",
        ("reorder", "plan"),
    )
    seed: int = _option(
        0, "--seed", "Seed of what is random; the same seed gives the same plan.", EVERY
    )
    proof: bool = _option(
        True, "--no-proof", "Do not prove plans and parts before they are saved.", (*EVERY, "tune")
    )

    def __post_init__(self) -> None:
        if not isinstance(self.partition_options, Mapping):
            raise MeshprepError(f"partition_options is {self.partition_options!r}, must be a dict")
        for one in _FIELDS:
            name, row = one.name, one.metadata["row"]
            value, kinds = getattr(self, name), get_args(one.type) or (one.type,)
            if value is None and NoneType in kinds:
                continue
            if row.choices:
                check_choice("partitioner" if name == "partition" else name, value, row.choices)
            if bool in kinds and not isinstance(value, bool):
                raise MeshprepError(f"{name} is {value!r}, must be True or False")
            if int in kinds:
                check_integer(name, value, row.least or 0)
            elif float in kinds:
                check_number(name, value, row.least or 0)

    @property
    def block_elements(self) -> int:
        """The largest number of elements in a block: as asked, or the target's."""
        return TARGETS[self.target] if self.block_size is None else self.block_size

    @property
    def partitioner(self) -> str:
        """How a loop that leads is cut: as asked, or the target's."""
        return self.partition or {"gpu": "blocks", "cpu": "contiguous"}[self.target]

    @property
    def given_to_partitioner(self) -> dict[str, Any]:
        """``partition_options``, and over them what has an option of its own."""
        given = dict(self.partition_options)
        for name, row in table():
            if row.of_partitioner and getattr(self, name) is not None:
                given[name] = getattr(self, name)
        return given

    def effective(self) -> dict[str, Any]:
        """Every option with the value that is used.

        Returns
        -------
        dict
            JSON values.
        """
        values = asdict(self) | {"block_size": self.block_elements}
        values["partition_options"] = self.given_to_partitioner
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
    for one in _FIELDS:
        row: OptionRow = one.metadata["row"]
        if command is None or command in row.commands:
            yield one.name, row


def loop_options() -> dict[str, type]:
    """The options that a table ``[loop.NAME]`` may set, with their types."""
    hints = get_type_hints(Options)
    own = {name: hints[name] for name, row in table() if row.in_loops}
    return {name: next(iter(get_args(hint)), hint) for name, hint in own.items()}


_FIELDS: tuple[Field[Any], ...] = fields(Options)
