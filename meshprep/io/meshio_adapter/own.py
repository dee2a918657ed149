"""meshio as a package of our own: what :mod:`.harden` replaces in it no other user of meshio sees.

Its modules import each other by relative names, so that a second copy under another name has
modules of its own; it takes 50 ms to import, no more than once.
"""

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from types import ModuleType
from typing import TYPE_CHECKING

__all__ = ["NAME", "meshio"]

NAME = f"{__package__}._meshio"


def _copy() -> ModuleType:
    theirs = find_spec("meshio")
    if theirs is None or theirs.origin is None:
        raise ModuleNotFoundError("No module named 'meshio'", name="meshio")
    places = list(theirs.submodule_search_locations or ())
    spec = spec_from_file_location(NAME, theirs.origin, submodule_search_locations=places)
    assert spec is not None
    assert spec.loader is not None
    made = sys.modules[NAME] = module_from_spec(spec)
    try:
        spec.loader.exec_module(made)
    except BaseException:
        del sys.modules[NAME]
        raise
    return made


if TYPE_CHECKING:
    import meshio
else:
    meshio = _copy()
