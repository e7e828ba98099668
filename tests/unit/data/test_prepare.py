"""Small tables through `prepare`, each array checked by hand."""

import numpy as np
import polars as pl
import pytest
from helpers.analyses import analysis, effect, fixed, random, trait
from helpers.prepared_tables import ids_of_records, labels, names, term
from reference import dense

from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ConfigError, DataError
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.relationships.user_inverse import SparseInverse


def test_two_traits_classes_pedigree_and_weights(files):
    fixed_effects = {"herd": fixed("herd", traits=["bw", "ww"]), "gender": fixed("sex", traits=["ww"])}
    direct, maternal = effect("animal", traits=["bw", "ww"]), effect("dam", traits=["ww"])
    genetic = {"genetic": random("pedigree", direct=direct, maternal=maternal)}
    tables = {"pedigree": files / "pedigree.csv", "weights": "w"}
    a = analysis(files / "phenotypes.csv", ["bw", "ww"], fixed_effects, genetic, **tables)
    stages = []
    p = prepare(a, stages.append)
    d = p.design
    assert stages == list(p.timings) == ["phenotypes", "pedigree", "fixed effects", "random effects", "rank"]
    assert names(p) == ["herd", "gender", "genetic"] and d.traits == ("bw", "ww")
    # calf4 observes neither trait
    assert p.record_row.tolist() == [2, 3, 4, 6]
    assert p.counts["records"] == {"read": 5, "used": 4, "left_out": {"no observed trait": 1}}
    assert p.counts["observations"] == {"bw": 3, "ww": 3}
    assert "1 of 5 records left out: no observed trait" in d.notes
    assert d.patterns.tolist() == [[True, True], [True, False], [False, True]] and d.pattern.tolist() == [0, 1, 2, 0]
    assert d.pattern.dtype == np.int32 and d.weight.tolist() == [1, 2, 1, 0.5]
    np.testing.assert_allclose(p.phenotypic_variance, [np.var([30.5, 31, 29], ddof=1), 100])
    # classes in numeric order; '2' is calf4's herd, which was left out
    assert labels(p, "herd").ids.to_list() == ["9", "10"] and ids_of_records(p, "herd") == ["10", "9", "10", "9"]
    assert term(p, "herd").effects[0].level.dtype == np.int32
    # record 2 observes bw alone, so it does not meet the sex effect of ww
    assert ids_of_records(p, "gender") == ["F", None, "M", "F"]
    assert ids_of_records(p, "genetic") == ["calf2", "calf1", "calf3", "calf3"]
    assert ids_of_records(p, "genetic", 1) == ["cow2", None, "calf2", "calf2"]
    g = term(p, "genetic")
    assert (g.n_levels, g.n_components, g.n_groups, g.active, g.kind) == (7, 3, 0, None, "random")
    assert g.component_trait.tolist() == [0, 1, 1] and [e.name for e in g.effects] == ["direct", "maternal"]
    in_order = labels(p, "genetic").ids.gather(labels(p, "genetic").order)
    assert in_order.to_list() == "calf1 calf2 calf3 cow calf4 bull cow2".split()
    # calf1 and calf2 are half sibs
    assert dict(zip(labels(p, "genetic").ids, labels(p, "genetic").inbreeding)) == pytest.approx(
        dict(zip(labels(p, "genetic").ids, [0] * 7)) | {"calf3": 0.125}
    )
    assert (p.counts["animals"], p.counts["founders_added"], p.counts["animals_with_records"]) == (7, 2, 3)
    # y is centred by the herds, and comes back
    raw = np.array([[30.5, 200], [31, np.nan], [np.nan, 210], [29, 190]])
    np.testing.assert_allclose(d.y, raw - np.nanmean(raw, axis=0))
    assert [(t, c) for t, c, _ in d.offsets] == [(0, 0), (0, 1)]


def test_inbreeding_ignored(files):
    genetic = {"genetic": random("pedigree", _=effect("animal", traits=["bw"]))}
    tables = {"pedigree": files / "pedigree.csv", "inbreeding": "ignore"}
    p = prepare(analysis(files / "phenotypes.csv", ["bw"], random=genetic, **tables))
    assert np.all(labels(p, "genetic").inbreeding == 0)
    assert np.all(term(p, "genetic").relationship.relatives.inbreeding == 0)
    assert names(p) == ["intercept", "genetic"] and labels(p, "intercept").ids.to_list() == ["1"]


