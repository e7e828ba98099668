"""Tables as users have them, for `mmgibbs init`: the breeding values of the plain tables, or the user is told.

'same': the drafted analysis has the effects and the breeding values of that of the plain tables, and nobody is warned;
'told': refused, or a warning of `init` or of `check`; 'refused': an error of `init`.
"""

from itertools import permutations

import numpy as np
import pytest
from helpers.drafted_tables import PLAIN_EFFECTS, DraftCase, changed, solve_draft
from helpers.spelled_tables import (
    PARENTS,
    PEDIGREE_COLUMNS,
    PLAIN,
    RECORD_COLUMNS,
    RECORDS,
    Spelling,
    comma,
    delimited,
    grouped,
    plain_id,
)

ROWS, PARENT_ROWS = PLAIN.records(), PLAIN.pedigree()
NAMES = list(RECORD_COLUMNS)
FAT = {"traits": ("fat",)}
NO_NAMES = ("fixed: column2 column3", PLAIN_EFFECTS[1])  # nothing says what the ages are


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    """Breeding values of the plain tables, of the first trait and of fat."""
    folder, found = tmp_path_factory.mktemp("plain"), {}
    without_age = records([[*r[:3], *r[4:]] for r in ROWS], [*NAMES[:3], *NAMES[4:]])
    for what, trait, text in (("milk", "milk", None), ("fat", "fat", None), ("without age", "milk", without_age)):
        values = {}
        case = DraftCase("plain", records=text, options={"traits": (trait,)}, effects=None)
        outcome, said = solve_draft(case, folder, None, values)
        assert outcome == "same", said
        found[what] = np.array([values[i] for i in PLAIN.ids])
    return found


def assert_right(cases, folder, right):
    wrong = []
    for case in cases:
        of = right["without age" if case.effects == NO_NAMES else case.options.get("traits", ("milk",))[0]]
        outcome, said = solve_draft(case, folder, of)
        accepted = case.expected.replace("told", "told|refused").split("|")
        if outcome not in accepted or (outcome == "refused" and not said):
            wrong.append(f"{case.name}: {outcome}, expected {case.expected}: {said[:400]}")
    assert not wrong, "\n".join(wrong)


def records(rows=ROWS, names=NAMES, separator=",", end="\n"):
    return delimited(rows, names, separator, end)


def pedigree(rows=PARENT_ROWS, names=PEDIGREE_COLUMNS, separator=",", end="\n"):
    return delimited(rows, names, separator, end)


def with_column(name, value, at=None):
    """The records with one more column; value: function of the record and its number."""
    at = len(NAMES) if at is None else at
    rows = [[*row[:at], value(r, k), *row[at:]] for k, (row, r) in enumerate(zip(ROWS, RECORDS, strict=True))]
    return records(rows, [*NAMES[:at], name, *NAMES[at:]])


def replaced_column(name, value, new_name=None):
    """The records with the cells of a column rewritten; value: function of the cell and the record's number."""
    j = NAMES.index(name)
    names = [new_name if n == name and new_name is not None else n for n in NAMES]
    return records(changed(ROWS, lambda row, k: [*row[:j], value(row[j], k), *row[j + 1 :]]), names)


