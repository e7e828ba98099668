"""docs/explanation/rooms.svg: the rooms of the program and who imports whom, drawn from the table of tests/unit/test_imports.py.

    python tests/helpers/rooms_picture.py      # from the repository root, after a change of the table

A room stands one floor above the highest room that it may import. An arrow is left out where the way over a third room
says the same; `errors`, which is open to all, has none.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Set
from html import escape
from pathlib import Path

WIDTH, BOX, HEIGHT, FLOOR = 860, 108, 34, 92  # of the picture; width and height of a room; distance of two floors
SWEEPS = 12  # over the floors, to bring rooms near those that they are joined to
STYLE = """\
<style>
  .room { fill: #f4f1ea; stroke: #5b5347; }
  .core { fill: #e3edf3; }
  .outside { fill: #ffffff; stroke-dasharray: 4 3; }
  .arrow { stroke: #8a8175; stroke-width: 1.2; fill: none; marker-end: url(#head); }
  text { font: 14px sans-serif; text-anchor: middle; fill: #222222; }
</style>
<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
  <path d="M0 0 L8 4 L0 8 z" fill="#8a8175"/>
</marker>"""


def floors(rooms: Mapping[str, Set[str]]) -> dict[str, int]:
    """The floor of each room, from 0: one above the highest that it may import."""
    found: dict[str, int] = {}

    def floor(room: str) -> int:
        if room not in found:
            found[room] = 1 + max((floor(other) for other in rooms.get(room, ())), default=-1)
        return found[room]

    for room in sorted(rooms):
        floor(room)
    return found


def arrows(rooms: Mapping[str, Set[str]]) -> list[tuple[str, str]]:
    """(room, what it imports) without those that follow from two others."""
    below = {room: set(others) - {"errors"} for room, others in rooms.items()}
    out = []
    for room, others in below.items():
        reached = {far for near in others for far in _all_below(near, below)}
        out += [(room, other) for other in sorted(others - reached)]
    return sorted(out)


def _all_below(room: str, below: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(below.get(room, ()))
    while waiting:
        other = waiting.pop()
        if other not in found:
            found.add(other)
            waiting += below.get(other, ())
    return found


def places(floor: Mapping[str, int], drawn: list[tuple[str, str]]) -> dict[tuple[str, ...], tuple[float, float]]:
    """The middle of each room, (name,), and of each arrow where it passes a floor, (room, other, floor), in pixels.

    Rooms of a floor are put in the order of what they are joined to, above and below by turns.
    """
    ways = [_way(one, other, floor) for one, other in drawn]
    shelves: list[list[tuple[str, ...]]] = [[] for _ in range(1 + max(floor.values()))]
    for node in sorted({(room,) for room in floor} | {node for way in ways for node in way}):
        shelves[floor[node[0]] if len(node) == 1 else int(node[2])].append(node)
    pairs = [pair for way in ways for pair in zip(way, way[1:])]
    x = {node: at for shelf in shelves for node, at in _spread(shelf).items()}
    for sweep in range(SWEEPS):
        for shelf in shelves if sweep % 2 else shelves[::-1]:
            beside = {node: [x[b if a == node else a] for a, b in pairs if node in (a, b)] for node in shelf}
            shelf.sort(key=lambda node: (sum(beside[node]) / max(1, len(beside[node])), node))
            x |= _spread(shelf)
    height = {node: (len(shelves) - 1 - i) * FLOOR + HEIGHT for i, shelf in enumerate(shelves) for node in shelf}
    return {node: (x[node], height[node]) for node in x}


def _way(one: str, other: str, floor: Mapping[str, int]) -> list[tuple[str, ...]]:
    between = range(floor[one] - 1, floor[other], -1)
    return [(one,), *((one, other, str(level)) for level in between), (other,)]


def _spread(shelf: list[tuple[str, ...]]) -> dict[tuple[str, ...], float]:
    """A floor from left to right; an arrow that passes takes a third of a room's breadth."""
    breadth = [1.0 if len(node) == 1 else 1 / 3 for node in shelf]
    unit, left, out = WIDTH / max(3.0, sum(breadth)), 0.0, {}
    left = (WIDTH - unit * sum(breadth)) / 2
    for node, b in zip(shelf, breadth):
        out[node] = round(left + unit * b / 2, 1)
        left += unit * b
    return out


def picture(rooms: Mapping[str, Set[str]], core: tuple[str, ...], outside: tuple[str, ...] = ("pedigree",)) -> str:
    """The SVG as text. core: rooms of the solver core, in a colour; outside: packages of their own, dashed."""
    names = {name for others in rooms.values() for name in others} | set(rooms)
    rooms = {name: rooms.get(name, set()) for name in names - {"errors"}}
    floor, drawn = floors(rooms), arrows(rooms)
    at = places(floor, drawn)
    height = int(max(y for _, y in at.values())) + HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        STYLE,
    ]
    for one, other in drawn:
        lines.append(f'<path class="arrow" d="{_curve([at[node] for node in _way(one, other, floor)])}"/>')
    for room in sorted(rooms):
        x, y = at[room,]
        kind = "room core" if room in core else "room outside" if room in outside else "room"
        lines.append(
            f'<rect class="{kind}" x="{x - BOX / 2:g}" y="{y - HEIGHT / 2:g}" width="{BOX}" height="{HEIGHT}" rx="5"/>'
        )
        lines.append(f'<text x="{x:g}" y="{y + 5:g}">{escape(room)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _curve(way: list[tuple[float, float]]) -> str:
    """From the lower edge of the first room to the upper edge of the last, upright where it passes a floor."""
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
    from unit.test_imports import CORE, ROOMS

    (root / "docs" / "explanation" / "rooms.svg").write_text(picture(ROOMS, CORE), encoding="utf-8")


if __name__ == "__main__":
    main()
