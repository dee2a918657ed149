"""Every benchmark that a page names is a target of the Makefile, and every target has its file."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_pages_name_targets_that_exist():
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    (line,) = re.findall(r"^BENCHES := (.*)$", made, re.M)
    targets = {*line.split(), *re.findall(r"^bench-(\w+):", made, re.M)}
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    named = {*re.findall(r"make bench-([a-z_]+)", text)}
    assert len(named) > 20
    assert named - targets == set()
    files = {path.stem for path in (ROOT / "benchmarks").glob("bench_*.py")}
    assert [one for one in line.split() if f"bench_{one}" not in files] == []
