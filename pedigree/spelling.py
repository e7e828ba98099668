"""How ids, levels and numbers are spelled: codes for unknown, two spellings of one id, numbers written as text.

Nothing here changes a table: callers ask, and then tell the user or act. Two texts may be one id or one level where
their normal forms are equal. They are two where a table has both ('007' and '7' may be two animals), so that the
normal form is asked only about a text that is not there as it is written.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Literal

import polars as pl

Role = Literal["parent", "level", "value"]

# Normal forms of what programs and people write where nothing is known, whatever the column holds ...
_WORDS = tuple(
    "unk unkn ukn unknown na n/a n.a n.a. #n/a <na> nan null (null) \\n #null! #value! #ref! #num! #div/0! #name?"
    " #nv #n/d #nd #wert! #bezug! #valeur! #valor! #valore! #zahl! #nombre! #nom? k.a. k.a"
    " notknown notavailable (unknown) (blank) unbekannt inconnu inconnue desconocido desconocida desconhecido"
    " desconhecida sconosciuto sconosciuta onbekend ukendt okänd ukjent tuntematon".split()
)
# ... and where a word is no name of a class: 'none' and 'missing' may be treatments or what was seen.
_WORDS_BESIDE_LEVELS = tuple("none nil missing undefined (none) (missing) n/d n.d. nat".split())
_NINES = "^-9{1,8}$"  # -9, -99, -999, ...
_PUNCTUATION = "^[-.?*_/#~]+$"
_CODES: dict[Role, tuple[tuple[str, ...], str]] = {
    "parent": (_WORDS + _WORDS_BESIDE_LEVELS, f"{_PUNCTUATION}|^0$|^-1$|{_NINES}"),
    "level": (_WORDS, f"^[.]+$|^[?]+$|^[*]$|{_NINES}"),
    "value": (_WORDS + _WORDS_BESIDE_LEVELS, _PUNCTUATION),
}

_INVISIBLE = r"[\p{Cf}\p{Cc}\x{fe00}-\x{fe0f}\x{180e}&&[^\s]]"
_DASHES = r"[\p{Pd}\x{2212}\x{2043}]"
_BLANK_KEPT = "\x1f"  # stands for a blank between digits; once invisible characters are gone no text has it
_CANONICAL = "^[1-9][0-9]*$"  # a number that is its normal form
_PLAIN_ASCII = "^[!#-&(-<>-~]*$"  # no blanks, quotation marks or '=': only the case may have to change
_NUMBER = "^[-+]?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)$"
_GROUP_MARK = r"[\s'\x{2019}]"
_ROUNDED = r"^[0-9][.,]([0-9]+)[eE][+]([0-9]{1,3})$"
_MAX_IDS_COMPARED_LOOSELY = 1_000_000
_SEPARATOR = r"[-\s_./:#*()]"
# Letters of other scripts that look like Latin ones, in lower case where their capitals do.
_LOOKALIKES = dict(zip("авекмнорстухіјѕαβεζηικμνορτυχ", "abekmhopctyxijsabezhikmnoptyx", strict=True))
_THOUSANDS = "^[-+]?[1-9][0-9]{0,2},[0-9]{3}$"  # 1,205 may be 1.205 or 1205
# '5e0', '1.2e5' and '1e+05' are numbers, '1E5' is a name: programs write a point or the sign of the exponent.
_WITH_EXPONENT = r"^[-+]?(?:[0-9]+[.][0-9]*e[-+]?[0-9]{1,2}|[0-9]+e(?:[-+][0-9]{1,2}|0{1,2}))$"


def normal_form(text: str) -> str:
    """Return the spelling that a text shares with all others that may mean the same id or level.

    - Unicode compatibility form (NFKC), lower case, invisible characters and outer quotation marks removed;
    - every kind of dash is '-';
    - blanks are removed, but for one between two digits: '1 1' and '11' differ, 'DK 11' and 'dk11' do not;
    - a text that is one number has its shortest spelling: '5', '05', '5.0', '5,0', '5.', '+5' and '5e0' are '5'. A
      number of any length keeps all its digits. '1,205' stays, as its comma may be a decimal point or not. An exponent
      is read where there is a point in front of it or a sign within it ('1e+05'), or where it is zero: '1E5' is a name.

    Examples
    --------
    >>> normal_form("DK\u00a0012\u201334"), normal_form("007.0"), normal_form("1E5")
    ('dk012-34', '7', '1e5')
    """
    return str(normal_forms(pl.Series([text], dtype=pl.String))[0])


def normal_forms(texts: pl.Series) -> pl.Series:
    """Return `normal_form` of each value, (n,) String, null where null. Values of other types are taken as text.

    Ten million plain ids take a second or two; of a column with few levels, ask about the unique values.
    """
    texts = _as_strings(texts)
    rows = (~texts.str.contains(_CANONICAL)).fill_null(False).arg_true()
    if not len(rows):
        return texts
    forms = _fold(texts.gather(rows))
    numeric = forms.str.contains("^[-+.,]?[0-9.,]").fill_null(False).arg_true()
    if len(numeric):
        forms = forms.scatter(numeric, _shortest_numbers(forms.gather(numeric)))
    return forms if len(rows) == len(texts) else texts.clone().scatter(rows, forms)


def is_unknown_code(text: str | None, role: Role = "parent") -> bool:
    """Return whether a text, in any spelling, is a code for unknown or missing.

    Parameters
    ----------
    text
        What stands in the table. None and blanks are unknown.
    role
        'parent': an id of an animal; zeros, -1, -9, -99, ..., dashes and words such as 'none' are codes.
        'level': a class; 'none', 'missing', '-', '0' and '-1' may be treatments or counts, and are no codes.
        'value': a text in a column of numbers; every number is a number, also 0 and -9.
    """
    return bool(are_unknown_codes(pl.Series([text], dtype=pl.String), role)[0])


def are_unknown_codes(texts: pl.Series, role: Role = "parent") -> pl.Series:
    """Return `is_unknown_code` of each value, (n,) Boolean without nulls: True where null."""
    words, pattern = _CODES[role]
    forms = normal_forms(texts).fill_null("")
    return (forms == "") | forms.is_in(list(words)) | forms.str.contains(pattern)


def have_lost_digits(texts: pl.Series) -> pl.Series:
    """Return which ids a spreadsheet has written as rounded numbers, (n,) Boolean without nulls: 2,76E+11."""
    candidates = texts.str.contains_any(["E+", "e+"]).fill_null(False)
    if not candidates.any():
        return candidates
    decimals = texts.str.extract(_ROUNDED, 1).str.len_chars()
    exponent = texts.str.extract(_ROUNDED, 2).cast(pl.Int64, strict=False)
    return (decimals < exponent).fill_null(False)


def find_respelled(texts: pl.Series, ids: pl.Series) -> pl.DataFrame:
    """Return which texts, none of them among the ids as it is written, may be ids in another spelling.

    Columns text, id (the first id with this normal form) and n_ids (how many ids have it: more than one leave open
    which is meant); a row for each unique text with a match, in the order of the texts.
    """
    return _find_by_form(texts, ids, normal_forms)


def find_similar(texts: pl.Series, ids: pl.Series) -> pl.DataFrame:
    """Return which texts are like ids but for separators, zeros in front of digits or letters that look alike.

    As `find_respelled`, of texts that it does not find: 'DE-12', 'DE012' and 'DE_12' are like 'DE12', '3/20' is like
    '3-20', and 'K1O4' is like 'K104'. They may be other animals all the same: this is for questions to the user alone.
    Nothing is compared where there are more than a million ids.
    """
    if len(ids) > _MAX_IDS_COMPARED_LOOSELY:
        ids = ids.clear()
    return _find_by_form(texts, ids, _loose_forms)


def _loose_forms(texts: pl.Series) -> pl.Series:
    """Normal forms without separators, but for those between digits; '' where there is no digit."""
    form = normal_forms(texts)
    form = form.str.replace_many(list(_LOOKALIKES), list(_LOOKALIKES.values()))
    form = form.str.replace_all("([0-9])o", "${1}0").str.replace_all("o([0-9])", "0${1}")
    for _ in range(2):  # twice, as two separators may share a digit
        form = form.str.replace_all(f"([0-9]){_SEPARATOR}+([0-9])", f"${{1}}{_BLANK_KEPT}${{2}}")
    form = form.str.replace_all(_SEPARATOR, "").str.replace_all("(^|[^0-9])0+([0-9])", "${1}${2}")
    return pl.select(pl.when(form.str.contains("[0-9]")).then(form).otherwise(pl.lit(""))).to_series()


def _find_by_form(texts: pl.Series, ids: pl.Series, form_of: Callable[[pl.Series], pl.Series]) -> pl.DataFrame:
    asked = pl.DataFrame({"text": _as_strings(texts).drop_nulls().unique(maintain_order=True)})
    asked = asked.with_columns(form=form_of(asked["text"])).filter(pl.col("form") != "")
    ids = _as_strings(ids)
    forms = form_of(ids)
    wanted = forms.is_in(asked["form"].unique().implode())
    known = pl.DataFrame({"form": forms.filter(wanted), "id": ids.filter(wanted)}).unique(maintain_order=True)
    known = known.group_by("form", maintain_order=True).agg(pl.col("id").first(), n_ids=pl.len())
    return asked.join(known, on="form", how="inner", maintain_order="left").select("text", "id", "n_ids")


def parse_number(text: str, decimal: Literal[".", ","] | None = None) -> float | None:
    """Return the number that a text is, or None; see `parse_numbers`."""
    return parse_numbers(pl.Series([text], dtype=pl.String), decimal)[0]


def parse_numbers(texts: pl.Series, decimal: Literal[".", ","] | None = None) -> pl.Series:
    """Return the finite number that each text is, (n,) Float64, null where it is none.

    A sign may be any dash. Groups of three digits may be divided by blanks, apostrophes, or by that one of comma and
    point that is not the decimal mark.

    Parameters
    ----------
    texts
        (n,) String.
    decimal
        The decimal mark of all values. None: each value says it; '1.205' has a decimal point, '1,5' and '1.205,5' a
        decimal comma, '1,205.5' and '1,205,000' commas of thousands; '1,205' may be either, and is null.
    """
    texts = _as_strings(texts)
    as_written = _to_finite(texts)
    is_other = texts.is_not_null() if decimal == "," else texts.is_not_null() & as_written.is_null()
    rows = is_other.arg_true()
    if not len(rows):
        return as_written
    text = _clean(texts.gather(rows))
    is_grouped = text.str.contains(rf"^[-+]?[0-9]{{1,3}}(?:{_GROUP_MARK}[0-9]{{3}})+(?:[.,][0-9]*)?$")
    text = text.str.replace_all(_GROUP_MARK, "").zip_with(is_grouped, text)
    if decimal == ".":
        numbers = _with_decimal_point(text)
    elif decimal == ",":
        numbers = _with_decimal_comma(text)
    else:
        numbers = _with_decimal_point(text).fill_null(_with_decimal_comma(text))
        numbers = numbers.set(text.str.contains(_THOUSANDS), None)
    return as_written.scatter(rows, numbers)


def _with_decimal_point(text: pl.Series) -> pl.Series:
    """(n,) Float64; commas must divide groups of three digits."""
    grouped = text.str.contains(r"^[-+]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:[.][0-9]*)?$")
    return _to_finite(text.str.replace_all(",", "", literal=True).zip_with(grouped, text))


def _with_decimal_comma(text: pl.Series) -> pl.Series:
    """(n,) Float64; points must divide groups of three digits."""
    grouped = text.str.contains(r"^[-+]?[1-9][0-9]{0,2}(?:[.][0-9]{3})+(?:,[0-9]*)?$")
    text = text.str.replace_all(".", "", literal=True).zip_with(grouped, text)
    is_number = text.str.contains("^[^.]*$") & (text.str.count_matches(",", literal=True) <= 1)
    return _to_finite(text.str.replace(",", ".", literal=True)).set(~is_number, None)


def _to_finite(text: pl.Series) -> pl.Series:
    number = text.cast(pl.Float64, strict=False)
    return number.set(~number.is_finite().fill_null(True), None)


def _as_strings(values: pl.Series) -> pl.Series:
    """String; whole floating numbers as integers are written."""
    if values.dtype.is_float():
        number = pl.col(values.name)
        exact = (number == number.floor()) & (number.abs() < 2.0**53)
        text = (
            pl.when(exact).then(number.cast(pl.Int64, strict=False).cast(pl.String)).otherwise(number.cast(pl.String))
        )
        return values.fill_nan(None).to_frame().select(text).to_series()
    return values if values.dtype == pl.String else values.cast(pl.String)


def _clean(text: pl.Series) -> pl.Series:
    """NFKC without invisible characters, every dash '-', blanks trimmed."""
    text = text.str.normalize("NFKC").str.replace_all(_INVISIBLE, "")
    return text.str.replace_all(_DASHES, "-").str.strip_chars()


def _fold(text: pl.Series) -> pl.Series:
    """Normal forms but for numbers."""
    rows = (~text.str.contains(_PLAIN_ASCII)).fill_null(False).arg_true()
    if not len(rows):
        return text.str.to_lowercase()
    unquoted = _clean(text.gather(rows)).str.replace('^="(.+)"$', "$1")
    for mark in ('"', "'"):
        unquoted = unquoted.str.replace(f"^{mark}(.+){mark}$", "$1")
    # what Excel puts before digits that are text
    unquoted = unquoted.str.replace("^'", "").str.to_lowercase().str.replace_all("ß", "ss", literal=True)
    unquoted = unquoted.str.replace_all("ς", "σ", literal=True)
    for _ in range(2):  # twice, as two blanks may share a digit: '1 1 1'
        unquoted = unquoted.str.replace_all(r"([0-9])\s+([0-9])", f"${{1}}{_BLANK_KEPT}${{2}}")
    unquoted = unquoted.str.replace_all(r"\s+", "").str.replace_all(_BLANK_KEPT, " ", literal=True)
    return text.str.to_lowercase().scatter(rows, unquoted)


def _shortest_numbers(text: pl.Series) -> pl.Series:
    """The texts that are one number in its shortest spelling, the others as they are. text: in lower case."""
    if text.str.contains("^[0-9]+$").all():
        stripped = text.str.strip_chars_start("0")
        return stripped.set(stripped == "", "0")
    exponents = text.str.contains(_WITH_EXPONENT).arg_true()
    if len(exponents):
        written = [format(Decimal(t), "f") for t in text.gather(exponents).to_list()]
        text = text.clone().scatter(exponents, pl.Series(written, dtype=pl.String))
    t = pl.col("text")
    integer_digits = t.str.extract("^[-+]?0*([0-9]*)", 1)
    fraction = t.str.extract("[.,]([0-9]*?)0*$", 1).fill_null("")
    number = pl.concat_str(
        pl.when(integer_digits == "").then(pl.lit("0")).otherwise(integer_digits),
        pl.when(fraction == "").then(pl.lit("")).otherwise(pl.lit(".") + fraction),
    )
    negative = t.str.starts_with("-") & (number != "0")
    signed = pl.when(negative).then(pl.lit("-") + number).otherwise(number)
    is_number = t.str.contains(_NUMBER) & ~t.str.contains(_THOUSANDS)
    return text.to_frame("text").select(pl.when(is_number).then(signed).otherwise(t)).to_series()
