"""Make the pictures of docs/gallery.md by its commands: python .ci/pictures.py."""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from pages import blocks

with tempfile.TemporaryDirectory() as folder:
    for commands in blocks("gallery.md", "sh"):
        subprocess.run(["sh", "-euc", commands], cwd=folder, check=True)
    for picture in Path(folder).glob("*.png"):
        (ROOT / "docs" / "gallery" / picture.name).write_bytes(picture.read_bytes())
