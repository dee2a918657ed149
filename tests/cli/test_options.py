"""The one table of options: what Python, the commands and loops.toml make of it."""

from dataclasses import fields
from pathlib import Path

import pytest

from meshprep import Options, read_requests
from meshprep.loops.options import METHODS, PARTITIONERS, loop_options, table
from meshprep.partition import PARTITIONERS as REGISTRY
from meshprep.reorder import METHOD_NAMES
from meshprep_cli.commands import commands
from meshprep_cli.groups import with_options, words
from meshprep_cli.options import InputOptions, LoopChoice
from meshprep_runtime.errors import MeshprepError

COMMANDS = ("reorder", "plan", "sweep", "tune")


def test_every_field_has_a_row():
    assert [name for name, _ in table()] == [one.name for one in fields(Options)]


def test_the_table_names_what_the_registries_hold():
    assert METHOD_NAMES == METHODS
    assert tuple(REGISTRY) == PARTITIONERS


def test_the_page_lists_partitioners_with_their_options():
    page = (Path(__file__).parents[2] / "docs" / "concepts.md").read_text(encoding="utf-8")
    section = page.partition("### Partitioners\n")[2].partition("\n#")[0]
    rows = {row.split("`")[1]: row for row in section.splitlines() if row.startswith("| `")}
    listed = {name: row.rpartition(" | ")[2].split("`")[1::2] for name, row in rows.items()}
    del listed["--partition"]
    assert listed == {name: list(one.options) for name, one in REGISTRY.items()}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_takes_the_rows_that_name_it(cli, command):
    listed = cli(command, "--help")[1].split()
    for name, row in table():
        assert (row.flag in listed) == (command in row.commands), name


def test_every_command_takes_the_options_for_scripts():
    known = {name: {o for p in c.params for o in p.opts} for name, c in commands().commands.items()}
    assert all({"-q", "--quiet"} <= own for own in known.values())
    assert [name for name, own in known.items() if "--json" not in own] == ["loops"]
    writes = [name for name, own in known.items() if {"-o", "--plan", "--html"} & own]
    assert all("--force" in known[name] for name in writes)
    assert {"reorder", "plan", "split", "loops", "report", "sweep", "generate"} <= {*writes}


def test_loops_may_set_the_rows_that_say_so(tmp_path):
    assert loop_options() == {
        "partition": str,
        "effort": str,
        "block_size": int,
        "target": str,
        "own_blocks": bool,
    }
    path = tmp_path / "loops.toml"
    arg = 'args = [{ dat = "q", map = "edges->cells", access = "inc" }]'
    own = 'block_size = 64\npartition = "metis"\neffort = "fast"\ntarget = "cpu"'
    own += "\nown_blocks = true"
    path.write_text(f'[loop.a]\nover = "edges"\n{own}\n{arg}\n')
    (request,) = read_requests(path)
    chosen = Options(seed=3).for_names({k: request.values[k] for k in loop_options()})
    assert (chosen.block_size, chosen.partition, chosen.target, chosen.seed) == (
        64, "metis", "cpu", 3,
    )  # fmt: skip
    assert chosen.given_to_partitioner == {"effort": "fast"}
    assert chosen.own_blocks
    path.write_text(f'[loop.a]\nover = "edges"\nseed = 3\n{arg}\n')
    with pytest.raises(MeshprepError, match="unknown key 'seed': use over, args, partition"):
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

    run.__module__ = "meshprep_cli.commands.reorder"
    import typer

    app = typer.Typer()
    app.command()(with_options(run))
    app(args=list(words(own)), standalone_mode=False)
    expected = {**own.effective(), "partition_options": {"niter": "7", "contiguous": "True"}}
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
