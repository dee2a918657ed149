"""The one table of options: what Python, the commands and loops.toml make of it."""

from dataclasses import fields
from pathlib import Path

import pytest

from meshprep import Options, read_requests
from meshprep.loops.options import TARGETS, loop_options, table
from meshprep.ordering import METHODS
from meshprep.partitioning import PARTITIONERS
from meshprep.registry.orders import ORDERS
from meshprep.staging.blocks import check_partitioner
from meshprep_cli.commands import commands
from meshprep_cli.groups import with_options, words
from meshprep_cli.options import InputOptions, LoopChoice
from meshprep_runtime.errors import MeshprepError

COMMANDS = ("reorder", "plan", "sweep", "tune")


def test_every_field_has_a_row():
    assert [name for name, _ in table()] == [one.name for one in fields(Options)]


def test_the_page_lists_orders_with_their_papers():
    page = (Path(__file__).parents[2] / "docs" / "concepts.md").read_text(encoding="utf-8")
    section = page.partition("`--method` chooses the order:\n")[2].partition("\n### ")[0]
    rows = {row.split("`")[1]: row for row in section.splitlines() if row.startswith("- `")}
    assert rows.keys() == {*ORDERS.built_in, *ORDERS.also}
    for entry in ORDERS.entries:
        assert entry.paper in rows[entry.name]
        assert ("needs coordinates" in rows[entry.name]) == entry.needs_coordinates


def test_every_order_and_partitioner_can_be_chosen_and_is_in_the_help(cli):
    shown = cli("reorder", "--help")[1]
    for name in METHODS:
        assert Options(method=name).method == name
        assert name in shown
    for name in PARTITIONERS:
        assert Options(partition=name).partition == name
        assert name in shown


def test_the_page_lists_partitioners_with_their_options():
    page = (Path(__file__).parents[2] / "docs" / "concepts.md").read_text(encoding="utf-8")
    section = page.partition("### Partitioners\n")[2].partition("\n#")[0]
    rows = {row.split("`")[1]: row for row in section.splitlines() if row.startswith("| `")}
    listed = {name: row.rpartition(" | ")[2].split("`")[1::2] for name, row in rows.items()}
    del listed["--partition"]
    assert listed == {name: list(one.options) for name, one in PARTITIONERS.items()}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_takes_the_rows_that_name_it(cli, command):
    listed = cli(command, "--help")[1].split()
    for name, row in table():
        assert (row.flag in listed) == (command in row.commands), name


def test_every_command_takes_the_options_for_scripts():
    known = {
        name: {o for p in c.params for o in p.opts}
        for name, c in commands().commands.items()
    }
    assert all({"-q", "--quiet"} <= own for own in known.values())
    assert [name for name, own in known.items() if "--json" not in own] == ["loops"]
    writes = [name for name, own in known.items() if {"-o", "--plan", "--html"} & own]
    assert all("--force" in known[name] for name in writes)
    assert {"reorder", "plan", "split", "loops", "report", "sweep", "generate"} <= {*writes}


def test_quiet_may_stand_before_the_command(cli, tmp_path):
    mesh = tmp_path / "m.msh"
    code, _, said = cli("-q", "generate", "delaunay2d", "--cells", "20", "-o", mesh)
    assert (code, said) == (0, "")
    assert mesh.exists()


# A value of each option other than its default, and those that name a partitioner.
OTHERS = {
    "method": "rcm",
    "order_time": 1.0,
    "repair": True,
    "effort": "fast",
    "staged_bytes": 9000,
    "block_size": 64,
    "sort_by_colour": True,
    "own_blocks": True,
    "coordinates": True,
    "seed": 1,
    "proof": False,
}


def test_no_option_is_refused_by_the_default_of_another():
    named = {"partition", "partition_options", "target"}
    assert {name for name, _ in table()} == OTHERS.keys() | named
    for target in TARGETS:
        for one, value in OTHERS.items():
            for two, other in OTHERS.items():
                check_partitioner(Options(target=target, **({one: value} | {two: other})))


