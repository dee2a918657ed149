"""Make the pictures of docs/gallery.md and docs/which-order.md by the commands on them.

PYTHONPATH=tests python .ci/pictures.py
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from pages import blocks

ROOT = Path(__file__).parents[1]

with tempfile.TemporaryDirectory() as folder:
    for commands in blocks("gallery.md", "sh"):
        subprocess.run(["sh", "-euc", commands], cwd=folder, check=True)
    for code in blocks("which-order.md", "python"):
        subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    for picture in Path(folder).glob("*.png"):
        (ROOT / "docs" / "gallery" / picture.name).write_bytes(picture.read_bytes())
