"""Coverage of each room from the data of the last `pytest --cov`: `python tests/helpers/coverage_by_room.py`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path


def by_room(files: dict[str, dict]) -> list[tuple[str, int, int]]:
    """(room, lines that can run, lines that ran) from the files of a JSON report."""
    lines, ran = Counter(), Counter()
    for name, found in files.items():
        package, *rest = Path(name).parts
        room = package if package == "pedigree" or len(rest) < 1 else Path(rest[0]).stem
        lines[room] += found["summary"]["num_statements"]
        ran[room] += found["summary"]["covered_lines"]
    return [(room, lines[room], ran[room]) for room in sorted(lines)]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "coverage.json")
        subprocess.run([sys.executable, "-m", "coverage", "json", "-q", "-o", report], check=True)
        rooms = by_room(json.loads(report.read_text(encoding="utf-8"))["files"])
    total = ("all", sum(n for _, n, _ in rooms), sum(n for _, _, n in rooms))
    for room, lines, ran in [*rooms, total]:
        print(f"{room:12} {lines:6} lines  {ran / max(1, lines):7.1%}")


if __name__ == "__main__":
    main()
