"""What plans hold besides loops: each section in a module that only plans with it load."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .file.tree import Tree
    from .model import PlanContent

# By field of the plan, which is also the group of the file.
SECTIONS = {"matrices": "plan.matrix_section", "chains": "plan.chains.section"}


class PlanSection(Protocol):
    """What such a module defines."""

    def put(self, tree: "Tree", plan: "PlanContent") -> None:
        """Add the groups and datasets; raises PlanError for names that a file cannot hold."""

    def get(self, tree: "Tree") -> Mapping[str, Any]:
        """The entries by name; raises PlanError where something is missing or misshapen."""

    def check(self, plan: "PlanContent") -> None:
        """Raise PlanError unless all arrays fit and all indices are inside."""

    def prove(self, plan: "PlanContent") -> list[str]:
        """What is wrong with entries that passed :meth:`check`, one line each."""


def section(name: str) -> PlanSection:
    """The module of a section."""
    module: Any = import_module(f"..{SECTIONS[name]}", __package__)
    return module  # type: ignore[no-any-return]


def sections_of(plan: "PlanContent") -> Iterator[PlanSection]:
    """The modules of the sections that a plan has."""
    return (section(name) for name in SECTIONS if getattr(plan, name))
