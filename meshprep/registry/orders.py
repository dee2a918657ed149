"""The orders of points that ``--method`` can name."""

from .entries import Registry, RegistryEntry

# The best of all, which is no order of its own.
AUTO = "auto"

ORDERS = Registry(
    kind="order",
    group="meshprep.orders",
    also=(AUTO,),
    entries=(
        RegistryEntry(
            name="gps",
            function="meshprep.ordering.methods:by_gps",
            help="Gibbs-Poole-Stockmeyer: small bandwidth and profile, no coordinates",
            paper="GPS76",
            auto_turn={"cpu": 2, "gpu": 3},
        ),
        RegistryEntry(
            name="rcm",
            function="meshprep.ordering.methods:rcm",
            help="reverse Cuthill-McKee: cheaper than gps, wider, no coordinates",
            paper="George and Liu",
            auto_turn={"cpu": 1, "gpu": 2},
        ),
        RegistryEntry(
            name="sloan",
            function="meshprep.ordering.sloan:sloan",
            help="Sloan: the smallest profile, wide, no coordinates",
            paper="Sloan",
            auto_turn={"cpu": 3, "gpu": 4},
        ),
        RegistryEntry(
            name="hilbert",
            function="meshprep.ordering.curve:along_curve",
            help="along a Hilbert curve through the coordinates",
            needs_coordinates=True,
            auto_turn={"cpu": 4, "gpu": 1},
        ),
        RegistryEntry(
            name="none",
            function="meshprep.ordering.methods:as_in_input",
            help="keep the order of the input",
        ),
    ),
)


def tried_by_auto(target: str) -> tuple[str, ...]:
    """The orders that ``auto`` tries for a target, the likeliest first.

    Time may run out for the last ones. Orders of other packages are not among them, so
    that what is installed changes no plan.
    """
    tried = [entry for entry in ORDERS.entries if target in entry.auto_turn]
    tried.sort(key=lambda entry: entry.auto_turn[target])
    return tuple(entry.name for entry in tried)
