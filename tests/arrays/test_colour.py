"""Colours of arrays, beside a look at every pair."""

import networkx
import numpy as np
import pytest
from given_arrays import forms_of_graph, graphs, ragged, rows_of, tables
from hypothesis import given as on
from hypothesis import strategies as st

import meshprep
from meshprep import MeshprepError


def wrong_pairs(rows, colour):
    """Pairs of elements of one colour that share a point."""
    return [
        (i, j)
        for i, one in enumerate(rows)
        for j in range(i + 1, len(rows))
        if colour[i] == colour[j] and one & rows[j]
    ]


@on(st.one_of(tables(), ragged()))
def test_no_two_elements_of_a_colour_share_a_point(elements_and_size):
    elements, n_points = elements_and_size
    if isinstance(elements, tuple) and elements[0].size == elements[1].size:
        return
    colour = meshprep.colour(elements, n_points=n_points)
    rows = rows_of(elements)
    assert wrong_pairs(rows, colour) == []
    assert sorted(set(colour.tolist())) == list(range(colour.max() + 1))
    meshprep.check_colours(elements, colour, n_points=n_points)


@on(graphs())
def test_neighbours_in_a_graph_have_different_colours(graph):
    for how in forms_of_graph(graph).values():
        how = {"elements" if k == "given" else k: v for k, v in how.items()}
        colour = meshprep.colour(**how)
        assert all(colour[a] != colour[b] for a, b in graph.edges() if a != b)
        assert len(colour) == len(graph)


@on(tables(), st.integers(1, 5), st.integers(0, 9))
def test_blocks_and_threads(table_and_size, n_blocks, seed):
    table, n_points = table_and_size
    n_blocks = min(n_blocks, len(table))
    block = np.random.default_rng(seed).integers(0, n_blocks, len(table))
    found = meshprep.colour(table, blocks=block, n_points=n_points)
    rows = rows_of(table)
    for i, one in enumerate(rows):
        for j in range(i):
            if one & rows[j]:
                if block[i] == block[j]:
                    assert found.threads[i] != found.threads[j]
                else:
                    assert found.blocks[block[i]] != found.blocks[block[j]]
    meshprep.check_colours(table, found, blocks=block, n_points=n_points)


@on(st.one_of(tables(), ragged()), st.integers(1, 3), st.integers(0, 99))
def test_the_check_finds_exactly_the_wrong_pairs(elements_and_size, colours, seed):
    elements, n_points = elements_and_size
    if isinstance(elements, tuple) and elements[0].size == elements[1].size:
        return
    rows = rows_of(elements)
    colour = np.random.default_rng(seed).integers(0, colours, len(rows))
    wrong = wrong_pairs(rows, colour)
    if not wrong:
        meshprep.check_colours(elements, colour, n_points=n_points)
        return
    with pytest.raises(MeshprepError, match="share point") as refused:
        meshprep.check_colours(elements, colour, n_points=n_points)
    words = str(refused.value).split()
    assert (int(words[1]), int(words[3])) in wrong


def test_the_check_of_blocks_names_blocks():
    table = [[0, 1], [1, 2], [2, 3], [3, 4]]
    blocks = [0, 0, 1, 1]
    right = meshprep.colour(table, blocks=blocks)
    with pytest.raises(MeshprepError, match="blocks 0 and 1 have colour 0 and share po"):
        meshprep.check_colours(table, right._replace(blocks=[0, 0]), blocks=blocks)
    with pytest.raises(MeshprepError, match="elements 0 and 1 have colour 0 and share"):
        meshprep.check_colours(table, right._replace(threads=[0, 0, 0, 1]), blocks=blocks)
    with pytest.raises(MeshprepError, match="with blocks colours are a pair"):
        meshprep.check_colours(table, right.threads, blocks=blocks)


def test_a_graph_takes_about_as_many_colours_as_networkx():
    graph = networkx.random_geometric_graph(400, 0.08, seed=2)
    theirs = networkx.greedy_color(graph, "smallest_last")
    assert meshprep.colour(graph).max() <= max(theirs.values())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"colour": [0]}, "give a whole number for each element, 2"),
        ({"colour": [0, -1]}, "element 1 has -1: give numbers from 0"),
        ({}, "give the colours, a number for each element"),
        ({"colour": ([0], [0, 1]), "blocks": [0]}, "the number of the block of each of 2"),
        ({"colour": ([0], [0, 1]), "blocks": [0, 7]}, r"blocks are numbered 0\.\.7"),
    ],
)
def test_what_the_check_refuses(arguments, said):
    with pytest.raises(MeshprepError, match=said):
        meshprep.check_colours([[0, 1], [1, 2]], **arguments)