def test_missing_values_for_all_columns_and_for_one_trait(tmp_path):
    """'0' is missing for y as the number 0.0, and a level of the class; '-9' is missing everywhere."""
    (tmp_path / "p.csv").write_text("y,z,c\n0.0,0,0\n1.5,2,0\n2, 0 ,1\n-9.0,3,1\n4,-9,-9\n")
    a = analysis(tmp_path / "p.csv", [trait("y", missing=["0"]), "z"], {"c": fixed("c", traits=["z"])}, missing=("-9",))
    p = prepare(a)
    assert np.argwhere(np.isnan(p.design.y)).tolist() == [[0, 0], [3, 0], [4, 1]]
    assert labels(p, "c").ids.to_list() == ["0", "1"]
    assert ids_of_records(p, "c") == ["0", "0", "1", "1", None]


def test_class_levels_are_numeric_where_all_are_whole_numbers():
    frame = pl.DataFrame(
        {
            "y": [1.0, 2, 3, 4],
            "a": ["10", "9", "-2", "007"],
            "b": ["10", "9", "x", "7"],
            "c": [2.0, 10.0, 1.0, None],
            "d": ["7", "007", "7", "8"],
        }
    )
    p = prepare(analysis(frame, ["y"], {k: fixed(k, traits=["y"]) for k in "abd"}))
    assert labels(p, "a").ids.to_list() == ["-2", "007", "9", "10"]
    assert labels(p, "b").ids.to_list() == ["10", "7", "9", "x"]
    assert labels(p, "d").ids.to_list() == ["007", "7", "8"]
    with pytest.raises(DataError, match=r"phenotypes row 4: found no value in column 'c' \(model.fixed.c\); needed a"):
        prepare(analysis(frame, ["y"], {"c": fixed("c", traits=["y"])}))
    # whole numbers in a float column, as pandas writes integers with gaps
    floats = prepare(analysis(frame[:3], ["y"], {"c": fixed("c", traits=["y"])}))
    assert labels(floats, "c").ids.to_list() == ["1", "2", "10"]


def test_identity_effects_share_levels_and_only_those_met_by_records():
    frame = pl.DataFrame(
        {"y": [1.0, None, 2, 3], "z": [1.0, 2, None, 3], "sire": ["b", "a", "c", None], "mgs": ["c", "b", "b", "a"]}
    )
    relations = {
        "sires": random(sire=effect("sire", traits=["y"], unknown_level="omit"), mgs=effect("mgs", traits=["y"]))
    }
    p = prepare(analysis(frame, ["y", "z"], random=relations))
    assert labels(p, "sires").ids.to_list() == ["a", "b", "c"]
    assert ids_of_records(p, "sires") == ["b", None, "c", None]
    assert ids_of_records(p, "sires", 1) == ["c", None, "b", "a"]
    assert term(p, "sires").relationship == Identity(3)
    assert any("unknown_level: omit: 1 record has no sire" in n for n in p.design.notes)


def test_given_covariates_are_left_as_they_are():
    frame = pl.DataFrame({"y": [1.0, 2, 3], "pen": ["a", "b", "a"], "c0": [1, 1, 1], "c1": [0.5, 1.5, 2.5]})
    p = prepare(
        analysis(frame, ["y"], random={"curve": random(rr=effect("pen", traits=["y"], covariates=("c0", "c1")))})
    )
    (e,) = term(p, "curve").effects
    assert e.covariates.tolist() == [[1, 0.5], [1, 1.5], [1, 2.5]] and e.coefficients == ("0", "1")
    assert term(p, "curve").n_components == 2


def test_legendre_covariates_of_a_random_regression():
    """Normalised polynomials on the stated range: 1/sqrt(2), sqrt(3/2) u, sqrt(5/2) (3u^2 - 1)/2."""
    frame = pl.DataFrame({"y": [1.0, 2, 3], "pen": ["a", "b", "a"], "day": [5.0, 155, 305]})
    curve = random(rr=effect("pen", traits=["y"], legendre=("day", 2, (5, 305))))
    (e,) = term(prepare(analysis(frame, ["y"], random={"curve": curve})), "curve").effects
    u = np.array([-1.0, 0, 1])
    expected = np.stack([np.full(3, np.sqrt(0.5)), np.sqrt(1.5) * u, np.sqrt(2.5) * (3 * u**2 - 1) / 2], axis=1)
    np.testing.assert_allclose(e.covariates, expected, atol=1e-14)
    curve = random(rr=effect("pen", traits=["y"], legendre=("day", 2, None)))
    p = prepare(analysis(frame, ["y"], random={"curve": curve}))
    np.testing.assert_allclose(term(p, "curve").effects[0].covariates, expected, atol=1e-14)