def test_effort_has_no_meaning_for_runs_but_for_a_partitioner_that_is_named(cli, mesh_file):
    assert cli("reorder", mesh_file, "--target", "cpu", "--effort", "fast", "-q")[0] == 0
    assert Options(target="cpu", effort="fast").given_to_partitioner == {}
    named = Options(target="cpu", partition="blocks", effort="fast")
    assert named.given_to_partitioner == {"effort": "fast"}
    with pytest.raises(MeshprepError, match="'contiguous' has no option 'effort'"):
        check_partitioner(Options(partition="contiguous", effort="fast"))


def test_loops_may_set_the_rows_that_say_so(tmp_path):
    assert loop_options() == {
        "partition": str,
        "repair": bool,
        "effort": str,
        "block_size": int,
        "target": str,
        "own_blocks": bool,
    }
    path = tmp_path / "loops.toml"
    arg = 'args = [{ dat = "q", map = "edges->cells", access = "inc" }]'
    own = 'block_size = 64\npartition = "metis"\neffort = "fast"\ntarget = "cpu"'
    own += "\nown_blocks = true\nrepair = true"
    path.write_text(f'[loop.a]\nover = "edges"\n{own}\n{arg}\n')
    (request,) = read_requests(path)
    chosen = Options(seed=3).for_names({k: request.values[k] for k in loop_options()})
    assert (chosen.block_size, chosen.partition, chosen.target, chosen.seed) == (
        64, "metis", "cpu", 3,
    )  # fmt: skip
    assert chosen.given_to_partitioner == {"effort": "fast"}
    assert chosen.own_blocks
    assert chosen.repair
    path.write_text(f'[loop.a]\nover = "edges"\nseed = 3\n{arg}\n')
    with pytest.raises(
        MeshprepError, match="unknown key 'seed': use over, args, partition"
    ):
        read_requests(path)


def test_words_give_the_options_again():
    own = Options(
        method="rcm",
        partition="metis",
        partition_options={"niter": 7, "contiguous": True},
        effort="strong",
        block_size=64,
        target="cpu",
        sort_by_colour=True,
        seed=5,
        proof=False,
    )
    seen = []

    def run(chosen: Options) -> None:
        seen.append(chosen)

    import typer

    app = typer.Typer()
    app.command()(with_options("reorder", run))
    app(args=list(words(own)), standalone_mode=False)
    expected = {
        **own.effective(),
        "partition_options": {"niter": "7", "contiguous": "True"},
    }
    expected["partition_options"]["effort"] = "strong"
    assert seen[0].effective() == expected
    assert list(words(Options())) == []
    assert list(words(Options(), ["method"])) == ["--method", "gps"]


def test_what_an_option_cannot_be():
    for given, said in (
        ({"method": "gauss"}, "method 'gauss' is unknown: use auto, gps"),
        ({"partition": "scotch"}, "partitioner 'scotch' is unknown: use blocks"),
        ({"target": "tpu"}, "target 'tpu' is unknown: use gpu, cpu"),
        ({"block_size": 0}, "block_size is 0, must be a whole number from 1"),
        ({"block_size": 256.0}, "block_size is 256.0, must be a whole number from 1"),
        (
            {"block_size": 10**20},
            r"block_size is 1000.*, must be a whole number within 1\.\.2147483647",
        ),
        ({"seed": True}, "seed is True, must be a whole number from 0"),
        ({"seed": None}, "seed is None, must be a whole number from 0"),
        ({"staged_bytes": 1e4}, "staged_bytes is 10000.0, must be a whole number from 0"),
        ({"order_time": -1}, "order_time is -1, must be a number from 0"),
        ({"order_time": float("nan")}, "order_time is nan, must be a number from 0"),
        ({"method": None}, "method 'None' is unknown: use auto"),
        ({"own_blocks": "no"}, "own_blocks is 'no', must be True or False"),
        ({"proof": 0}, "proof is 0, must be True or False"),
        ({"partition_options": None}, "partition_options is None, must be a dict"),
    ):
        with pytest.raises(MeshprepError, match=said):
            Options(**given)


def test_words_of_groups_of_the_command_line():
    loops = LoopChoice(loop=["edges->cells", "cells->nodes"], loops=Path("a.toml"))
    assert list(words(loops)) == [
        *("--loop", "edges->cells", "--loop", "cells->nodes"),
        *("--loops", "a.toml"),
    ]
    assert list(words(InputOptions(dimension=2))) == ["--dimension", "2"]
