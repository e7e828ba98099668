"""What each column is likely to be for: a trait, a class effect, a random effect, a covariate, or nothing.

Names decide first ('herd_year' ends in a word of classes), the values where the name says nothing. Each guess comes
with its reason, which the analysis file shows.

Columns that mean something together: a time and whether it has ended, cases and of how many.

Neither is certain from a table alone, as the same numbers may be two traits: the analysis file offers them as comments.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from mmgibbs.config.text import as_number
from mmgibbs.data.missing_codes import looks_like_code
from mmgibbs.draft.columns import FEW, Column, determines, split_words
from mmgibbs.pedigree.spelling import is_unknown_code

CLASSES = """sex gender herd flock farm year yr yob byear birthyear season month contemporary cg hys htd htm htw hy
    group batch pen block breed housing parity lactation lact treatment trt station technician region location site
    environment env rep replicate feed cohort class ward mob generation type stall milking""".split()
OF_RANDOM = """nest litter cage family plot tank fosternest room brood clutch judge observer operator photo
    respondent subject row col column rowno colno""".split()
COVARIATES = """age dim day days date time temperature temp thi inbreeding latitude longitude depth months interval
    heterozygosity""".split()
TRAITS = """weight weights wt bwt yield milk fat prot protein gain score length height tarsus fleece backfat trait
    phenotype pheno diameter ease width size speed scs count cases number laydate value response depth
    girth adg hip hips elbow elbows temperament gentleness calmness straightness""".split()
COUNTS = "count counts cases number ncm nba tnb born events lesions ticks".split()
# Columns of two codes so named say which of two classes a record is of.
OF_TWO = "male female castrated castrate neutered spayed steer heifer entire organic".split()
STATUS = "status censored censoring event culled".split()
YES = {"yes", "y", "true", "ill", "sick", "affected", "diseased", "dead", "case", "positive", "pos", "1"}
NO = {"no", "n", "false", "well", "healthy", "unaffected", "alive", "control", "negative", "neg", "0"}
STILL = {"alive", "living", "censored", "in herd", "in_herd", "active", "right"}  # a life that has not ended
OF_BOUNDS = {"censored", "right"}  # words for the values of any trait
ENDED = {"culled", "dead", "died", "event", "failed", "sold", "exact", "ended"}
# Results of an evaluation, or the true values of a simulation: no trait, whatever they look like.
RESULTS = "true ebv ebvs gebv gebvs tbv bv tgv pbv blup liability reliability accuracy".split()
COMPONENT = re.compile(r"(.+)[._]([adegmprsu]|pe|mpe|bv)$", re.IGNORECASE)  # additive, dominance, residual, ...
_ENDINGS = {"year": "class", "date": "covariate", "nest": "random", "litter": "random", "weight": "trait"}
_OF_A_CLASS = 5.0  # records per level from which a class is taken as fixed
_OF_RANDOM = 1.5
_OF_A_VARIANCE = 10  # levels from which an effect is taken as random
_MOST_LEVELS = 0.5  # of the records: above it a text is a name, not a class


class Role(NamedTuple):
    use: str  # trait | class | random | covariate | left out
    why: str


def has_word(name: str, words: Collection[str]) -> bool:
    return any(word in words for word in split_words(name))


def hint(name: str) -> str | None:
    """Guess the use of a column from its name, the last word first: 'dam_age_class' is a class.

    What follows 'per' or a slash is a unit: 'milk/day' is milk.
    """
    measured = re.split(r"/|[\W_]per[\W_]", name, maxsplit=1)[0]
    if measured not in ("", name) and (said := hint(measured)) is not None:
        return said
    groups = (("class", CLASSES), ("random", OF_RANDOM), ("covariate", COVARIATES), ("trait", TRAITS))
    for word in reversed([w for w in split_words(name) if not w.isdigit()]):
        of_word = next((kind for kind, words in groups if word in words), None)
        ending = next((kind for end, kind in _ENDINGS.items() if word.endswith(end)), None)
        if of_word or ending:
            return of_word or ending
    return None


def roles(columns: Sequence[Column], named: bool) -> dict[str, Role]:
    """Column -> what it is for; `named`: the table has names of columns."""
    by_column = {c.name: _role(c, named) for c in columns}
    reasons = _results(columns) | _class_values(columns, by_column) | _numbers_of_records(columns)
    by_column |= {name: Role("left out", why) for name, why in reasons.items() if by_column[name].use == "trait"}
    if not any(role.use == "trait" for role in by_column.values()):
        by_column |= _trait_of_last_resort(columns, by_column)
    return by_column


def _results(columns: Sequence[Column]) -> dict[str, str]:
    """Columns of numbers that are no records, and why: named for results, or two and more for components of a value."""
    numbers = [c.name for c in columns if c.numbers is not None and not c.whole]
    stems = {name: match[1] for name in numbers if (match := COMPONENT.match(name))}
    out = {}
    for name, stem in stems.items():
        alike = [n for n, s in stems.items() if s == stem]
        if len(alike) > 1:
            out[name] = f"{', '.join(alike)} look like components of a value: the true ones of a simulation?"
    return out | {n: "named for a result or a true value, not a record" for n in numbers if has_word(n, RESULTS)}


def _class_values(columns: Sequence[Column], roles: dict[str, Role]) -> dict[str, str]:
    """Numbers with one value for each level of a class, such as the height of a place: no records of the animals."""
    classes = [c for c in columns if roles[c.name].use in ("class", "random") and c.records_per_level >= _OF_RANDOM]
    numbers = [c for c in columns if c.numbers is not None and c.levels > 1]
    return {
        c.name: f"each level of {of.name} has one value of it" for c in numbers for of in classes if determines(of, c)
    }


def _numbers_of_records(columns: Sequence[Column]) -> dict[str, str]:
    """Columns of 1, 2, 3, ... in the order of the records."""
    return {
        c.name: "it numbers the records"
        for c in columns
        if c.numbers is not None and c.n > 2 and not c.missing and bool((np.diff(c.numbers) == 1).all())
    }


def _role(c: Column, named: bool) -> Role:
    if c.levels < 2:
        return Role("left out", "every record has the same value" if c.levels else "no record has a value")
    if c.dates:
        return Role("left out", "dates; year, season or an age in days, as columns of their own, may have an effect")
    said = hint(c.name) if named else None
    if c.numbers is None:
        return _text_role(c, said)
    return _code_role(c, said, named) if c.few or c.years or said in ("class", "random") else _number_role(c, said)


def _text_role(c: Column, said: str | None) -> Role:
    if has_slips(c, said):
        return _number_role(c, said)
    if said == "trait" and c.levels > FEW:
        return Role("left out", f"text of {c.levels:,} different values: neither numbers nor categories")
    if said == "trait":
        return Role("trait", "its name says so")
    if c.levels <= 3 and ({v.lower() for v in c.values()} & YES and {v.lower() for v in c.values()} & NO):
        return Role("trait", "yes or no, which is more often an outcome than an effect")
    if c.levels <= 3 and has_word(c.name, STATUS):
        return Role("left out", "its name is that of a status, which is an outcome")
    if c.levels > _MOST_LEVELS * c.known:
        return Role("left out", "almost every record has a value of its own")
    return _class_role(c, said, "its name says so" if said in ("class", "random") else "text of few values")


def has_slips(c: Column, said: str | None) -> bool:
    """Numbers but for a few values. Few values, such as 1.1, 1.2 and 3.x, are codes of classes, unless the name `said`
    that they are measured.
    """
    return c.odd is not None and said not in ("class", "random") and (said is not None or not c.has_few_values)


def _code_role(c: Column, said: str | None, named: bool) -> Role:
    if said == "trait" or has_word(c.name, COUNTS):
        return Role("trait", "its name says so")
    if said in ("class", "random") or c.years:
        return _class_role(c, said, "its name says so" if said else "years")
    if said == "covariate" and c.records_per_level < _OF_A_CLASS:
        return Role("covariate", "numbers, and the name of a covariate")
    if said == "covariate":
        return _class_role(c, "class", "few values of a covariate are best taken as classes")
    if named and c.levels == 2 and set(split_words(c.name)[-1:]) & set(OF_TWO):
        return _class_role(c, "class", "its name says so")
    if not named:
        return _class_role(c, None, "few whole numbers")
    return Role("left out", "few whole numbers, and the name does not say whether they are classes or a trait")


def _number_role(c: Column, said: str | None) -> Role:
    if said == "covariate":
        return Role("covariate", "numbers, and the name of a covariate")
    few = ", few different ones: a trait, or a covariate or class?" if c.has_few_values and said is None else ""
    return Role("trait", "numbers" + (", and its name says so" if said == "trait" else few))


def _class_role(c: Column, said: str | None, why: str) -> Role:
    """Fixed where there are several records in each level, random where there are few or the name says so."""
    size = f"{c.levels:,} levels, {c.records_per_level:,.0f} records each"
    if said == "random" and c.levels < _OF_A_VARIANCE and c.records_per_level >= _OF_A_CLASS:
        return Role("class", f"{size}, too few levels to estimate a variance")
    if said == "random" and c.records_per_level >= _OF_RANDOM:
        return Role("random", f"{why}; {size}")
    if c.records_per_level >= _OF_A_CLASS or c.levels <= 3:
        return Role("class", f"{why}; {size}")
    if c.records_per_level >= _OF_RANDOM:
        return Role("random", f"{why}; {size}, too few each for a fixed effect")
    return Role("left out", f"{size}")


def _trait_of_last_resort(columns: Sequence[Column], roles: dict[str, Role]) -> dict[str, Role]:
    """Choose traits where nothing looks like one: numbers of many values first, else a text or code."""
    by_name = {c.name: c for c in columns}
    many = [n for n, role in roles.items() if role.use == "covariate"]
    codes = [n for n, r in roles.items() if by_name[n].levels > 1 and not by_name[n].dates and hint(n) is None]
    codes = [n for n in codes if by_name[n].numbers is not None or by_name[n].levels <= FEW]
    codes.sort(key=lambda n: (by_name[n].numbers is None, by_name[n].levels))
    chosen = max(many, key=lambda n: by_name[n].levels) if many else next(iter(codes), None)
    return {} if chosen is None else {chosen: Role("trait", "no other column looks more like a trait")}


# ------------------------------------------------------------------------------------------------ types of traits


def guess_type(c: Column) -> tuple[str, dict[str, object], str]:
    """(type, further keys, why) of a trait."""
    codes = codes_among_words(c)
    if codes:
        words = [value for value in c.values() if value not in codes]
        kind, keys, why = _two_words(words) if len(words) == 2 else _categories(words)
        return kind, keys | {"missing": codes}, why
    if c.levels == 2:
        return _two_classes(c)
    if c.odd is not None:
        return "normal", {}, f"numbers, and {c.odd_ones}"
    if c.numbers is not None and c.whole and has_word(c.name, COUNTS) and float(np.nanmin(c.numbers)) >= 0:
        return "count", {}, "whole numbers from 0, and its name says so"
    if c.numbers is None and c.levels > FEW:
        return "normal", {}, "numbers are needed here"
    if c.numbers is None:
        return _categories(c.values())
    if c.whole and c.levels <= 8:
        return "ordinal", {}, f"{c.levels} different whole numbers: scores"
    return "normal", {}, "numbers"


def codes_among_words(c: Column) -> list[str]:
    """The values of a column of words that are codes of missing values: -99, N/A or - beside yes and no."""
    if c.numbers is not None or c.odd is not None:
        return []
    values = c.values()
    numbers = [value for value in values if as_number(value) is not None]
    texts = [v for v in values if v not in numbers and (is_unknown_code(v, "level") or not any(map(str.isalnum, v)))]
    words = [value for value in values if value not in (*numbers, *texts)]
    if len(words) < 2 or not all(map(looks_like_code, numbers)) or len({*texts} & {"+", "-"}) > 1:
        return []
    return [*numbers, *texts]


def _categories(values: Sequence[str]) -> tuple[str, dict[str, object], str]:
    return "ordinal", {"categories": sorted(values)}, "categories: PUT THEM IN ORDER, from low to high"


def _two_classes(c: Column) -> tuple[str, dict[str, object], str]:
    if c.numbers is not None:
        return "binary", {}, "two values"
    return _two_words(c.values())


def _two_words(values: Sequence[str]) -> tuple[str, dict[str, object], str]:
    yes = next((v for v in values if v.lower() in YES and v != "0"), None)
    if yes is not None:
        return "binary", {"positive": yes}, f"two values, of which '{yes}' is the event"
    return "binary", {"positive": values[-1]}, f"two values; the rarer one, '{values[-1]}', is taken as the event"


def find_status(trait: Column, columns: Sequence[Column]) -> tuple[Column, dict[str, list[str]]] | None:
    """A column that says whether the value of a trait is known or only a bound, and what its cells mean.

    'alive' and 'dead' say it of a time; 'censored' and 'right' of any trait.
    """
    if trait.numbers is None or not np.nanmin(trait.numbers, initial=np.inf) > 0:
        return None
    is_time = _is_time(trait)
    for c in columns:
        values = c.values()
        words = {v.lower() for v in values}
        if c.numbers is None and 2 <= len(values) <= 3 and words <= STILL | ENDED and (is_time or words & OF_BOUNDS):
            right = [v for v in values if v.lower() in STILL]
            if right and len(right) < len(values):
                return c, {"right": right, "none": [v for v in values if v not in right]}
    return None


TIMES = """day days week weeks month months time times age longevity survival life lifespan lifetime lpl herdlife
    duration stay""".split()
ENDINGS = [*STATUS, *"dead died death failed failure ended removed uncensored cens delta sold".split()]
CASES = [*COUNTS, *"affected ill sick dead died infected positive positives losses deaths successes pregnant".split()]
SIZES = """size n total tested exposed inspected examined treated trials served inseminated inseminations born hatched
    animals""".split()
OTHERS = "dam sire cow mother parity milk calving lambing farrowing first".split()  # age of the dam, days in milk
_TIMES = 10  # different values from which numbers are a time
_STILL = ("cens", "censored", "censoring")  # of a column so named, 1 says that the time goes on


class TimeAndStatus(NamedTuple):
    time: Column
    status: Column
    still: str  # cell of the status that says that the time has not ended
    ended: str

    @property
    def censored_codes(self) -> int:
        """Records whose time has not ended."""
        return int((self.status.text == self.still).sum())


class CasesOfSize(NamedTuple):
    cases: Column
    size: Column

    @property
    def share(self) -> float:
        """The share of all cases in all sizes."""
        assert self.cases.numbers is not None and self.size.numbers is not None
        both = ~np.isnan(self.cases.numbers) & ~np.isnan(self.size.numbers)
        return float(self.cases.numbers[both].sum() / self.size.numbers[both].sum())


def time_and_status(columns: Sequence[Column]) -> TimeAndStatus | None:
    """A column of times beside one of 0 and 1 whose name is that of an end; the time nearest before it, else after."""
    for place, status in enumerate(columns):
        if not (_is_binary(status) and has_word(status.name, ENDINGS)):
            continue
        times = [*reversed(columns[:place]), *columns[place + 1 :]]
        time = next((c for c in times if _is_time(c)), None)
        if time is None:
            continue
        zero, event = sorted(status.values(), key=float)
        goes_on = any(word in _STILL for word in split_words(status.name))
        return TimeAndStatus(time, status, *((event, zero) if goes_on else (zero, event)))
    return None


def cases_of_size(columns: Sequence[Column]) -> CasesOfSize | None:
    """Whole numbers that are never above those of another column, one of them named for cases or both for what they
    are; sizes differ from 1 and mostly from the cases."""
    counts = [c for c in columns if c.whole and c.levels > 1 and c.known and not c.years]
    for size in counts:
        for cases in counts:
            if (
                cases is not size
                and has_word(size.name, SIZES)
                and has_word(cases.name, CASES)
                and _is_bounded(cases, size)
            ):
                return CasesOfSize(cases, size)
    return None


def _is_binary(c: Column) -> bool:
    return c.whole and c.levels == 2 and {float(v) for v in c.values()} == {0.0, 1.0}


def _is_time(c: Column) -> bool:
    if c.numbers is None or c.levels < _TIMES or c.years or not has_word(c.name, TIMES) or has_word(c.name, OTHERS):
        return False
    return bool(np.nanmin(c.numbers) >= 0)


def _is_bounded(cases: Column, size: Column) -> bool:
    assert cases.numbers is not None and size.numbers is not None
    both = ~np.isnan(cases.numbers) & ~np.isnan(size.numbers)
    x, n = cases.numbers[both], size.numbers[both]
    return bool(both.any() and (x >= 0).all() and (n >= 1).all() and (x <= n).all() and n.max() > 1 and (x < n).any())
