"""Draw docs/explanation/packages.svg: the packages of the program and their imports, from tests/unit/test_imports.py.

    python tests/helpers/packages_picture.py      # from the repository root, after a change of the table

A package is one layer above the highest package that it may import. An arrow is left out if there is a path through a
third package; `errors`, which all packages may import, has none.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Set
from html import escape
from pathlib import Path

WIDTH, BOX, HEIGHT, LAYER = 860, 108, 34, 92  # of the picture; width and height of a package; distance of two layers
SWEEPS = 12  # over the layers, to bring packages near those that they are joined to
STYLE = """\
<style>
  .package { fill: #f4f1ea; stroke: #5b5347; }
  .core { fill: #e3edf3; }
  .outside { fill: #ffffff; stroke-dasharray: 4 3; }
  .arrow { stroke: #8a8175; stroke-width: 1.2; fill: none; marker-end: url(#head); }
  text { font: 14px sans-serif; text-anchor: middle; fill: #222222; }
</style>
<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
  <path d="M0 0 L8 4 L0 8 z" fill="#8a8175"/>
</marker>"""


def assign_layers(packages: Mapping[str, Set[str]]) -> dict[str, int]:
    """The layer of each package, from 0: one above the highest that it may import."""
    found: dict[str, int] = {}

    def layer(package: str) -> int:
        if package not in found:
            found[package] = 1 + max((layer(other) for other in packages.get(package, ())), default=-1)
        return found[package]

    for package in sorted(packages):
        layer(package)
    return found


def arrows(packages: Mapping[str, Set[str]]) -> list[tuple[str, str]]:
    """(package, what it imports) without those that follow from two others."""
    below = {package: set(others) - {"errors"} for package, others in packages.items()}
    out = []
    for package, others in below.items():
        reached = {far for near in others for far in _all_below(near, below)}
        out += [(package, other) for other in sorted(others - reached)]
    return sorted(out)


def _all_below(package: str, below: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(below.get(package, ()))
    while waiting:
        other = waiting.pop()
        if other not in found:
            found.add(other)
            waiting += below.get(other, ())
    return found


def places(layer: Mapping[str, int], drawn: list[tuple[str, str]]) -> dict[tuple[str, ...], tuple[float, float]]:
    """Pixels of each package, (name,), and of each arrow where it crosses a layer, (package, other, layer).

    Packages of a layer are ordered by what they are joined to, above and below in turn.
    """
    ways = [_way(one, other, layer) for one, other in drawn]
    layers: list[list[tuple[str, ...]]] = [[] for _ in range(1 + max(layer.values()))]
    for node in sorted({(package,) for package in layer} | {node for way in ways for node in way}):
        layers[layer[node[0]] if len(node) == 1 else int(node[2])].append(node)
    pairs = [pair for way in ways for pair in zip(way, way[1:])]
    x = {node: at for row in layers for node, at in _spread(row).items()}
    for sweep in range(SWEEPS):
        for row in layers if sweep % 2 else layers[::-1]:
            beside = {node: [x[b if a == node else a] for a, b in pairs if node in (a, b)] for node in row}
            row.sort(key=lambda node: (sum(beside[node]) / max(1, len(beside[node])), node))
            x |= _spread(row)
    height = {node: (len(layers) - 1 - i) * LAYER + HEIGHT for i, row in enumerate(layers) for node in row}
    return {node: (x[node], height[node]) for node in x}


def _way(one: str, other: str, layer: Mapping[str, int]) -> list[tuple[str, ...]]:
    between = range(layer[one] - 1, layer[other], -1)
    return [(one,), *((one, other, str(level)) for level in between), (other,)]


def _spread(row: list[tuple[str, ...]]) -> dict[tuple[str, ...], float]:
    """A layer from left to right; an arrow that crosses it takes a third of a package's width."""
    width = [1.0 if len(node) == 1 else 1 / 3 for node in row]
    unit, left, out = WIDTH / max(3.0, sum(width)), 0.0, {}
    left = (WIDTH - unit * sum(width)) / 2
    for node, b in zip(row, width):
        out[node] = round(left + unit * b / 2, 1)
        left += unit * b
    return out


def picture(packages: Mapping[str, Set[str]], core: tuple[str, ...], outside: tuple[str, ...] = ("pedigree",)) -> str:
    """The SVG as text. core: packages of the solver core, in a colour; outside: packages beside mmgibbs, dashed."""
    names = {name for others in packages.values() for name in others} | set(packages)
    packages = {name: packages.get(name, set()) for name in names - {"errors"}}
    layer, drawn = assign_layers(packages), arrows(packages)
    at = places(layer, drawn)
    height = int(max(y for _, y in at.values())) + HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        STYLE,
    ]
    for one, other in drawn:
        lines.append(f'<path class="arrow" d="{_curve([at[node] for node in _way(one, other, layer)])}"/>')
    for package in sorted(packages):
        x, y = at[package,]
        kind = "package core" if package in core else "package outside" if package in outside else "package"
        lines.append(
            f'<rect class="{kind}" x="{x - BOX / 2:g}" y="{y - HEIGHT / 2:g}" width="{BOX}" height="{HEIGHT}" rx="5"/>'
        )
        lines.append(f'<text x="{x:g}" y="{y + 5:g}">{escape(package)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _curve(way: list[tuple[float, float]]) -> str:
    """From the lower edge of the first package to the upper edge of the last, vertical where it crosses a layer."""
    stops = [(x, y + HEIGHT / 2, y - HEIGHT / 2) for x, y in way]
    out = f"M{stops[0][0]:g} {stops[0][1]:g}"
    for i, (x, low, high) in enumerate(stops[1:], 1):
        before, start = stops[i - 1][0], stops[i - 1][1]
        bend = (high - start) / 2
        out += f" C{before:g} {start + bend:g} {x:g} {high - bend:g} {x:g} {high:g}"
        out += "" if i == len(stops) - 1 else f" L{x:g} {low:g}"
    return out


def main() -> None:
    root = Path(__file__).resolve().parents[2]
    sys.path.insert(0, str(root / "tests"))
    from unit.test_imports import CORE, PACKAGES

    (root / "docs" / "explanation" / "packages.svg").write_text(picture(PACKAGES, CORE), encoding="utf-8")


if __name__ == "__main__":
    main()
