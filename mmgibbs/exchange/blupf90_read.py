"""A renumf90 parameter file -> what it states, every value with its line.

The file is a list of keywords, each followed by its values on the lines below; `#` begins a comment. Written from the
public description of the format (the wiki of the BLUPF90 programs).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mmgibbs.config.text import to_line
from mmgibbs.errors import ConfigError, nearest

OF_BLUPF90 = ("NUMBER_OF_TRAITS", "NUMBER_OF_EFFECTS", "OBSERVATION(S)", "EFFECTS:", "RANDOM_RESIDUAL", "RANDOM_GROUP")
MATRICES = ("(CO)VARIANCES", "(CO)VARIANCES_PE", "(CO)VARIANCES_MPE")


@dataclass(frozen=True)
class Stated:
    """A value, and the line of its keyword."""

    line: int
    value: Any


@dataclass(frozen=True)
class StatedEffect:
    """EFFECT and the keywords that follow it."""

    line: int
    positions: tuple[int, ...]  # one for each trait; 0: the trait has no such effect
    kind: str  # 'cross' | 'cov'
    form: str  # 'alpha' | 'numer'; '' for a covariate
    stated: dict[str, Stated] = field(default_factory=dict)  # 'NESTED': (positions, form), 'RANDOM': 'animal', ...


@dataclass(frozen=True)
class ParameterFile:
    """Contents of a renumf90 parameter file; positions count the columns of the data file from 1."""

    path: Path
    stated: dict[str, Stated]  # 'DATAFILE': str, 'TRAITS': positions, 'RESIDUAL_VARIANCE': (T, T), ...
    combined: tuple[Stated, ...]  # COMBINE: (new position, positions that are joined)
    effects: tuple[StatedEffect, ...]
    options: tuple[Stated, ...]  # OPTION: its words
    encoding: str = "UTF-8"

    @property
    def n_traits(self) -> int:
        return len(self.stated["TRAITS"].value)

    @property
    def files(self) -> Iterator[tuple[str, int, Path]]:
        """(keyword, its line, path) of every file that is named here; of an OPTION every word that may be one."""
        for stated in (self.stated, *(effect.stated for effect in self.effects)):
            for keyword in ("DATAFILE", "FILE", "SNP_FILE", "INB_FILE", "INBREEDING"):
                names = stated[keyword].value if keyword in stated else ()
                for name in (names,) if isinstance(names, str) else names[1:]:
                    yield keyword, stated[keyword].line, self.path.parent / name
        for option in self.options:
            for word in option.value[1:]:
                yield f"OPTION {option.value[0]}", option.line, self.path.parent / word


def shown(*words: str) -> str:
    """Words of the file as an error message shows them."""
    return f"'{to_line(' '.join(words))}'" if words else "nothing"


@dataclass
class _Section:
    """A keyword and the lines of its values."""

    where: str  # the file, as errors call it
    keyword: str
    line: int
    values: list[tuple[int, str]]

    def refuse(self, got: str, needed: str, line: int | None = None) -> ConfigError:
        return ConfigError(f"{self.where} line {line or self.line}: {self.keyword}: found {got}, needed {needed}")

    def no_keyword(self, line: int, text: str, needed: str) -> ConfigError:
        """The error for a line below the values, where only a keyword can be: it may be misspelt."""
        word = text.split(maxsplit=1)[0]
        return ConfigError(f"{self.where} line {line}: found {shown(word)}, needed {needed}{_did_you_mean(text)}")

    def words(self, needed: str, least: int = 1, most: int | None = None) -> list[str]:
        """The words of the one line of values."""
        if self.values and self.keyword in OF_NUMBERS and _did_you_mean(self.values[0][1]):
            raise self.no_keyword(*self.values[0], f"numbers or a keyword after {self.keyword} (line {self.line})")
        if len(self.values) > 1:
            raise self.no_keyword(*self.values[1], f"a keyword after the values of {self.keyword} (line {self.line})")
        words = self.values[0][1].split() if self.values else []
        if len(words) < least or (most is not None and len(words) > most):
            raise self.refuse(shown(*words), needed, self.values[0][0] if self.values else None)
        return words

    def numbers(self, words: list[str], needed: str, least: int = 0) -> tuple[int, ...]:
        for word in words:
            if not word.isdecimal() or int(word) < least:
                raise self.refuse(shown(word), needed, self.values[0][0])
        return tuple(int(word) for word in words)

    def choose(self, *choices: str) -> str:
        needed = f"{', '.join(choices[:-1])} or {choices[-1]}"
        (word,) = self.words(needed, 1, 1)
        if word not in choices:
            raise self.refuse(shown(word), needed, self.values[0][0])
        return word


# ------------------------------------------------------------------------------------------- values of each keyword


def _file_name(section: _Section, n_traits: int) -> str:
    section.words("the name of a file")
    name = section.values[0][1]
    return name[1:-1] if len(name) > 2 and name[0] == name[-1] and name[0] in "\"'" else name


def _positions(least: int, most: int | None = None, first: int = 1) -> Callable:
    def read(section: _Section, n_traits: int) -> tuple[int, ...]:
        needed = "positions of columns, counted from 1"
        if most is not None:
            needed = f"{least} to {most} {needed}" + (", 0 for none" if first == 0 else "")
        return section.numbers(section.words(needed, least, most), needed, first)

    return read


def _count(section: _Section, n_traits: int) -> int:
    return section.numbers(section.words("one whole number", 1, 1), "one whole number")[0]


def _words(section: _Section, n_traits: int) -> tuple[str, ...]:
    return tuple(section.words("one value or more"))


def _weights(section: _Section, n_traits: int) -> tuple[int, ...]:
    words = section.words("the position of the weight, or none", 0)
    if len(words) not in (0, 1, n_traits):
        raise section.refuse(
            shown(*words), f"one position, one for each of the {n_traits} traits, or none", section.values[0][0]
        )
    return section.numbers(words, "positions of columns, counted from 1", 1)


def _matrix(section: _Section, n_traits: int) -> np.ndarray:
    """(k, k) float64: a full symmetric matrix, its rows on as many lines as they like."""
    numbers = []
    for line, text in section.values:
        for word in text.split():
            try:
                numbers.append(float(word.lower().replace("d", "e")))
            except ValueError:
                raise section.no_keyword(
                    line, word, f"a number or a keyword after {section.keyword} (line {section.line})"
                ) from None
    k = int(np.sqrt(len(numbers)))
    if not np.isfinite(numbers).all():
        raise section.refuse(f"'{next(x for x in numbers if not np.isfinite(x))}'", "finite numbers")
    if not numbers or k * k != len(numbers):
        got = f"{len(numbers)} number{'s' * (len(numbers) != 1)}"
        raise section.refuse(got, "a full square matrix (1, 4, 9, ... numbers: both of its triangles)")
    matrix = np.array(numbers).reshape(k, k)
    i, j = np.unravel_index(np.argmax(np.abs(matrix - matrix.T)), matrix.shape)
    if not np.allclose(matrix, matrix.T, rtol=1e-6, atol=0.0):
        got = f"{matrix[i, j]:g} in row {i + 1}, column {j + 1} and {matrix[j, i]:g} in row {j + 1}, column {i + 1}"
        raise section.refuse(got, "a symmetric matrix")
    return matrix


def _nested(section: _Section, n_traits: int) -> tuple[tuple[int, ...], str]:
    needed = f"{n_traits} positions, then alpha or numer"
    *positions, form = section.words(needed, n_traits + 1, n_traits + 1)
    if form not in ("alpha", "numer"):
        raise section.refuse(shown(form), needed, section.values[0][0])
    return section.numbers(positions, needed), form


def _random(section: _Section, n_traits: int) -> str:
    kind = section.choose("animal", "sire", "diagonal", "diag")
    return "diagonal" if kind == "diag" else kind


def _optional(section: _Section, n_traits: int) -> tuple[str, ...]:
    needed = "one or more of pe, mat, mpe"
    words = section.words(needed)
    for word in words:
        if word not in ("pe", "mat", "mpe") or words.count(word) > 1:
            raise section.refuse(shown(word), needed, section.values[0][0])
    return tuple(words)


def _inbreeding(section: _Section, n_traits: int) -> tuple[str, ...]:
    needed = "pedigree, no-inbreeding, or file and its name"
    words = section.words(needed, 1, 2)
    if words not in (["pedigree"], ["no-inbreeding"]) and (words[0] != "file" or len(words) != 2):
        raise section.refuse(shown(*words), needed, section.values[0][0])
    return tuple(words)


def _upg_type(section: _Section, n_traits: int) -> tuple[str, ...]:
    """('yob', years) with the years on the same line or the next ones, or the one word that says where groups are."""
    needed = "yob and years, in_pedigrees, group, group_unisex or group_sex"
    words = [word for _, text in section.values for word in text.split()]
    if words[:1] == ["yob"]:
        for line, text in section.values:
            for word in text.split():
                if word != "yob" and not word.isdecimal():
                    raise section.no_keyword(
                        line, word, f"a year or a keyword after UPG_TYPE yob (line {section.line})"
                    )
        return tuple(words)
    (kind,) = section.words(needed, 1, 1)
    kind = {"in_ped": "in_pedigrees"}.get(kind, kind)
    if kind == "internal":
        raise section.refuse(
            "'internal', groups by a function within the user's own renumf90", needed, section.values[0][0]
        )
    if kind not in ("in_pedigrees", "group", "group_unisex", "group_sex"):
        raise section.refuse(shown(kind), needed, section.values[0][0])
    return (kind,)


def _combine(section: _Section, n_traits: int) -> tuple[int, ...]:
    needed = "the position of the new column, then those that are joined in it (one or more), counted from 1"
    return section.numbers(section.words(needed, 2), needed, 1)


OF_THE_FILE: dict[str, Callable] = {
    "DATAFILE": _file_name,
    "SKIP_HEADER": _count,
    "TRAITS": _positions(1),
    "FIELDS_PASSED": _positions(0),
    "WEIGHT(S)": _weights,
    "RESIDUAL_VARIANCE": _matrix,
}
OF_AN_EFFECT: dict[str, Callable] = {
    "NESTED": _nested,
    "RANDOM": _random,
    "OPTIONAL": _optional,
    "FILE": _file_name,
    "FILE_POS": _positions(3, 7, first=0),
    "SNP_FILE": _file_name,
    "PED_DEPTH": _count,
    "GEN_INT": _words,
    "REC_SEX": _words,
    "INB_FILE": _file_name,
    "UPG_TYPE": _upg_type,
    "INBREEDING": _inbreeding,
    "RANDOM_REGRESSION": lambda section, n_traits: section.choose("data", "legendre"),
    "RR_POSITION": _positions(1),
    **dict.fromkeys(MATRICES, _matrix),
}
KEYWORDS = ("COMBINE", *OF_THE_FILE, "EFFECT", *OF_AN_EFFECT, "OPTION")
# Keywords whose values are numbers alone: a word there is a misspelt keyword.
OF_NUMBERS = (
    *("COMBINE", "SKIP_HEADER", "TRAITS", "FIELDS_PASSED", "WEIGHT(S)", "FILE_POS", "PED_DEPTH", "RR_POSITION"),
)
NEEDED = ("DATAFILE", "TRAITS", "RESIDUAL_VARIANCE")


def read_parameter_file(path: Path) -> ParameterFile:
    """Read a renumf90 parameter file. ConfigError names the line, what was found there and what is needed."""
    text, encoding = _read_text(path)
    stated: dict[str, Stated] = {}
    combined, effects, options, n_traits = [], [], [], 0
    for section in _sections(text, Path(path).name):
        keyword = section.keyword
        if keyword == "OPTION":
            options.append(Stated(section.line, _words(section, 0)))
        elif keyword == "COMBINE":
            combined.append(Stated(section.line, _combine(section, 0)))
        elif keyword == "EFFECT":
            effects.append(_effect(section, n_traits))
        elif keyword in OF_THE_FILE:
            _state(stated, section, OF_THE_FILE[keyword], n_traits)
            n_traits = len(stated["TRAITS"].value) if "TRAITS" in stated else 0
        elif not effects:
            raise ConfigError(
                f"{section.where} line {section.line}: found {keyword} before any EFFECT, "
                "needed after the EFFECT that it belongs to"
            )
        else:
            _state(effects[-1].stated, section, OF_AN_EFFECT[keyword], n_traits)
    for keyword in NEEDED:
        if keyword not in stated:
            raise ConfigError(
                f"{Path(path).name}: found no {keyword}, needed one (is this a parameter file of renumf90?)"
            )
    if not effects:
        raise ConfigError(f"{Path(path).name}: found no EFFECT, needed at least one")
    return ParameterFile(Path(path), stated, tuple(combined), tuple(effects), tuple(options), encoding)


def _read_text(path: Path) -> tuple[str, str]:
    """(text, its encoding): every byte means something in Latin-1, so it is tried last."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read as text: {error.strerror}") from None
    if b"\0" in content:
        raise ConfigError(f"{path}: cannot be read as text: found a zero byte, needed UTF-8 or Latin-1 text")
    while content.startswith(b"\xef\xbb\xbf"):  # byte order marks
        content = content[3:]
    content = content.removesuffix(b"\x1a")  # how DOS ends a text
    try:
        return content.decode("utf-8"), "UTF-8"
    except UnicodeDecodeError:
        return content.decode("latin-1"), "Latin-1"


