"""Make the pictures of docs/gallery.md by its commands: PYTHONPATH=tests python .ci/pictures.py."""

import subprocess
import tempfile
from pathlib import Path

from pages import blocks

ROOT = Path(__file__).parents[1]

with tempfile.TemporaryDirectory() as folder:
    for commands in blocks("gallery.md", "sh"):
        subprocess.run(["sh", "-euc", commands], cwd=folder, check=True)
    for picture in Path(folder).glob("*.png"):
        (ROOT / "docs" / "gallery" / picture.name).write_bytes(picture.read_bytes())
