"""Names, their order, and what counts in heritabilities, ratios and correlations."""

from dataclasses import replace

import numpy as np
import pytest

from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.relationships.pedigree import Pedigree
from mmgibbs.models.terms import Effect, Levels, Related, Term
from mmgibbs.pedigree.relationship import relatives
from mmgibbs.posterior.draw_names import matrix_name
from mmgibbs.posterior.model_parts import ResidualInfo, TermInfo, term_info
from mmgibbs.posterior.parameters import named_parameters

BIRTH, WEANING = "birth_weight", "weaning_weight"
GENETIC = np.array([[9.0, 6.0, -1.0], [6.0, 90.0, -10.0], [-1.0, -10.0, 40.0]])
RESIDUAL = np.array([[12.0, 10.0], [10.0, 160.0]])


RELATED = {"identity": (False, False), "pedigree": (True, True), "file": (True, False)}


def beef(relationship="pedigree", levels=("animal", "dam"), effects=("direct", "maternal"), **more):
    d, m = effects
    components = (f"{d}:{BIRTH}", f"{d}:{WEANING}", f"{m}:{WEANING}")
    return TermInfo(
        "genetic", components, (0, 0, 1), (0, 1, 1), effects, levels, (False, False), *RELATED[relationship], **more
    )


def simple(
    name, traits=(0,), level="animal", relationship="identity", effect="", regression=False, fixed=False, names=("y",)
):
    components = tuple(f"{effect}:{names[t]}" if effect else names[t] for t in traits)
    return TermInfo(
        name,
        components,
        (0,) * len(traits),
        tuple(traits),
        (effect,),
        (level,),
        (regression,),
        *RELATED[relationship],
        fixed=fixed,
    )


def draws(matrix):
    """The same draw in 2 chains of 3: (2, 3, k, k)."""
    return np.broadcast_to(np.atleast_2d(np.asarray(matrix, float)), (2, 3, *np.atleast_2d(matrix).shape))


def parameters(terms, matrices, residual, traits=("y",), residual_blocks=None, residual_fixed=False):
    named = {matrix_name(i): draws(m) for i, m in enumerate(matrices)} | {"R": draws(residual)}
    terms = [replace(term, matrix=matrix_name(i)) for i, term in enumerate(terms)]
    return named_parameters(terms, named, ResidualInfo(traits, (residual_blocks,), (residual_fixed,)))


def values(found):
    assert all(d.shape == (2, 3) for d in found.draws.values())
    return {name: float(d[0, 0]) for name, d in found.draws.items()}


def test_beef_names_in_order_and_their_values():
    environment = simple("maternal_environment", (1,), "dam", names=(BIRTH, WEANING))
    found = parameters([beef(), environment], [GENETIC, 30.0], RESIDUAL, (BIRTH, WEANING))
    phenotypic = 90 + 40 - 10 + 30 + 160  # Willham: the direct-maternal covariance once
    d, m = f"direct:{WEANING}", f"maternal:{WEANING}"
    expected = {
        f"genetic.var[direct:{BIRTH}]": 9,
        f"genetic.var[{d}]": 90,
        f"genetic.var[{m}]": 40,
        f"genetic.cov[direct:{BIRTH},{d}]": 6,
        f"genetic.cov[direct:{BIRTH},{m}]": -1,
        f"genetic.cov[{d},{m}]": -10,
        f"maternal_environment.var[{WEANING}]": 30,
        f"residual.var[{BIRTH}]": 12,
        f"residual.var[{WEANING}]": 160,
        f"residual.cov[{BIRTH},{WEANING}]": 10,
        f"h2[{BIRTH}]": 9 / 21,
        f"h2[{WEANING}]": 90 / phenotypic,
        f"genetic.corr[direct:{BIRTH},{d}]": 6 / np.sqrt(9 * 90),
        f"genetic.corr[direct:{BIRTH},{m}]": -1 / np.sqrt(9 * 40),
        f"genetic.corr[{d},{m}]": -10 / 60,
        f"residual.corr[{BIRTH},{WEANING}]": 10 / np.sqrt(12 * 160),
        f"ratio[genetic.maternal:{WEANING}]": 40 / phenotypic,
        f"ratio[maternal_environment:{WEANING}]": 30 / phenotypic,
    }
    assert values(found) == pytest.approx(expected)
    assert list(found.draws) == list(expected)
    assert found.variances_counted[WEANING] == {
        "phenotypic_variance": [
            f"genetic.var[{d}]",
            f"genetic.var[{m}]",
            f"maternal_environment.var[{WEANING}]",
            f"genetic.cov[{d},{m}]",
            f"residual.var[{WEANING}]",
        ],
        "direct_variance": f"genetic.var[{d}]",
    }
    assert found.notes == ()


def test_structural_zeros_have_no_name():
    apart = beef(blocks=((0,), (1, 2)))
    found = parameters([apart], [GENETIC], RESIDUAL, (BIRTH, WEANING), residual_blocks=((0,), (1,)))
    pairs = [name for name in found.draws if ".cov[" in name or ".corr[" in name]
    assert pairs == [f"genetic.{x}[direct:{WEANING},maternal:{WEANING}]" for x in ("cov", "corr")]
    diagonal = parameters([beef(blocks=((0,), (1,), (2,)))], [GENETIC], RESIDUAL, (BIRTH, WEANING))
    assert values(diagonal)[f"h2[{WEANING}]"] == pytest.approx(
        90 / (90 + 40 + 160)
    )  # no covariance, so none is counted