def _sections(text: str, where: str) -> Iterator[_Section]:
    """The keywords with their lines; values on the line of the keyword itself are taken, too."""
    section = None
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):  # splitlines breaks at other characters, too
        content = line.split("#")[0].strip()
        if not content:
            continue
        word = content.split()[0]
        if word not in KEYWORDS and word.upper() in KEYWORDS and not _is_value(word, section):
            raise ConfigError(
                f"{where} line {number}: found {shown(word)}, needed the keyword in capitals: {word.upper()}"
            )
        if word in OF_BLUPF90:
            raise ConfigError(
                f"{where} line {number}: found {word}, which is a keyword of blupf90; "
                "needed the file that renumf90 reads (renum.par, not renf90.par)"
            )
        if word in KEYWORDS:
            if section is not None:
                yield section
            rest = content[len(word) :].strip()
            if word == "FIELDS_PASSED":
                rest = rest.removeprefix("TO OUTPUT").strip()
            section = _Section(where, word, number, [(number, rest)] if rest else [])
        elif section is None:
            hint = _did_you_mean(content)
            raise ConfigError(f"{where} line {number}: found {shown(content)}, needed a keyword such as DATAFILE{hint}")
        elif section.keyword == "OPTION":
            raise section.no_keyword(number, content, "a keyword after OPTION, whose values are on its own line")
        else:
            section.values.append((number, content))
    if section is not None:
        yield section


