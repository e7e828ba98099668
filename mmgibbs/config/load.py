"""Load an analysis file or a dict with overrides, as a complete analysis or one message with all that is wrong."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from mmgibbs.config.analysis import Analysis
from mmgibbs.config.complete import complete
from mmgibbs.config.environments import FindLevels, write_out_environments
from mmgibbs.config.messages import listed_problems
from mmgibbs.config.text import dotted, is_nothing, parse_yaml, plain_tree, read_yaml, show
from mmgibbs.errors import ConfigError, nearest


def load_config(
    source: str | os.PathLike | dict, overrides: Sequence[str] = (), find_levels: FindLevels | None = None
) -> Analysis:
    """Read and check an analysis, without opening its data files.

    Parameters
    ----------
    source : path-like or dict
        Path of a YAML file, or a dict with the same keys. In a dict, `data.phenotypes` and `data.pedigree` may be data
        frames. Paths to data are relative to the YAML file; in a dict, to the working directory.
    overrides : sequence of str, default ()
        Strings such as "sampler.samples=100", with values as in the file. "sampler.samples=null" removes the key.
    find_levels : callable or None, default None
        Reads the levels of a column from the table of records, for traits by environment (see FindLevels). None refuses
        them.

    Returns
    -------
    Analysis
        The complete analysis, with every default filled in.

    Raises
    ------
    ConfigError
        Its text has one line for every problem: file, YAML path, what was found and what is needed.

    Examples
    --------
    >>> import mmgibbs
    >>> analysis = mmgibbs.load_config("configs/first.yaml", ["sampler.samples=2000"])
    >>> analysis.sampler.samples
    2000
    """
    path: Path | None = None
    tree: object
    if isinstance(source, dict):
        where, folder, tree = "analysis", Path.cwd(), plain_tree(source, "analysis")
    elif isinstance(source, (str, os.PathLike)):
        where = os.fspath(source)
        if "\n" in where:
            lines = len(where.strip("\n").split("\n"))
            got = f"a text of {lines} lines" if lines > 1 else f"{where!r}, a text with a line break"
            raise ConfigError(f"analysis: found {got}, needed the path of a YAML file or a dict")
        tree = read_yaml(Path(where))
        path = Path(os.path.abspath(where))
        folder = path.parent
        if tree is None:
            raise ConfigError(f"{where}: is empty, needed an analysis (name, data, traits, model, ...)")
    else:
        raise ConfigError(f"analysis: found {show(source)}, needed the path of a YAML file or a dict")
    changed = _apply(tree, overrides)
    tree, guessed = write_out_environments(tree, folder, find_levels)
    try:
        return complete(Analysis.model_validate(tree), folder, path, guessed)
    except ValidationError as error:
        raise ConfigError(_listed(error, where, changed, tree)) from None


def listed_overrides(overrides: Sequence[str]) -> list[str]:
    """List overrides: a lone text is one of them. ConfigError for what is no list of texts."""
    if isinstance(overrides, str):
        return [overrides]
    if not isinstance(overrides, Sequence) or not all(isinstance(text, str) for text in overrides):
        raise ConfigError(
            f"overrides: found {show(overrides)}, needed a list of 'KEY.PATH=VALUE', such as ['sampler.samples=100']"
        )
    return list(overrides)


def _apply(tree: object, overrides: Sequence[str]) -> dict[tuple[str, ...], str]:
    """Set the values of 'key.path=value' strings in the tree, where null removes the key; path of each -> its text."""
    changed: dict[tuple[str, ...], str] = {}
    if not isinstance(tree, dict):
        return changed  # what is wrong is reported when the tree is read
    for text in listed_overrides(overrides):
        name, equals, written = text.partition("=")
        origin = f"override {show(text)}"
        keys = name.strip().split(".")
        if not equals or "" in keys:
            raise ConfigError(f"{origin}: needed KEY.PATH=VALUE, such as sampler.samples=100")
        if not written.strip():
            raise ConfigError(f"{origin}: found nothing, needed a value; null removes the key from the analysis")
        value = parse_yaml(written, origin)
        mapping: dict = tree
        path: tuple[str, ...] = ()
        while True:
            key, keys = _next_key(mapping, keys)
            path = (*path, key)
            if not keys:
                if is_nothing(value):
                    _remove(mapping, path, origin)
                else:
                    mapping[key] = value
                break
            mapping[key] = inner = _as_mapping(mapping.get(key), path)
            if not isinstance(inner, dict):
                raise ConfigError(f"{origin}: {dotted(path)} is {show(inner)}, which has no keys")
            mapping = inner
        changed[path] = origin
    return changed


def _remove(mapping: dict, path: tuple[str, ...], origin: str) -> None:
    """Remove the last key of the path, so that its default applies."""
    if path[-1] not in mapping:
        section = f" in {dotted(path[:-1])}" if len(path) > 1 else ""
        raise ConfigError(
            f"{origin}: null removes a key, but the analysis has no '{path[-1]}'{section}; "
            f"{nearest(path[-1], map(str, mapping), 'it has')}"
        )
    del mapping[path[-1]]


def _next_key(mapping: dict, keys: list[str]) -> tuple[str, list[str]]:
    """Split the first key off a dotted path; a name that holds a dot itself is recognised where it is there."""
    for n in range(len(keys), 1, -1):
        if ".".join(keys[:n]) in mapping:
            return ".".join(keys[:n]), keys[n:]
    return keys[0], keys[1:]


def _as_mapping(value: object, path: tuple[str, ...]) -> object:
    """Write a short form as a new mapping, where an override goes deeper than the file."""
    if is_nothing(value):
        return {}
    if path == ("traits",) and not isinstance(value, dict):
        names = value if isinstance(value, list) else [value]
        return dict.fromkeys(names) if all(isinstance(n, str) for n in names) else value
    if path[0] == "variances" and len(path) == 2 and path[1] != "mode" and not isinstance(value, dict):
        return {"start": value}
    return dict(value) if isinstance(value, dict) else value


def _listed(error: ValidationError, where: str, changed: dict[tuple[str, ...], str], tree: object) -> str:
    lines = []
    for found_at, message in listed_problems(error):
        place = _as_written(found_at, tree)
        origin = next(
            (text for path, text in changed.items() if place[: len(path)] == path or path[: len(place)] == place != ()),
            where,
        )
        lines.append(": ".join([origin, *([dotted(place)] if place else []), message]))
    return "\n".join(dict.fromkeys(lines))


def _as_written(place: tuple[str, ...], tree: object) -> tuple[str, ...]:
    """Write a path as the file has it: without the steps that only the long forms have."""
    if place[:2] == ("variances", "terms"):
        place = ("variances", *place[2:])
    if place[:2] == ("model", "random"):
        if place[3:5] == ("effects", ""):
            place = (*place[:3], *place[5:])
        at = 5 if place[3:4] == ("effects",) else 3  # of a key of the effect
        if place[at : at + 1] in (("mates",), ("levels",)) and _is_absent(tree, place[: at + 1]):
            place = (*place[:at], "level", *place[at + 1 :])
    return place


def _is_absent(tree: object, place: tuple[str, ...]) -> bool:
    """Check whether the file has no such key."""
    for key in place:
        if not isinstance(tree, dict) or key not in tree:
            return True
        tree = tree[key]
    return False
