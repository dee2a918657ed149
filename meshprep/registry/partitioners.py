"""The partitioners that ``--partition`` can name."""

from .entries import Registry, RegistryEntry

# How a choice begins that names a file: with blocks, or with the owners of a split.
FILE = "file:"
# What blocks are called that are given as an array.
GIVEN = "given"


def is_given(name: str) -> bool:
    """Whether a name stands for blocks from outside: of a file, or of an array."""
    return name == GIVEN or name.startswith(FILE)


PARTITIONERS = Registry(
    kind="partitioner",
    group="meshprep.partitioners",
    entries=(
        RegistryEntry(
            name="blocks",
            function="meshprep.partitioning.multilevel:blocks",
            help="bisection and annealed moves that count the loads",
            options="meshprep.partitioning.multilevel:OPTIONS",
        ),
        RegistryEntry(
            name="contiguous",
            function="meshprep.partitioning.contiguous:contiguous",
            help="chunks of the current order, as OP2 cuts them",
            paper="S19",
            options="meshprep.partitioning.contiguous:OPTIONS",
        ),
        RegistryEntry(
            name="metis",
            function="meshprep.partitioning.metis:metis",
            help="METIS k-way on the dual graph, then a hard cap",
            paper="S19",
            options="meshprep.partitioning.metis:OPTIONS",
        ),
    ),
)