def text_cases():
    cases = []

    def add(name, expected="same", text=None, kin=None, **other):
        cases.append(DraftCase(name, expected, text, kin, **other))

    for ending in ("txt", "dat", "tsv", "prn", ""):
        add(f"called .{ending}", "same", records(separator=" "), pedigree(separator=" "), endings=(ending, ending))
    plain, kin = records(), pedigree()
    add("comment above the pedigree", "refused", None, "# from the herd book\n" + kin)
    add("row numbers without a name", "same", records([[str(k + 1), *r] for k, r in enumerate(ROWS)], ["", *NAMES]))
    add("row numbers named X", "same", records([[str(k + 1), *r] for k, r in enumerate(ROWS)], ["X", *NAMES]))
    add("row numbers from 0", "same", records([[str(k), *r] for k, r in enumerate(ROWS)], ["Unnamed: 0", *NAMES]))
    holes = [[str(2 * k + 1 + k // 7), *r] for k, r in enumerate(ROWS)]
    add("row numbers with holes", "same", records(holes, ["rowid", *NAMES]))
    add("row names of R", "refused", records([[f'"{k}"', *r] for k, r in enumerate(ROWS)], separator=" "))
    add("names again", "told", plain + plain)
    add("units below the names", "told", ",".join(NAMES) + "\n,,,d,kg,%\n" + records(names=None))
    add("total below", "told", plain + "Total,,,,412300,\n")
    add("mean below", "told", plain + "Mean,,,,6871.6,\n")
    add("a record twice", "told", plain + plain.splitlines()[9] + "\n")
    for order in permutations(range(3)):
        names = [PEDIGREE_COLUMNS[j] for j in order]
        add(f"pedigree {names}", "same", None, pedigree([[r[j] for j in order] for r in PARENT_ROWS], names))
        if order == (0, 1, 2):
            add("pedigree without names", "same", None, pedigree(names=None))
        else:
            rows = [[r[j] for j in order] for r in PARENT_ROWS]
            expected = "same" if names[0] == "id" else "told"  # sire and dam exchanged are the same relationships
            add(f"pedigree {names} without names", expected, None, pedigree(rows, None))
    more = [[*r, "2011", "x"] for r in PARENT_ROWS]
    add("pedigree of more columns", "same", None, pedigree(more, [*PEDIGREE_COLUMNS, "year", "note"]))
    add("no names", "same", records(names=None), effects=NO_NAMES)
    add("no names, nor the pedigree", "same", records(names=None), pedigree(names=None), effects=NO_NAMES)
    for mark in (";", "\t", " "):
        add(f"no names, separator {mark!r}", "same", records(names=None, separator=mark), effects=NO_NAMES)
    widths = [max(len(r[j]) for r in [*ROWS, NAMES]) + 2 for j in range(6)]
    kin_widths = [6, 6, 6]
    fixed = "".join("".join(c.rjust(w) for c, w in zip(r, widths, strict=True)) + "\n" for r in [NAMES, *ROWS])
    fixed_kin = "".join(
        "".join(c.ljust(w) for c, w in zip(r, kin_widths, strict=True)) + "\n" for r in [PEDIGREE_COLUMNS, *PARENT_ROWS]
    )
    gaps = fixed.replace(" NA", "   ")
    add("aligned columns", "same", fixed, fixed_kin)
    add("aligned columns with gaps", "refused", gaps)
    both = {"data": {"widths": widths, "pedigree_widths": kin_widths}}
    add("fixed widths with gaps", "same", gaps, fixed_kin, options=both)
    add("fixed widths, one wrong", "told", gaps, options={"data": {"widths": [widths[0] - 3, *widths[1:]]}})
    return cases


@pytest.mark.slow
def test_text(tmp_path, right):
    assert_right(text_cases(), tmp_path, right)


def number_cases():
    cases = []

    def add(name, expected, spelling, separator=";", **options):
        text = records(spelling.records(), separator=separator)
        cases.append(DraftCase(name, expected, text, spelling=spelling, options=options))

    add("decimal commas", "same", Spelling(number=comma))
    add("decimal commas and tabs", "same", Spelling(number=comma), separator="\t", **FAT)
    add("decimal commas between commas", "told", Spelling(number=comma), separator=",")
    for mark in (",", ".", " ", "\u00a0", "\u202f", "'"):
        add(f"thousands {mark!r}", "same|told", Spelling(number=grouped(mark, "," if mark == "." else ".")))
    for name, expected, write in (
        ("plus", "same", lambda x: "+" + x),
        ("exponents", "same", lambda x: f"{float(x):.8e}"),
        ("no-break space", "same", lambda x: "\u00a0" + x),
        ("unit", "told", lambda x: x + " kg"),
        ("Fortran", "told", lambda x: f"{float(x):.8e}".replace("e", "D")),
        ("letter for a zero", "told", lambda x: x.replace("0", "O")),
    ):
        add(name, expected, Spelling(number=write), **FAT)
    for code in ("", "NA", " NA", ".", "-", "*", "NaN", "nan", "null", "NULL", "N/A", "na", "None", "?",
                 "#N/A", "--", "ND", "x", "\\N", "\u2013", "(blank)", "<NA>", "missing", "nv", "n.d.", "...",
                 "#VALUE!", "Inf"):  # fmt: skip
        add(f"missing {code!r}", "same|told", Spelling(missing=code), **FAT)
        add(f"missing {code!r} beside the trait", "same|told", Spelling(missing=code))
    for code in ("0", "0.0", "-9", "-99", "-999", "9999", "-1", "32767", "1e30", "999.9", "-9.0", "99", "9.9999"):
        add(f"missing {code!r}", "told", Spelling(missing=code), **FAT)
    return cases


@pytest.mark.slow
def test_numbers(tmp_path, right):
    assert_right(number_cases(), tmp_path, right)


def id_cases():
    cases = []

    def add(name, expected="same", spelling=PLAIN, text=None, kin=None, **other):
        cases.append(DraftCase(name, expected, text, kin, spelling, **other))

    forms = (
        "{}", "{:04d}", "27600000000000{:04d}", "DK {:05d} 12", "DE-{:03d}-A", "{}/2020", "k_{}", "Kü{}", "#{}",
        "*{}", "{}E5", "2020-01-{:02d}", "O'{}", "A.{}", "{}.0",
    )  # fmt: skip
    for form in forms:
        write = lambda i, form=form: form.format(i + 1)
        add(f"ids {form}", "same", Spelling(write))
    for name, write, other in (
        ("floats in the records", lambda i: str(i + 1), lambda i: f"{i + 1}.0"),
        ("points in the pedigree", lambda i: f"{i + 1}.0", lambda i: str(i + 1)),
        ("zeros in the records", lambda i: str(i + 1), lambda i: f"{i + 1:04d}"),
        ("small letters in the records", plain_id, lambda i: plain_id(i).lower()),
        ("blanks in the records", plain_id, lambda i: "K " + plain_id(i)[1:]),
        ("dashes in the records", lambda i: f"K{i}", lambda i: f"K-{i}"),
        ("quotes in the records", plain_id, lambda i: f"'{plain_id(i)}'"),
        ("other ids in the records", plain_id, lambda i: f"cow{i}"),
    ):
        add(name, "same" if "floats" in name else "told", Spelling(other, write))
    for cell in ("0", ".", ""):
        add(f"a record of {cell!r}", "told", text=records([*ROWS, [cell, *ROWS[3][1:4], "5511.35", "4.1"]]))
    for code in ("0", "", "NA", "00", "0.0", "na", ".", "-", "?", "*", "-9", "-99", "-999", "-1", "UNK", "Unknown",
                 "N/A",
                 "NaN", "NULL", "None", "\\N", "--", "\u2013", "x", "999", "99999", "(null)", "unbekannt", "founder",
                 "0000000", "-0", "nd", "UUUUU"):  # fmt: skip
        add(f"unknown parent {code!r}", "same|told", Spelling(unknown=code))
    for code in ("0", "", "-9", "-999", "0000000", "UNK"):
        add(f"unknown parent {code!r} among numbers", "same|told", Spelling(lambda i: str(i + 1), unknown=code))
    for names in ("ID Sire Dam", "calf father mother", "Animal_No Sire-ID Dam_ID", "animal sire dam", "Animal SIRE DAM",
                  "indiv pat mat", "IID PID MID", "ego dad mum"):  # fmt: skip
        header = names.split()
        add(f"pedigree named {header}", "same|told", kin=pedigree(names=header))
    add("pedigree named in German", "same", kin=pedigree(names=("Tier", "Vater", "Mutter")))
    sires = with_column("sire", lambda r, k: parent(r.animal, 0))
    add("exchanged names", "told", text=sires, kin=pedigree(names=("id", "dam", "sire")))
    add("without founders", "same", kin=pedigree([r for r in PARENT_ROWS if set(r[1:]) != {"0"}]))
    add("an animal twice", "same", kin=pedigree([*PARENT_ROWS, PARENT_ROWS[20]]))
    add("a loop", "told", kin=pedigree([*PARENT_ROWS, ["K900", "K901", "0"], ["K901", "K900", "0"]]))
    add("names of animals again", "told", kin=pedigree() + "id,sire,dam\n")
    for where in ("before", "behind"):
        at = 1 if where == "before" else len(NAMES)
        both = [
            [*r[:at], parent(x.animal, 0), parent(x.animal, 1), *r[at:]] for r, x in zip(ROWS, RECORDS, strict=True)
        ]
        add(f"sire and dam {where}", "same", text=records(both, [*NAMES[:at], "sire", "dam", *NAMES[at:]]))
        tagged = [[*r[:at], f"DE{x.animal:08d}", *r[at:]] for r, x in zip(ROWS, RECORDS, strict=True)]
        for name in ("eartag", "name", "tag_no", "official_id", "id"):
            add(f"{name} {where}", "same", text=records(tagged, [*NAMES[:at], name, *NAMES[at:]]))
        numbered = [[*r[:at], str(x.animal + 1), *r[at:]] for r, x in zip(ROWS, RECORDS, strict=True)]
        for name in ("cow_number", "code", "number", "recoded"):
            text = records(numbered, [*NAMES[:at], name, *NAMES[at:]])
            add(f"numbers of animals as {name} {where}", "same", text=text)
    return cases


def parent(animal, which):
    return PLAIN.ids[PARENTS[animal][which]] if PARENTS[animal][which] is not None else "0"


@pytest.mark.slow
def test_ids_and_parents(tmp_path, right):
    assert_right(id_cases(), tmp_path, right)


def column_cases():
    cases = []

    def add(name, expected="same", text=None, **other):
        cases.append(DraftCase(name, expected, text, **other))

    herds = {"north": "1", "south": "2", "east": "3"}
    # sexes
    sexes = "F M, f m, female male, 1 2, 2 1, 0 1, w m, cow bull, weiblich männlich"
    for female, male in (pair.split() for pair in sexes.split(", ")):
        write = lambda s, k, f=female, m=male: f if s == "F" else m
        add(f"sexes {female} {male}", "same", replaced_column("sex", write))
    as_gender = ("fixed: Gender age herd", "random: genetic permanent_environment")
    add("sexes as gender", "same", replaced_column("sex", lambda s, k: s, "Gender"), effects=as_gender)
    for name, some in (
        ("small", str.lower),
        ("blank inside", lambda s: s + "\u200b"),
        ("word", lambda s: {"F": "Female", "M": "Male"}[s]),
    ):
        write = lambda s, k, some=some: some(s) if k % 6 == 0 else s
        add(f"some sexes {name}", "told|different" if name == "word" else "told", replaced_column("sex", write))
    for code in (".", "?", "U", "0", "NA", "", "unknown", "-9"):
        expected = "told|different" if code in ("U", "0") else "told"
        write = lambda s, k, code=code: code if k % 8 == 0 else s
        add(f"sex {code!r} of some", expected, replaced_column("sex", write))
    # herds
    add("herds as numbers", "same", replaced_column("herd", lambda h, k: herds[h]))
    add("herds as long numbers", "same", replaced_column("herd", lambda h, k: f"27600{herds[h]}"))
    add("herds as 1.0", "same", replaced_column("herd", lambda h, k: herds[h] + ".0"))
    add("herds as 1 and 1.0", "told", replaced_column("herd", lambda h, k: herds[h] + ".0" * (k % 3 == 0)))
    add("herds as North and north", "told", replaced_column("herd", lambda h, k: h.title() if k % 4 == 0 else h))
    for code in (".", "?", "unknown", "-9", "-999", "NA", ""):
        write = lambda h, k, code=code: code if k % 8 == 0 else herds[h]
        add(f"herd {code!r} of some", "told", replaced_column("herd", write))
    # ages
    for code in (".", "NA", "", "-9", "-999", "0", "9999"):
        add(f"age {code!r} of some", "told", replaced_column("age", lambda a, k, code=code: code if k % 8 == 0 else a))
    # twins
    add("herd and its name", "same", with_column("herd_code", lambda r, k: herds[r.herd]))
    add("herd and its name before", "same", with_column("herd_name", lambda r, k: r.herd.title(), 1), effects=None)
    add("sex and its code", "same", with_column("sex_code", lambda r, k: {"F": "2", "M": "1"}[r.sex]))
    add("age in months", "same", with_column("age_months", lambda r, k: f"{int(r.age) / 30.5:.4f}"), effects=None)
    rounded = with_column("age_months", lambda r, k: f"{int(r.age) / 30.5:.0f}")
    add("age in rounded months", "same|told", rounded, effects=None)
    add("age squared", "same", with_column("age2", lambda r, k: str(int(r.age) ** 2)))
    add("milk in pounds", "same", with_column("milk_lb", lambda r, k: f"{float(r.milk) * 2.20462:.4f}"))
    pounds = with_column("milk_lb", lambda r, k: f"{float(r.milk) * 2.20462:.5f}", 4)
    add("milk in pounds before", "same", pounds, effects=None, options={"traits": ("milk",)})
    add("logarithm of milk", "same", with_column("log_milk", lambda r, k: f"{np.log(float(r.milk)):.6f}"))
    add("milk less its mean", "same", with_column("milk_dev", lambda r, k: f"{float(r.milk) - 6871:.3f}"))
    add("milk again", "same", with_column("milk_copy", lambda r, k: r.milk))
    rank = lambda r, k: str(1 + sum(float(o.milk) > float(r.milk) for o in RECORDS))
    add("rank of milk", "same", with_column("rank", rank))
    add("ebv", "same", with_column("ebv", lambda r, k: f"{(r.animal * 37 % 17) - 8.5:.3f}", 1))
    means = {"north": "6711.3", "south": "7011.2", "east": "6899.9"}
    add("herd mean", "same", with_column("herd_mean", lambda r, k: means[r.herd]))
    # dates and years
    for name, write in (
        ("2011-03-04", "2011-{m:02d}-{d:02d}"),
        ("04.03.2011", "{d:02d}.{m:02d}.2011"),
        ("4.3.11", "{d}.{m}.11"),
        ("03/04/2011", "{m:02d}/{d:02d}/2011"),
        ("4-Mar-2011", "{d}-Mar-2011"),
        ("2011-03-04 00:00:00", "2011-{m:02d}-{d:02d} 00:00:00"),
        ("20110304", "2011{m:02d}{d:02d}"),
        ("110304", "11{m:02d}{d:02d}"),
        ("2011/03/04", "2011/{m:02d}/{d:02d}"),
        ("04032011", "{d:02d}{m:02d}2011"),
        ("201103", "2011{m:02d}"),
        ("Mar 2011", "Mar 20{m:02d}"),
        ("40606", "4{m:02d}{d:02d}"),
    ):
        value = lambda r, k, write=write: write.format(m=1 + k % 12, d=1 + (k * 11) % 28)
        for column in ("date", "dob"):
            # months, which are classes, and days since 1900
            is_used = name == "Mar 2011" or (column == "date" and name in ("201103", "40606"))
            effects = (f"fixed: {' '.join(sorted(['age', column, 'herd', 'sex']))}", PLAIN_EFFECTS[1])
            expected, effects = ("new", effects) if is_used else ("same", None)
            add(f"{column} {name}", expected, with_column(column, value), effects=effects)
    years = with_column("year", lambda r, k: str(2010 + k % 3))
    add("a year", "new", years, effects=("fixed: age herd sex year", PLAIN_EFFECTS[1]))
    # names
    names = "Milk|MILK|milk yield|milk (kg)|milk[kg]|Milk_kg|milk/day|milk.305|milk:305|milk #1|Milchmenge milk"
    for name in [*names.split("|"), "mílk yield", "305_milk", "y milk", "'milk'", "milk, kg"]:
        cell = f'"{name}"' if "," in name else name
        add(f"milk named {name}", "same", replaced_column("milk", lambda m, k: m, cell))
    names = "no|yes|on|null|true|n|y|1st|~|residual|genetic|mean|herd*year|herd & year|- herd|? herd|herd: a"
    for name in names.split("|"):
        add(f"herd named {name}", "same", replaced_column("herd", lambda h, k: h, name), effects=None)
    names = "Animal|ID|calf|Tier|cow|individual|animal id|ANIMAL_ID|ear tag|Tag|lamb|x|name"
    for name in names.split("|"):
        add(f"animal named {name}", "same", replaced_column("animal", lambda a, k: a, name))
    add("a column twice", "told", with_column("herd", lambda r, k: r.herd))
    # genotypes beside
    snps_of = lambda animal: [str((animal * (j + 3) + j) % 3) for j in range(12)]
    snps = [[*row, *snps_of(r.animal)] for row, r in zip(ROWS, RECORDS, strict=True)]
    add("SNPs beside", "same", records(snps, [*NAMES, *(f"snp{j}" for j in range(12))]))
    add("rs SNPs beside", "same", records(snps, [*NAMES, *(f"rs{j * 1733 + 1100}" for j in range(12))]))
    # counts and codes
    parities = with_column("parity", lambda r, k: str(1 + k % 3))
    add("parity", "new", parities, effects=("fixed: age herd parity sex", PLAIN_EFFECTS[1]))
    add("a constant", "same", with_column("breed", lambda r, k: "HF"))
    add("an empty column", "same", with_column("remarks", lambda r, k: ""))
    add("remarks", "same", with_column("remarks", lambda r, k: "lame" if k == 7 else "calved twice" if k == 11 else ""))
    farmers = {"north": "Jones", "south": "Smith", "east": "Olsen"}
    add("names of people", "same", with_column("farmer", lambda r, k: farmers[r.herd]))
    add("a comment that numbers", "same", with_column("serial", lambda r, k: str(k + 1)))
    return cases


@pytest.mark.slow
def test_columns(tmp_path, right):
    assert_right(column_cases(), tmp_path, right)
