"""Pages of docs/reference that are made from the sources and kept in git; tests/unit/test_site.py compares them.

    python docs/site/make_pages.py

Run it after a change of a key, a message or a measured figure.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[2])]

import hooks  # noqa: E402
import messages  # noqa: E402

SIZES = hooks.ROOT / "benchmarks" / "sizes.csv"
FIGURES = hooks.ROOT / "benchmarks" / "RESULTS.md"
QUOTED = (  # sections of RESULTS.md
    "A sweep of a mixed model",
    "BLUP, REML, validation",
    "SNP effects and genomic relationships",
    "Regressions",
    "A small run: time and memory",
)
_SIZES = """\
# Memory and time by size

`mmgibbs check analysis.yaml` prints the memory that your own analysis needs.
A run that would not fit is refused before it starts.
The tables show what to expect before you have data.

## By the number of animals

The data are those of `mmgibbs simulate DIR --animals N --seed 1`.
`python benchmarks/sizes.py` made the table on {date}, on a busy machine of two cores.
One trait is birth weight with a direct genetic effect.
Three traits are all weights, with direct and maternal genetic effects and a maternal environment.

- *Equations, MB* is the memory of the equations alone.
- *Gibbs, MB* is what `mmgibbs check` expects of four chains with their processes, without the libraries of the first.
- *BLUP, MB* is the most memory of a run with known variances, libraries included.
- *BLUP, s* is its time of the processor from files to solutions, with compiled kernels.

BLUP includes prediction error variances up to `sampler.pev_limit`, by default those that take minutes at most.
Their factor is why three traits of 100,000 animals take more memory than those of a million, which have none.

| animals | traits | records | equations | equations, MB | Gibbs, MB | BLUP, MB | BLUP, s |
|---|---|---|---|---|---|---|---|
"""
_FIGURES = """
Libraries and their imports are most of a small run; what is above them grows with the number of equations.

The tables below are measured figures.
[RESULTS.md](../../benchmarks/RESULTS.md) has all of them, and names the machines.
Multiply milliseconds a sweep by the number of sweeps to get the time of a chain.
"""


def pages() -> dict[str, Callable[[], str]]:
    """Path below docs/ -> what makes the page."""
    return {
        "reference/analysis-file.md": hooks.keys,
        "reference/messages.md": messages.messages,
        "reference/sizes.md": sizes,
    }


def sizes() -> str:
    """Memory and time: the table of benchmarks/sizes.py, and sections of the measured figures."""
    with open(SIZES, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    lines = [_SIZES.format(date=max(row.pop("date") for row in rows)).rstrip()]
    lines += ["| " + " | ".join(_number(value) for value in row.values()) + " |" for row in rows]
    lines += [_FIGURES, *_quote_figures()]
    return "\n".join(lines).rstrip() + "\n"


def _number(text: str) -> str:
    return f"{int(text):,}" if text.isdigit() else f"{float(text):,}"


def _quote_figures() -> Iterator[str]:
    sections = FIGURES.read_text(encoding="utf-8").split("\n## ")
    for title in QUOTED:
        (section,) = (text for text in sections if text.startswith(f"{title}\n"))
        yield f"## {section.split(chr(10) + '### ')[0].rstrip()}\n".replace("](../docs/", "](../")


def main() -> None:
    for path, make in pages().items():
        (hooks.ROOT / "docs" / path).write_text(make(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