def _is_value(word: str, section: _Section | None) -> bool:
    """`file` is a keyword in capitals, and below INBREEDING a word for how; files may be called like keywords."""
    if section is None or section.values:
        return False
    return section.keyword.endswith("FILE") or (word == "file" and section.keyword == "INBREEDING")


def _did_you_mean(text: str) -> str:
    """'; did you mean ...?' of a line that begins as a misspelt keyword, also by a blank for an underscore; else ''."""
    words = text.split()
    if not words or not words[0][:1].isalpha():
        words = words[:1] if words and words[0].startswith("(") else []
    for word in ("_".join(words[:2]), words[0]) if words else ():
        hint = nearest(word, KEYWORDS)
        if hint.startswith("did"):
            return f"; {hint}"
    return ""


def _state(stated: dict[str, Stated], section: _Section, read: Callable, n_traits: int) -> None:
    if section.keyword in stated:
        raise ConfigError(
            f"{section.where} line {section.line}: found {section.keyword} again "
            f"(line {stated[section.keyword].line}), needed once"
        )
    if section.keyword in ("RESIDUAL_VARIANCE", "WEIGHT(S)") and not n_traits:
        raise ConfigError(
            f"{section.where} line {section.line}: found {section.keyword} before TRAITS, needed after it"
        )
    stated[section.keyword] = Stated(section.line, read(section, n_traits))


def _effect(section: _Section, n_traits: int) -> StatedEffect:
    if not n_traits:
        raise ConfigError(f"{section.where} line {section.line}: found EFFECT before TRAITS, needed after it")
    plural = "a position" if n_traits == 1 else f"{n_traits} positions (one for each trait, 0 for none)"
    needed = f"{plural}, then cov, or cross and alpha or numer"
    words = section.words(needed)
    line = section.values[0][0]
    kind = next((i for i, word in enumerate(words) if not word.isdecimal()), len(words))
    rest = words[kind:]
    if kind != n_traits or (rest != ["cov"] and (rest[:1] != ["cross"] or rest[1:] not in (["alpha"], ["numer"]))):
        raise section.refuse(shown(*words), needed, line)
    positions = section.numbers(words[:kind], needed)
    if not any(positions):
        raise section.refuse(shown(*words), "a position other than 0 for at least one trait", line)
    return StatedEffect(section.line, positions, rest[0], rest[1] if len(rest) > 1 else "")
