"""Names of orders and partitioners: who may add which, and what is read when."""

import importlib.metadata

import pytest

from meshprep import Options
from meshprep.ordering import METHODS
from meshprep.registry.entries import Registry, import_from
from meshprep.registry.orders import ORDERS, tried_by_auto
from meshprep.registry.partitioners import PARTITIONERS
from meshprep_runtime import MeshprepError


@pytest.mark.parametrize("entry", [*ORDERS.entries, *PARTITIONERS.entries])
def test_every_entry_names_a_function_and_has_a_line_of_help(entry):
    assert callable(import_from(entry.function))
    assert entry.help
    assert "\n" not in entry.help
    if entry.options:
        for option in import_from(entry.options).values():
            assert option.help


def test_auto_tries_each_order_once_for_each_target():
    assert tried_by_auto("cpu") == ("rcm", "gps", "sloan", "hilbert")
    assert tried_by_auto("gpu") == ("hilbert", "rcm", "gps", "sloan")
    for target in ("cpu", "gpu"):
        turns = [entry.auto_turn[target] for entry in ORDERS.entries if entry.auto_turn]
        assert len(set(turns)) == len(turns)


def test_packages_are_looked_at_only_for_a_name_that_is_unknown(monkeypatch):
    looked = []

    def entry_points(group):
        looked.append(group)
        return []

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    monkeypatch.syspath_prepend("a folder that no other test has on its path")
    for name in ORDERS.built_in:
        Options(method=name)
        assert METHODS[name].description
    Options(method="auto", partition="metis")
    assert looked == []
    with pytest.raises(MeshprepError, match="method 'king' is unknown: use auto, gps, "):
        Options(method="king")
    assert looked == ["meshprep.orders"]


def test_a_name_of_meshprep_cannot_be_taken(install):
    install(
        "my-orders", "taken", "raise SystemExit", "[meshprep.orders]\ngps = taken:GPS\n"
    )
    assert list(METHODS) == list(ORDERS.built_in)
    assert "Gibbs" in METHODS["gps"].description


def test_two_packages_with_one_name_are_refused(install):
    for package in ("first", "second"):
        declared = f"[meshprep.orders]\nmine = {package}:MINE\n"
        install(package, package, "MINE = None", declared)
    assert list(ORDERS) == ["auto", *ORDERS.built_in, "mine"]
    with pytest.raises(MeshprepError, match=r"first.*second.*: uninstall one of them"):
        METHODS["mine"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "mine",
            "import nothing_of_this_name",
            "cannot be loaded from broken:MINE: Module",
        ),
        ("mine", "", "cannot be loaded from broken:MINE: AttributeError"),
        ("mine", "raise SystemExit(2)", "cannot be loaded from broken:MINE: SystemExit: 2"),
        (
            "mine",
            "MINE = 'text'",
            "is a str: its entry point must name a meshprep.ordering.M",
        ),
        ("my/own", "", "the name must be of letters, digits, '-' and '_'"),
    ],
)
def test_what_cannot_be_loaded_is_said_in_one_line(install, name, text, said):
    install("my-orders", "broken", text, f"[meshprep.orders]\n{name} = broken:MINE\n")
    with pytest.raises(MeshprepError, match=said) as refused:
        METHODS[name]
    assert str(refused.value).startswith(f"order '{name}' of package my-orders")
    assert "\n" not in str(refused.value)


def test_a_registry_without_entries_knows_nothing():
    nothing = Registry(kind="order", group="meshprep.test_of_no_group", entries=())
    assert list(nothing) == []
    assert len(nothing) == 0
    assert "gps" not in nothing
