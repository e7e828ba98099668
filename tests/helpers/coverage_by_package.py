"""Coverage of each package from the data of the last `pytest --cov`: `python tests/helpers/coverage_by_package.py`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path


def count_by_package(files: dict[str, dict]) -> list[tuple[str, int, int]]:
    """(package, lines that can run, lines that ran) from the files of a JSON report."""
    lines, ran = Counter(), Counter()
    for name, found in files.items():
        top, *rest = Path(name).parts
        package = Path(rest[0]).stem if rest else top
        lines[package] += found["summary"]["num_statements"]
        ran[package] += found["summary"]["covered_lines"]
    return [(package, lines[package], ran[package]) for package in sorted(lines)]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "coverage.json")
        subprocess.run([sys.executable, "-m", "coverage", "json", "-q", "-o", report], check=True)
        packages = count_by_package(json.loads(report.read_text(encoding="utf-8"))["files"])
    total = ("all", sum(n for _, n, _ in packages), sum(n for _, _, n in packages))
    for package, lines, ran in [*packages, total]:
        print(f"{package:12} {lines:6} lines  {ran / max(1, lines):7.1%}")


if __name__ == "__main__":
    main()
