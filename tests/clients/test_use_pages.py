"""The pages of ``docs/use``, run with the libraries that they are about.

Each has a driver ``page_NAME.py`` in ``drivers/`` that runs the blocks of the page as they stand,
and looks at what they leave, in the environment that ``make clients`` makes. The notebook of
PyVista has a driver, too.
"""

import os
from pathlib import Path

import pytest
from client_programs import PACKAGES
from test_clients import IN_CI, run_driver

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
# A page's driver, and the entry of its library in ``client_programs.py``.
PAGES = {
    "notebook_pyvista": "pyvista",
    "page_anuga": "anuga",
    "page_jax": "jax",
    "page_pyfr": "pyfr",
    "page_pyg": "torch",
    "page_pyvista": "pyvista",
    "page_torch": "torch",
    "page_torch_fem": "torch",
    "page_warp": "warp",
}


@pytest.mark.parametrize("driver", PAGES)
def test_the_blocks_of_a_page_run_with_its_library(driver, tmp_path, monkeypatch):
    library = PAGES[driver]
    if library not in PACKAGES and IN_CI in os.environ:
        pytest.skip(f"{library} takes gigabytes: make clients LARGE=1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "runtime")]))
    run_driver(driver)
