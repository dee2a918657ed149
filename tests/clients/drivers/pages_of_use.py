"""What the drivers of pages share: the blocks of a page of ``docs/use``, run as they stand.

These drivers import meshprep beside the library of the page, in the folder of the test.
"""

import importlib.util
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from pages import blocks, code_of_notebook, steps

__all__ = ["blocks", "code_of_notebook", "run", "steps"]


def run(page: str, language: str = "python", scope: dict | None = None) -> dict:
    """The names that the blocks of one language leave; ``scope`` has those that they find.

    They run from a file, as Warp reads the text of its kernels.
    """
    path = Path(f"page_{language}.py").resolve()
    path.write_text("\n".join(blocks(f"use/{page}", language)))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    vars(module).update(scope or {})
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return vars(module)
