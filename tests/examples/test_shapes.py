"""Blocks that others made: shapes of a grid, and partitioners of other packages."""

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.image import imread

import meshprep
import other_partitioners
import shapes
from meshprep.io.generate import generate
from meshprep.topology import derive


def test_a_brick_is_a_box_of_cells():
    """Against the cells' own indices, which a grid that is not shuffled has in their order."""
    mesh = generate("box", nx=6, ny=4, nz=2, type="hexahedron")
    z, y, x = np.unravel_index(np.arange(48), (2, 4, 6))
    centre = np.column_stack([x, y, z]) + 0.5
    table = mesh.map("cells->nodes").table
    size = np.array([6, 4, 2]) / mesh.coordinates.max(axis=0)
    np.testing.assert_allclose(mesh.coordinates[table].mean(axis=1) * size, centre)
    found = shapes.blocks_of_shape(centre, (3, 2, 2), layers=1)
    expected = x // 3 * 2 + y // 2
    assert found.tolist() == expected.tolist()


def test_the_table_shows_what_the_files_hold(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "sys.argv", ["shapes.py", "--cells", "8", "--picture", "shapes.png"]
    )
    shapes.main()
    # As wide as a page, and not one colour.
    pixels = imread("shapes.png")
    assert pixels.shape[:2] == (620, 1200)
    assert np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0).shape[0] > 10
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    shown = {(loop, name): float(reuse) for loop, name, reuse, *_ in rows}
    assert len(shown) == 12
    mesh = derive(meshprep.read("shapes/grid.msh"), list(shapes.SHAPES))
    for loop, of_loop in shapes.SHAPES.items():
        table = mesh.map(loop).table
        for name in of_loop:
            block = np.load(f"shapes/{name}-{loop.partition('->')[0]}.npy")
            loads = sum(np.unique(table[block == one]).size for one in np.unique(block))
            assert shown[loop, name] == pytest.approx(table.size / loads, abs=0.005)


def test_bars_are_the_figures_of_the_plans(tmp_path, monkeypatch):
    """Each bar beside loads counted by hand, and colours of the plan's own arrays."""
    mesh = generate("box", nx=8, ny=8, nz=8, type="hexahedron")
    made = list(shapes.cuts(mesh, tmp_path))
    drawn = []
    bar_of = Axes.bar

    def bar(axes, at, values, **more):
        drawn.append(values)
        return bar_of(axes, at, values, **more)

    monkeypatch.setattr(Axes, "bar", bar)
    shapes.draw(mesh, made, tmp_path / "a.png")
    for number, loop in enumerate(shapes.SHAPES):
        reuse, colours = drawn[2 * number : 2 * number + 2]
        of_loop = [cut for cut in made if cut.loop == loop]
        for bar, colour_bar, cut in zip(reuse, colours, of_loop, strict=True):
            variant = cut.plan[loop].variant()
            table = cut.plan.maps[loop].table
            block = variant.block_of_element()
            loads = sum(np.unique(table[block == b]).size for b in np.unique(block))
            assert bar == pytest.approx(table.size / loads)
            counts = [
                np.unique(variant.thread_colour[block == b]).size for b in np.unique(block)
            ]
            assert colour_bar == pytest.approx(np.mean(counts))


@pytest.mark.parametrize("name", other_partitioners.PARTITIONERS)
def test_blocks_of_another_package_become_a_plan(name):
    package, cut = other_partitioners.PARTITIONERS[name]
    pytest.importorskip(package)
    mesh = generate("delaunay2d", cells=800, seed=1)
    table = mesh.map("cells->nodes").table
    n_blocks = -(-len(table) // 62)
    block = cut(table, n_blocks, 0.03)
    assert np.unique(block).size == n_blocks
    plan = meshprep.plan(
        mesh, ["cells->nodes"], partition=block, repair=True, block_size=64
    )
    assert plan["cells->nodes"].variant().partitioner == "given"
    # Less than half of what elements in random blocks would load.
    after = plan.metrics.loops["cells->nodes"].variants["s64"].after
    shuffled = np.random.default_rng(0).permutation(block)
    slow = sum(np.unique(table[shuffled == one]).size for one in range(n_blocks))
    assert 2 * after.loads < slow
    assert plan.verify() == []


def test_what_is_not_installed_is_left_out(tmp_path, monkeypatch, capsys):
    meshprep.write(generate("delaunay2d", cells=300), tmp_path / "a.msh")
    monkeypatch.setattr("other_partitioners.find_spec", lambda package: None)
    monkeypatch.setattr("sys.argv", ["x", str(tmp_path / "a.msh"), "--block-size", "64"])
    other_partitioners.main()
    out = capsys.readouterr().out
    assert out.count("is not installed") == 3
    assert out.splitlines()[-1].startswith("blocks")