@pytest.mark.parametrize(
    "levels, relationship, counted",
    [
        (("animal", "dam"), "pedigree", 1.0),
        (("id", "Mother"), "pedigree", 1.0),
        (("animal", "sire"), "file", 1.0),
        (("animal", "animal"), "pedigree", 2.0),
        (("animal", "recipient"), "pedigree", 0.0),
        (("sire", "dam"), "pedigree", 0.0),
        (("animal", "dam"), "identity", 0.0),
    ],
)
def test_how_often_a_covariance_between_effects_counts(levels, relationship, counted):
    found = parameters([beef(relationship, levels)], [GENETIC], RESIDUAL, (BIRTH, WEANING))
    phenotypic = 90 + 40 + 160 - 10 * counted
    name, variance = (
        (f"h2[{WEANING}]", 90)
        if "sire" not in levels[0] and relationship != "identity"
        else (f"ratio[genetic.maternal:{WEANING}]", 40)
    )
    assert values(found)[name] == pytest.approx(variance / phenotypic)


def test_the_direct_effect_is_the_animals_own_wherever_it_stands():
    swapped = beef(levels=("dam", "animal"), effects=("maternal", "direct"))
    found = values(parameters([swapped], [GENETIC], RESIDUAL, (BIRTH, WEANING)))
    assert found[f"h2[{WEANING}]"] == pytest.approx(40 / (90 + 40 - 10 + 160))
    assert f"h2[{BIRTH}]" not in found  # a maternal effect alone


def test_a_sire_model_has_no_h2_and_says_why():
    found = parameters([simple("sires", level="sire", relationship="pedigree")], [5.0], 95.0)
    assert "h2[y]" not in found.draws and values(found)["ratio[sires:y]"] == pytest.approx(0.05)
    assert (
        "no effect of the animal itself" in found.notes[0] and found.variances_counted["y"]["direct_variance"] is None
    )


def test_without_relationship_there_are_ratios_alone():
    found = parameters([simple("herd"), simple("litter")], [1.0, 3.0], 6.0)
    assert list(found.draws) == ["herd.var[y]", "litter.var[y]", "residual.var[y]", "ratio[herd:y]", "ratio[litter:y]"]
    assert found.notes == ()


def test_random_regressions_leave_h2_out_for_their_trait_alone():
    curve = TermInfo("genetic", ("rr.0:a", "rr.1:a"), (0, 0), (0, 0), ("rr",), ("animal",), (True,), True, True)
    plain = simple("polygenic", (1,), relationship="pedigree", names=("a", "b"))
    found = parameters([curve, plain], [np.eye(2), 2.0], np.eye(2) * 2, ("a", "b"))
    assert "genetic.corr[rr.0:a,rr.1:a]" in found.draws and values(found)["h2[b]"] == pytest.approx(0.5)
    assert not [name for name in found.draws if name.startswith(("h2[a", "ratio")) and "a]" in name]
    assert "no single h2[a]" in found.notes[0] and list(found.variances_counted) == ["b"]


def test_what_is_fixed_follows_from_fixed_values_alone():
    terms = [simple("genetic", relationship="pedigree", fixed=True), simple("litter")]
    some = parameters(terms, [1.0, 2.0], 3.0)
    assert some.fixed == {"genetic.var[y]"}
    assert parameters(terms, [1.0, 2.0], 3.0, residual_fixed=True).fixed == {"genetic.var[y]", "residual.var[y]"}
    terms[1] = simple("litter", fixed=True)
    assert parameters(terms, [1.0, 2.0], 3.0).fixed == {"genetic.var[y]", "litter.var[y]"}
    everything = parameters(terms, [1.0, 2.0], 3.0, residual_fixed=True)
    assert everything.fixed == set(everything.draws)


def test_term_info_of_a_design_term():
    effects = (
        Effect("direct", np.zeros(1), (0, 1)),
        Effect("rr", np.zeros(1), (1,), np.zeros((1, 2)), ("legendre.0", "legendre.1")),
    )
    info = term_info(
        Term("genetic", Levels(effects, 1), Related(Pedigree(relatives(*[np.array([-1], np.int32)] * 2)))),
        ("a", "b"),
        ("animal", "dam"),
        ((0, 1), (2, 3)),
        True,
    )
    assert info.related and info.of_pedigree
    assert info.components == ("direct:a", "direct:b", "rr.0:b", "rr.1:b")
    assert info.effect_of_component == (0, 0, 1, 1) and info.trait_of_component == (0, 1, 1, 1)
    assert info.regression == (False, True) and info.effects == ("direct", "rr") and info.fixed
    unnamed = term_info(
        Term("litter", Levels((Effect("", np.zeros(1), (1,)),), 1), Related(Identity(1))), ("a", "b"), ("litter",)
    )
    assert not unnamed.related and unnamed.components == ("b",) and unnamed.may_covary(0, 0)