def test_a_relationship_file(tmp_path):
    (tmp_path / "kinv.txt").write_text("a a 2\nb a -0.5\nb b 2\na b -0.5\nc c 1.5\n")
    frame = pl.DataFrame({"y": [1.0, 2, 3], "line": ["b", "a", "b"]})
    p = prepare(analysis(frame, ["y"], random={"line": random(tmp_path / "kinv.txt", _=effect("line", traits=["y"]))}))
    K = term(p, "line").relationship
    assert isinstance(K, SparseInverse) and labels(p, "line").ids.to_list() == ["a", "b", "c"]
    np.testing.assert_allclose(dense.relationship_inverse(term(p, "line")), [[2, -0.5, 0], [-0.5, 2, 0], [0, 0, 1.5]])
    assert (K.indptr.dtype, K.indices.dtype, K.values.dtype) == (np.int64, np.int32, np.float64)
    assert ids_of_records(p, "line") == ["b", "a", "b"] and labels(p, "line").inbreeding is None


@pytest.mark.parametrize("level", ["A ", "\ufeffa", "\uff41"])
def test_ids_spelled_unlike_a_relationship_file_are_told(tmp_path, level):
    (tmp_path / "kinv.txt").write_text("a a 2\nb b 2\n")
    frame = pl.DataFrame({"line": [level, "b", "z", "b"], "y": [1.0, 2, 3, 4]})
    with pytest.raises(DataError, match="kinv.txt has 1 of 2 such ids in another spelling: 'a' for '.*'; write ids in"):
        prepare(analysis(frame, ["y"], random={"line": random(tmp_path / "kinv.txt", _=effect("line", traits=["y"]))}))


def test_a_relationship_file_that_is_not_inverted(tmp_path):
    """Two families of five: their matrix has no negative value, its inverse has."""
    A = np.kron(np.eye(2), np.full((5, 5), 0.5) + 0.5 * np.eye(5))
    frame = pl.DataFrame({"y": np.arange(20.0), "line": [f"l{i % 10}" for i in range(20)]})
    for K, said in ((A, ["line: k.txt has no negative value off the diagonal, as "]), (np.linalg.inv(A), [])):
        entries = [f"l{i} l{j} {K[i, j]}" for i in range(10) for j in range(10) if abs(K[i, j]) > 1e-9]
        (tmp_path / "k.txt").write_text("\n".join(entries))
        spec = random(tmp_path / "k.txt", _=effect("line", traits=["y"]))
        found = prepare(analysis(frame, ["y"], random={"line": spec})).warnings
        assert [w[: len(s)] for w, s in zip(found, said, strict=True)] == said


def test_the_inverse_of_a_genomic_matrix_is_taken_for_one(tmp_path):
    """Centred genotypes, 5 % of I added: all values of the inverse off its diagonal are above 0."""
    copies = np.random.default_rng(6).binomial(2, 0.5, (60, 400)).astype(float)
    M = copies - copies.mean(axis=0)
    G = 0.95 * M @ M.T / (0.5 * 400) + 0.05 * np.eye(60)
    frame = pl.DataFrame({"y": np.arange(120.0) % 17, "line": [f"l{i % 60}" for i in range(120)]})
    for K, times in ((np.linalg.inv(G), 0), (np.exp(-np.abs(np.subtract.outer(np.arange(60.0), np.arange(60)))), 1)):
        entries = [f"l{i} l{j} {float(K[i, j])!r}" for i in range(60) for j in range(60)]
        assert (K > 0).all()
        (tmp_path / "k.txt").write_text("\n".join(entries))
        spec = random(tmp_path / "k.txt", _=effect("line", traits=["y"]))
        found = prepare(analysis(frame, ["y"], random={"line": spec})).warnings
        assert len([w for w in found if "is this the matrix itself?" in w]) == times


def test_codes_of_levels_to_save(files):
    fixed_effects = {
        "herd": fixed("herd", traits=["ww"]),
        "age": fixed("age", "covariate", degree=2, traits=["ww"]),
        "slope": fixed("age", "covariate", by="sex", traits=["ww"]),
    }
    genetic = {"genetic": random("pedigree", _=effect("animal", traits=["ww"]))}
    a = analysis(files / "phenotypes.csv", ["ww"], fixed_effects, genetic, pedigree=files / "pedigree.csv")
    p = prepare(a)
    ids = labels(p, "genetic").ids.to_list()
    assert p.codes("genetic", ["calf4", "cow"]).tolist() == [ids.index("calf4"), ids.index("cow")]
    assert p.codes("herd", [9]).tolist() == [0] and p.codes("age", ["x^2"]).tolist() == [0]
    assert labels(p, "age").reported("x^2").to_list() == ["x^2"]
    assert labels(p, "slope").reported("slope").to_list() == ["F:slope", "M:slope"]
    assert p.codes("slope", ["M:slope", "F"]).tolist() == [1, 0]
    with pytest.raises(ConfigError, match="output.save_levels.genetic: found 'nobody', needed names among the 7"):
        p.codes("genetic", ["cow", "nobody"])
    with pytest.raises(ConfigError, match="there is no term 'genetics'; did you mean 'genetic'"):
        p.codes("genetics", ["cow"])


