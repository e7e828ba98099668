"""Ids of the records against the pedigree: other spellings, codes for unknown, other parents; ids that are numbers."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers.analyses import analysis, effect, fixed, random, trait

from mmgibbs.config import load_config
from mmgibbs.config.frames import as_polars
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import DataError

N = 12
PEDIGREE = [(i, "", "") for i in range(1, 5)] + [(i, 1 + i % 2, 3 + i % 2) for i in range(5, N + 1)]
DAMS = {i: str(d) for i, _, d in PEDIGREE}


def pedigree(name=str) -> pl.DataFrame:
    cells = [[name(v) if v else None for v in row] for row in PEDIGREE]
    return pl.DataFrame(cells, schema=["id", "sire", "dam"], orient="row")


def records(animals, dams=None, column="dam") -> pl.DataFrame:
    frame = pl.DataFrame({"animal": animals, "y": [float(i % 5) for i in range(len(animals))]})
    return frame if dams is None else frame.with_columns(pl.Series(column, dams))


def run(frame, kin=None, terms=None, **data):
    genetic = {"genetic": random("pedigree", _=effect("animal", traits=["y"], unknown_level="omit"))}
    return prepare(
        analysis(frame, ["y"], random=genetic | (terms or {}), pedigree=pedigree() if kin is None else kin, **data)
    )


def animals_of(prepared):
    term = prepared.design.terms[-1] if len(prepared.design.terms) == 1 else prepared.design.terms[1]
    ids = prepared.pedigree.ids.to_list()
    return [ids[level] if level >= 0 else None for level in term.effects[0].level]


@pytest.mark.parametrize(
    ("name", "spell"),
    [
        (str, lambda i: f"0{i}"),
        (lambda i: f"{i:05d}", str),  # leading zeros that a spreadsheet has cut off
        (lambda i: f"DE-{i}", lambda i: f"de-{i}"),
        (lambda i: str(100000 * i), lambda i: f"{i}e+05"),  # as R writes 100000
    ],
)
def test_records_in_another_spelling_are_told_which(name, spell):
    """The advice to add the animals would lose all relationships; where it is taken, a warning says so."""
    frame = records([spell(i) for i in range(1, 10)])
    with pytest.raises(DataError) as error:
        run(frame, pedigree(name))
    message = str(error.value)
    assert "needed ids written as in the pedigree" in message and "add_missing_animals" not in message
    assert f"pedigree has 9 of 9 such ids in another spelling: '{name(1)}' for " in message
    p = run(frame, pedigree(name), add_missing_animals=True)
    (warning,) = p.warnings
    assert "9 of the 9 animals with records are not in the pedigree" in warning
    assert f"the pedigree has 9 of them in another spelling, such as '{name(1)}' for" in warning


def test_strangers_get_the_advice_to_add_them():
    with pytest.raises(DataError, match="animal 'K99' .*; needed a pedigree row for it, or 'data.add_missing_animals:"):
        run(records(["1", "2", "K99"]))
    assert not run(records(["1", "2", "K99"]), add_missing_animals=True).warnings


ENVIRONMENT = {"mpe": random(_=effect("dam", traits=["y"], unknown_level="omit"))}


@pytest.mark.parametrize(
    ("code", "column"),
    [
        ("UNK", "dam"),
        ("unknown", "dam_id"),
        (".", "Mother"),
        ("-9", "dam"),
        ("N/A", "dam"),
        ("?", "dam"),
        ("none", "dam"),
    ],
)
def test_a_code_for_unknown_is_no_dam(code, column):
    dams = [code if d == "" else d for d in DAMS.values()]
    terms = {"mpe": random(_=effect(column, traits=["y"], unknown_level="omit"))}
    p = run(records([str(i) for i in DAMS], dams, column), terms=terms)
    labels = p.levels[[t.name for t in p.design.terms].index("mpe")]
    assert sorted(labels.ids) == ["3", "4"]
    (warning,) = p.warnings
    assert f"column '{column}' (model.random.mpe.level): '{code}' (4 records) is taken for an unknown" in warning
    refused = {"mpe": random(_=effect(column, traits=["y"]))}
    with pytest.raises(DataError, match="row 1: found no known level in column .* for unknown; needed a known level,"):
        run(records([str(i) for i in DAMS], dams, column), terms=refused)


@pytest.mark.parametrize("code", ["0", "0.0", "00", "na", "NA"])
def test_the_usual_codes_in_any_spelling_are_no_warning(code):
    dams = [code if d == "" else d for d in DAMS.values()]
    p = run(records([str(i) for i in DAMS], dams), terms=ENVIRONMENT)
    assert not p.warnings and "0" not in "".join(p.levels[-1].ids)


def test_a_dam_that_the_pedigree_calls_unk_is_a_dam():
    kin = pedigree(lambda i: "UNK" if i == 3 else str(i))
    dams = ["UNK" if DAMS[i] == "3" else "4" for i in range(5, N + 1)]
    p = run(records([str(i) for i in range(5, N + 1)], dams), kin, ENVIRONMENT)
    assert sorted(p.levels[-1].ids) == ["4", "UNK"] and not p.warnings


@pytest.mark.parametrize(
    ("column", "kind", "others"), [("dam", "maternal", 1), ("Dam_ID", "environment", 3), ("mother", "maternal", 8)]
)
def test_dams_that_are_not_the_pedigrees_are_counted(column, kind, others):
    animals = list(range(5, N + 1))
    dams = [("3" if DAMS[i] == "4" else "4") if k < others else DAMS[i] for k, i in enumerate(animals)]
    of = effect(column, traits=["y"])
    terms = {"other": random(_=of) if kind == "environment" else random("pedigree", _=of)}
    (warning,) = run(records([str(i) for i in animals], dams, column), terms=terms).warnings
    assert f"column '{column}' names another dam than the pedigree in {others} of 8 records with both" in warning
    assert f"row 1, animal '5': '{dams[0]}', in the pedigree '{DAMS[5]}'" in warning


def test_the_same_dams_and_unknown_ones_are_silent():
    dams = [DAMS[i] or "0" for i in range(1, N + 1)]
    assert not run(records([str(i) for i in range(1, N + 1)], dams), terms=ENVIRONMENT).warnings
    sires = [str(PEDIGREE[i - 1][1]) for i in range(5, N + 1)]
    terms = {"s": random(_=effect("sire", traits=["y"]))}
    assert not run(records([str(i) for i in range(5, N + 1)], sires, "sire"), terms=terms).warnings


BIG = 10**17 + 1000 * np.arange(1, N + 1)


def big(value):
    return int(BIG[value - 1])


def parents(role, make):
    return make([None if not row[role] else big(row[role]) for row in PEDIGREE])


MAKERS = {
    "Int64": lambda v: pd.array(v, dtype="Int64"),
    "UInt64": lambda v: pd.array(v, dtype="UInt64"),
    "object": lambda v: pd.Series(v, dtype=object),
    "str": lambda v: pd.Series([None if x is None else str(x) for x in v]),
    "category": lambda v: pd.Categorical([None if x is None else str(x) for x in v]),
    "Decimal": lambda v: pd.Series([None if x is None else Decimal(x) for x in v], dtype=object),
    "mixed": lambda v: pd.Series([x if x is None or i % 2 else str(x) for i, x in enumerate(v)], dtype=object),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_long_ids_of_pandas_keep_their_digits(kind):
    kin = pd.DataFrame({"id": BIG, "sire": parents(1, MAKERS[kind]), "dam": parents(2, MAKERS[kind])})
    p = run(as_polars(pd.DataFrame({"animal": BIG[4:], "y": np.arange(8.0)})), as_polars(kin))
    ids = p.pedigree.ids.to_list()
    assert sorted(ids) == sorted(map(str, BIG)) and not p.warnings
    assert [ids[s] for s in p.pedigree.sire[4:]] == [str(big(row[1])) for row in PEDIGREE[4:]]


@pytest.mark.parametrize(
    "kind", [pl.Int64, pl.UInt64, pl.Int128, pl.String, pl.Categorical, pl.Decimal(38, 0), pl.Decimal(38, 2)]
)
def test_long_ids_of_polars_and_parquet_keep_their_digits(tmp_path, kind):
    columns = {"id": BIG.tolist(), "sire": parents(1, list), "dam": parents(2, list)}
    kin = pl.DataFrame({c: pl.Series(v, dtype=pl.Int64) for c, v in columns.items()})
    kin = kin.with_columns(pl.col("sire", "dam").cast(pl.String if kind == pl.Categorical else kind).cast(kind))
    frame = pl.DataFrame({"animal": BIG[4:], "y": np.arange(8.0)})
    if kind != pl.Int128:
        kin.write_parquet(tmp_path / "kin.parquet")
        kin = tmp_path / "kin.parquet"
    p = run(frame, kin)
    assert sorted(p.pedigree.ids) == sorted(map(str, BIG)) and (p.pedigree.sire[4:] >= 0).all()


@pytest.mark.parametrize(("kind", "first"), [(pl.Float64, 2**53), (pl.Float32, 2**24)])
@pytest.mark.parametrize("where", ["pedigree", "records"])
def test_floats_that_lose_digits_of_ids_are_refused(kind, first, where):
    ids = [first + 2 * i for i in range(4)]
    floats = pl.Series("id", ids).cast(kind)
    kin = pl.DataFrame({"id": floats if where == "pedigree" else pl.Series(ids), "sire": [None] * 4, "dam": [None] * 4})
    frame = pl.DataFrame({"animal": floats if where == "records" else pl.Series(ids), "y": [1.0, 2, 3, 5]})
    with pytest.raises(DataError, match=r"found \d+ as a floating number .* needed ids as text or whole numbers"):
        run(frame, kin)


@pytest.mark.parametrize("columns", ["{id: id, sire: null, dam: dam}", "{id: 1, sire: ~, dam: 2}", "{sire: null}"])
def test_a_pedigree_without_sires_is_stated_in_the_analysis(tmp_path, columns):
    """And is the same when the resolved file is read again."""
    kin = pedigree().select("id", "dam").with_columns(sex=pl.lit("F"))
    kin.write_csv(tmp_path / "ped.csv")
    records([str(i) for i in range(1, N + 1)]).write_csv(tmp_path / "rec.csv")
    (tmp_path / "a.yaml").write_text(
        "name: t\ndata: {phenotypes: rec.csv, pedigree: ped.csv, pedigree_header: true, pedigree_columns: "
        f"{columns}}}\ntraits: [y]\nmodel: {{random: {{animal: {{relationship: pedigree}}}}}}\n"
    )
    config = load_config(tmp_path / "a.yaml")
    for stated in (config, load_config(config.resolved())):
        p = prepare(stated)
        assert (p.pedigree.sire == -1).all() and not p.warnings
        assert [p.pedigree.ids[int(d)] for d in p.pedigree.dam[4:]] == [DAMS[i] for i in range(5, N + 1)]


def test_ids_are_no_trait_and_no_covariate(tmp_path):
    (tmp_path / "numbers.csv").write_text("id,sire,dam\n1,3,4\n2,3,4\n")
    frame = pl.DataFrame({"calf": [1, 2, 1], "sire": [3, 3, 3], "y": [1.0, 2, 4]})
    of = {"g": random("pedigree", _=effect("calf", traits=["y"]))}
    kin = {"pedigree": tmp_path / "numbers.csv", "add_missing_animals": True}
    with pytest.raises(DataError) as refused:
        prepare(analysis(frame, ["y"], {"age": fixed("calf", "covariate", traits=["y"])}, of, **kin))
    assert str(refused.value) == (
        "phenotypes: found column 'calf' as the values of a covariate (model.fixed.age), and as ids of animals "
        "(model.random.g.level); needed a column of numbers that measure something, or no covariate"
    )
    with pytest.raises(DataError, match=r"'calf' as the values of a trait \(traits.y\), and as ids of animals"):
        prepare(analysis(frame, [trait("y", "calf")], {}, of, **kin))
    with pytest.raises(DataError, match=r"a trait \(traits.y\), and as ids of animals"):
        maternal = {"d": effect("calf", traits=["y"]), "m": effect("sire", traits=["y"])}
        prepare(analysis(frame, [trait("y", "sire")], {}, {"g": random("pedigree", **maternal)}, **kin))
    # a class of them is an effect as any other, and so is an effect of independent levels
    prepare(analysis(frame, ["y"], {"calf": fixed("calf", traits=["y"])}))
    p = prepare(analysis(frame, ["y"], {"sire": fixed("sire", "covariate", traits=["y"])}))
    assert p.warnings == (
        "phenotypes: model.fixed.sire: column 'sire' has ids, by its name: are its numbers those of a covariate?",
    )
    (warning,) = prepare(analysis(frame.with_columns(id=pl.Series([5, 6, 9])), ["id"])).warnings
    assert warning == "phenotypes: traits.id: column 'id' has ids, by its name: are its numbers those of a trait?"


def test_levels_that_a_file_relates_may_be_a_covariate_too(tmp_path):
    """Days with relationships of their own, and a trend over the days."""
    (tmp_path / "days.txt").write_text("1 1 2\n2 2 2\n3 3 2\n2 1 -0.5\n3 2 -0.5\n")
    frame = pl.DataFrame({"day": [1, 2, 3] * 4, "y": np.arange(12.0) % 5})
    of = {"days": random(str(tmp_path / "days.txt"), _=effect("day", traits=["y"]))}
    p = prepare(analysis(frame, ["y"], {"trend": fixed("day", "covariate", traits=["y"])}, of))
    assert [t.name for t in p.design.terms] == ["intercept", "trend", "days"] and p.warnings == ()


NICKNAMES = {"3": "Bella", "4": "Rosa", "": ""}


@pytest.mark.parametrize("column", ["dam", "Mother", "mum_tag"])
def test_mothers_by_another_name_are_asked_about(column):
    """An effect without relationships takes any level: half of the mothers must be animals of the pedigree."""
    stated = {"pedigree_columns": {"id": "id", "sire": "sire", "dam": "mum_tag"}} if column == "mum_tag" else {}
    kin = pedigree().rename({"dam": "mum_tag"}) if stated else pedigree()
    terms = {"maternal": random("identity", _=effect(column, traits=["y"], unknown_level="omit"))}
    animals = [str(i) for i in range(5, N + 1)]

    def warnings(name):
        prepared = run(records(animals, [name(DAMS[i]) for i in range(5, N + 1)], column), kin, terms, **stated)
        return [w for w in prepared.warnings if "are they other names of its animals?" in w]

    (said,) = warnings(NICKNAMES.get)
    assert f"column '{column}' (model.random.maternal.level) has 2 of 2 dams that are not in the pedigree" in said
    assert "such as 'Bella', 'Rosa'" in said or "such as 'Rosa', 'Bella'" in said
    assert not warnings(str) and not warnings(lambda d: {"3": "Bella"}.get(d, d))
    (said,) = warnings(lambda d: f"0{d}")
    assert "in another spelling: '4' for '04', '3' for '03'" in said
