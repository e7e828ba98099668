"""Names that are chosen by patterns such as 'h2[*]', whose brackets stand for themselves."""

from __future__ import annotations

import fnmatch
import reprlib
from collections.abc import Iterable, Sequence

from mmgibbs.errors import ConfigError, nearest


def match_names(argument: str, noun: str, patterns: object, names: Iterable[str]) -> list[str]:
    """The names that fit any of the patterns, in the order of the patterns.

    argument: what the message begins with; noun: what a name is of. ConfigError where the patterns are no text, or
    where one of them fits no name.
    """
    known = list(names)
    given: Sequence[object] = [patterns] if isinstance(patterns, str) else list(_as_iterable(patterns))
    if not given or not all(isinstance(pattern, str) for pattern in given):
        raise ConfigError(
            f"{argument}: expected the name of a {noun}, a pattern such as 'h2[*]', or a list of them, got "
            f"{reprlib.repr(patterns)}"
        )
    matches: list[str] = []
    for pattern in map(str, given):
        literal = pattern.replace("[", "[[]") if not pattern.startswith("[[]") else pattern
        fitting = [name for name in known if name == pattern or fnmatch.fnmatchcase(name, literal)]
        if not fitting:
            plain = pattern.replace("*", "")
            raise ConfigError(f"{argument}: no {noun} fits '{pattern}'; {nearest(plain, known, f'the {noun}s are')}")
        matches += [name for name in fitting if name not in matches]
    return matches


def _as_iterable(patterns: object) -> Iterable[object]:
    return patterns if isinstance(patterns, Iterable) else ()