def test_an_intercept_where_no_class_spans_the_trait():
    frame = pl.DataFrame({"a": [1.0, 2, 3], "b": [3.0, 1, 2], "c": ["u", "u", "v"]})
    one = {"c": fixed("c", traits=["b"])}
    assert term(prepare(analysis(frame, ["a", "b"], one)), "intercept").effects[0].traits == (0,)
    assert term(prepare(analysis(frame, ["a", "b"], one, intercept=True)), "intercept").effects[0].traits == (0, 1)
    assert names(prepare(analysis(frame, ["a", "b"], one, intercept=False))) == ["c"]
    both = {"c": fixed("c", traits=["a", "b"], prior_variance=3.0)}
    p = prepare(analysis(frame, ["a", "b"], both))
    assert names(p) == ["intercept", "c"] and term(p, "c").active is None
    np.testing.assert_allclose(term(p, "c").prior_precision, np.eye(2) / 3)
    frame = pl.DataFrame({"a": [1.0, 2, 3], "b": [3.0, 1, 2], "x": [1.0, 2, 4]})
    p = prepare(analysis(frame, ["a", "b"], {"x": fixed("x", "covariate", traits=["a"])}, intercept=False))
    assert p.design.offsets == () and p.design.y[:, 0].tolist() == [1, 2, 3] and p.design.shifts == ()


COWS = [f"c{i // 4}" for i in range(80)]
REPEATED = pl.DataFrame(
    {
        "animal": COWS,
        "cow": COWS,
        "lactation": [f"l{i}" for i in range(80)],  # of each record its own
        "of_cow": [f"{cow}.{i % 4 // 2}" for i, cow in enumerate(COWS)],
        "herd": [f"h{i % 3}" for i in range(80)],
        "y": np.arange(80.0) % 13,
        "z": [float(i % 9) if i % 4 == 0 else None for i in range(80)],
    }
)


@pytest.mark.parametrize(
    ("environment", "said"), [(None, 1), ("animal", 0), ("cow", 0), ("of_cow", 0), ("herd", 1), ("lactation", 1)]
)
@pytest.mark.parametrize("kind", ["random", "fixed"])
def test_several_records_need_an_effect_of_the_animal(environment, said, kind, files):
    terms, fixed = {"genetic": random("pedigree", _=effect("animal", traits=["y", "z"]))}, {}
    if environment is not None and kind == "random":
        terms["environment"] = random(_=effect(environment, traits=["y"]))
    elif environment is not None:
        fixed[environment] = {"traits": ["y"]}
    config = analysis(
        REPEATED, ["y", "z"], fixed=fixed, random=terms, pedigree=files / "pedigree.csv", add_missing_animals=True
    )
    found = [w for w in prepare(config).warnings if w.startswith("traits.")]
    assert len(found) == said
    if said:
        assert "traits.y: 20 of 20 animals (column 'animal') have several records" in found[0]
        assert found[0].endswith("needed model.random.permanent_environment: {level: animal}")


def test_a_few_animals_without_a_level_are_no_lack_of_one(files):
    """A permanent environment of all cows but one; and few cows with several records are no repeated records."""
    frame = REPEATED.with_columns(cow=pl.when(pl.col("cow") != "c3").then("cow"))
    terms = {"genetic": random("pedigree", _=effect("animal", traits=["y"]))}
    some = {"environment": random(_=effect("cow", traits=["y"], unknown_level="omit"))}
    of = dict(pedigree=files / "pedigree.csv", add_missing_animals=True)
    assert not [w for w in prepare(analysis(frame, ["y"], random=terms | some, **of)).warnings if "traits.y" in w]
    once = pl.DataFrame({"animal": [f"c{max(i - 5, 0)}" for i in range(80)], "y": np.arange(80.0) % 13})
    assert not [w for w in prepare(analysis(once, ["y"], random=terms, **of)).warnings if "traits.y" in w]


def test_an_unused_pedigree_says_what_would_use_it(files):
    frame = pl.DataFrame({"animal": ["calf1", "calf2", "calf1"], "y": [1.0, 2, 4]})
    for name in ("genetic", "pe"):
        of = {name: random(_=effect("animal", traits=["y"]))}
        (warning,) = prepare(analysis(frame, ["y"], {}, of, pedigree=files / "pedigree.csv")).warnings
        entry = "model.random.genetic: {level: animal, relationship: pedigree}"
        write = "relationship: pedigree in model.random.genetic" if name == "genetic" else entry
        assert warning.endswith(f"for breeding values by the pedigree write {write}")
    of = {"genetic": random("pedigree", _=effect("animal", traits=["y"]))}
    kin = {"pedigree": files / "pedigree.csv", "add_missing_animals": True}
    assert prepare(analysis(frame, ["y"], {}, of, **kin)).warnings == ()
