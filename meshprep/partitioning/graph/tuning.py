"""How long to search, by the name of an effort."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchEffort:
    """Rounds and moves of local searches on one level."""

    rounds: int  # the first is one search from the whole border
    patience: int  # a search ends after so many moves that did not gain
    # Rounds end after so many moves, as a multiple of the vertices at the border.
    moves_per_border_vertex: int


# No searches: caps are kept, and figures are given.
NO_SEARCH = SearchEffort(rounds=0, patience=0, moves_per_border_vertex=0)


@dataclass(frozen=True)
class GraphTuning:
    """Sizes of graphs, numbers of tries, and local searches."""

    # Clusters weigh at most so many times the mean of a level's vertices. Heavier ones
    # follow dense places of the graph, lighter ones give graphs that are easier to balance.
    heaviest_cluster: float
    # The graph is bisected recursively when it has so many vertices, and so many a part.
    bisected_size: int
    bisected_size_per_part: int
    # A bisection starts from several coarsenings of a graph of ``restart_size`` vertices,
    # each down to ``smallest_size`` vertices, where part 1 grows from several vertices.
    restart_size: int
    restarts: int
    smallest_size: int
    tries: int
    bisection: SearchEffort
    parts: SearchEffort
    # Whole runs, of which the best is taken.
    runs: int


PRESETS = {
    "fast": GraphTuning(
        heaviest_cluster=5.0,
        bisected_size=1000,
        bisected_size_per_part=60,
        restart_size=150,
        restarts=1,
        smallest_size=40,
        tries=4,
        bisection=SearchEffort(rounds=2, patience=50, moves_per_border_vertex=0),
        parts=SearchEffort(rounds=2, patience=50, moves_per_border_vertex=0),
        runs=1,
    ),
    "default": GraphTuning(
        heaviest_cluster=5.0,
        bisected_size=1000,
        bisected_size_per_part=80,
        restart_size=150,
        restarts=2,
        smallest_size=40,
        tries=4,
        bisection=SearchEffort(rounds=3, patience=15, moves_per_border_vertex=1),
        parts=SearchEffort(rounds=3, patience=15, moves_per_border_vertex=2),
        runs=1,
    ),
    "strong": GraphTuning(
        heaviest_cluster=5.0,
        bisected_size=10_000,
        bisected_size_per_part=500,
        restart_size=1000,
        restarts=4,
        smallest_size=60,
        tries=8,
        bisection=SearchEffort(rounds=5, patience=60, moves_per_border_vertex=5),
        parts=SearchEffort(rounds=10, patience=60, moves_per_border_vertex=10),
        runs=2,
    ),
}
