"""The picture of a report in the documentation, taken by a headless Chromium.

python examples/report_picture.py docs/report.png
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from meshprep import Options, prepare
from meshprep.io.generate import generate
from meshprep.reporting.compare import Comparison
from meshprep.reporting.draw import png
from meshprep.reporting.html import html_report
from meshprep.reporting.meshes import NamedMesh

WINDOW = (1200, 1010)


def main(target: str) -> None:
    """Report on a plan for a shuffled mesh around an airfoil, and photograph the page."""
    mesh = generate("airfoil", cells=60_000, shuffle=True)
    plan = prepare(mesh, ["edges->cells"], Options(block_size=256)).plan
    found = Comparison(("airfoil.plan.h5",), (plan,)).timed()
    page = html_report(found, [NamedMesh("airfoil.msh", mesh)])
    with tempfile.TemporaryDirectory() as folder:
        source, shot = Path(folder, "report.html"), Path(folder, "report.png")
        source.write_text(page, encoding="utf-8")
        _photograph(source, shot, Path(folder, "home"))
        seen = np.asarray(Image.open(shot).convert("RGBA"))
    # a fraction of the size of what the browser writes
    Path(target).write_bytes(png(seen))


def _photograph(source: Path, shot: Path, home: Path) -> None:
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        sys.exit("Chromium is missing: install the package chromium")
    words = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    words += [f"--user-data-dir={home}", f"--window-size={WINDOW[0]},{WINDOW[1]}"]
    words += [f"--screenshot={shot}", source.as_uri()]
    subprocess.run(words, check=True, capture_output=True)


if __name__ == "__main__":
    main(sys.argv[1])
