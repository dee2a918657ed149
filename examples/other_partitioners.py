"""Blocks by partitioners of others: SCOTCH, KaMinPar and Mt-KaHyPar, from their PyPI packages.

    pip install scotchpy64 kaminpar mtkahypar
    python examples/other_partitioners.py wing.msh --loop cells:nodes --block-size 256

Each cuts the elements of the loop, and meshprep makes a plan of its blocks: brought within the
block size, grouped, coloured and proved. A partitioner whose package is missing is left out.
"""

import argparse
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

import meshprep
from meshprep.topology import derive


def incidence(table: np.ndarray) -> csr_array:
    """Which element reaches which point, (elements, points), with ones."""
    rows = np.repeat(np.arange(len(table)), table.shape[1])
    ones = np.ones(table.size, np.int64)
    return csr_array((ones, (rows, table.ravel())))


def neighbours(table: np.ndarray) -> csr_array:
    """The graph of elements; an edge weighs as many points as the two share."""
    reached = incidence(table)
    shared = csr_array(reached @ reached.T)
    shared.setdiag(0)
    shared.eliminate_zeros()
    return shared


def scotch(table: np.ndarray, n_blocks: int, room: float) -> np.ndarray:
    """SCOTCH: few and light edges between blocks."""
    import scotchpy
    from scotchpy.common import proper_int

    graph = neighbours(table)
    of_scotch = scotchpy.Graph()
    of_scotch.build(
        verttab=graph.indptr.astype(proper_int),
        edgetab=graph.indices.astype(proper_int),
        edlotab=graph.data.astype(proper_int),
    )
    block = np.zeros(len(table), proper_int)
    strategy = scotchpy.Strat()
    strategy.graph_map_build(scotchpy.STRATDEFAULT, n_blocks, room)
    of_scotch.part(n_blocks, strat=strategy, parttab=block)
    return block


def kaminpar(table: np.ndarray, n_blocks: int, room: float) -> np.ndarray:
    """KaMinPar: few and light edges between blocks; it reads a graph of METIS."""
    import kaminpar

    graph = neighbours(table)
    lines = [f"{graph.shape[0]} {graph.nnz // 2} 1"]
    for first, last in zip(graph.indptr[:-1], graph.indptr[1:], strict=True):
        pairs = np.column_stack([graph.indices[first:last] + 1, graph.data[first:last]])
        lines.append(" ".join(map(str, pairs.ravel().tolist())))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "elements.graph"
        file.write_text("\n".join(lines) + "\n", encoding="ascii")
        read = kaminpar.load_graph(str(file), kaminpar.GraphFileFormat.METIS)
    solver = kaminpar.KaMinPar(1, kaminpar.default_context())
    return np.array(solver.compute_partition(read, n_blocks, room))


def mtkahypar(table: np.ndarray, n_blocks: int, room: float) -> np.ndarray:
    """Mt-KaHyPar: a net for the elements at a point, so that it counts the loads."""
    import mtkahypar

    at_point = csr_array(incidence(table).T)
    nets = [net.tolist() for net in np.split(at_point.indices, at_point.indptr[1:-1])]
    nets = [net for net in nets if len(net) > 1]
    begun = mtkahypar.initialize(1)
    context = begun.context_from_preset(mtkahypar.PresetType.DEFAULT)
    context.set_partitioning_parameters(n_blocks, room, mtkahypar.Objective.KM1)
    context.logging = False
    graph = begun.create_hypergraph(context, len(table), len(nets), nets)
    return np.array(graph.partition(context).get_partition())


# By name: the package, and the function.
PARTITIONERS = {
    "SCOTCH": ("scotchpy", scotch),
    "KaMinPar": ("kaminpar", kaminpar),
    "Mt-KaHyPar": ("mtkahypar", mtkahypar),
}
# Blocks of 0.97 of the block size are asked for, and may be larger by this.
ASKED, ROOM = 0.97, 0.03


def main() -> None:
    """Cut by each, and print what the plans come to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("mesh")
    parser.add_argument("--loop", default="cells:nodes")
    parser.add_argument("--block-size", type=int, default=256)
    given = parser.parse_args()
    loop = given.loop.replace(":", "->")
    mesh = meshprep.read(given.mesh)
    table = derive(mesh, [loop]).map(loop).table
    n_blocks = -(-len(table) // max(1, int(ASKED * given.block_size)))

    ways = {"blocks": "blocks"}
    for name, (package, function) in PARTITIONERS.items():
        if find_spec(package) is None:
            print(f"{name:12}left out: package {package} is not installed")
            continue
        ways[name] = function(table, n_blocks, ROOM)
    print(f"{'':12}{'reuse':>6}{'largest as cut':>16}{'block colours':>15}")
    for name, blocks in ways.items():
        own = isinstance(blocks, str)
        options = {} if own else {"repair": True}
        made = meshprep.reorder(
            mesh, [loop], partition=blocks, block_size=given.block_size, **options
        )
        found = made.plan[loop].variant()
        after = made.plan.metrics.loops[loop].variants[found.name].after
        largest = given.block_size if own else np.bincount(blocks).max()
        print(f"{name:12}{after.reuse:6.2f}{largest:16}{found.n_block_colours:15}")


if __name__ == "__main__":
    main()
