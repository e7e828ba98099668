"""What cannot be combined: a row for each rule, with the key that it is about.

Rules of a section look at its keys alone, those between sections at the whole analysis; in messages `{s}` is one or the
other. Rules that need a loop or a computation are in `check` of their sections, or in complete.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from mmgibbs.models.engine_kinds import INTEGRATING, WITHOUT_SWEEPS, select_engines
from mmgibbs.models.gpu_rules import Asked, describe_gpu_refusal
from mmgibbs.models.marker_priors import MARKER_PRIORS

WORD = 2**32  # seeds, chains and sweeps are words of the random-number counter
_WITHOUT_SOLUTIONS = select_engines(lambda kind: not kind.solves)
_WITHOUT_EFFECT = select_engines(lambda kind: "effect" not in kind.partitions)
_SERIAL = select_engines(lambda kind: kind.sweeps and not kind.threads)


class Rule(NamedTuple):
    """A message for a key where a condition holds."""

    key: str  # dotted, below the section; '': the section as a whole
    is_broken: Callable[[Any], object]
    message: str

    def find_breach(self, section: Any) -> str:
        return self.message.format(s=section) if self.is_broken(section) else ""


class Clash(NamedTuple):
    """A value of a key that cannot be combined with some values of another key."""

    key: str
    values: tuple[str | bool, ...]  # ANY: all but the default
    other: str
    others: tuple[str, ...]
    needed: str
    why: str = ""

    def find_breach(self, section: Any) -> str:
        value, other_value = getattr(section, self.key), getattr(section, self.other)
        is_wrong = value in self.values if self.values else value != type(section).model_fields[self.key].default
        if not is_wrong or other_value not in self.others:
            return ""
        shown, name = "true" if value is True else value, self.other.removeprefix("sampling_")
        return f"found {shown}, which cannot be combined with {name}: {other_value}{self.why}; needed {self.needed}"


class RefusedByGpu(NamedTuple):
    """Keys that `device: gpu` refuses whatever the data are: rules of models/gpu_rules.py."""

    key: str

    def find_breach(self, section: Any) -> str:
        asked = Asked(section.method, section.engine, preconditioner=section.preconditioner)
        return describe_gpu_refusal(asked) or "" if section.device == "gpu" else ""


ANY: tuple[str, ...] = ()


def broken_rules(section: object) -> Iterator[tuple[tuple[str, ...], str]]:
    """Place and message of each rule of a section's class that it breaks."""
    for cls in reversed(type(section).__mro__):
        yield from broken(RULES.get(cls.__name__, ()), section)


def broken(rules: Iterable[Rule | Clash | RefusedByGpu], section: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    for rule in rules:
        if message := rule.find_breach(section):
            yield tuple(filter(None, rule.key.split("."))), message


def _is_given(key: str, **values: object) -> Callable[[Any], bool]:
    """Make a check that a key has a value, and other keys those values."""

    def check(s: Any) -> bool:
        given = getattr(s, key) not in (None, "auto", (), {})
        return given and all(getattr(s, k) is v or (v is not None and getattr(s, k) == v) for k, v in values.items())

    return check


def _are_given(*keys: str) -> Callable[[Any], bool]:
    return lambda s: all(getattr(s, key) is not None for key in keys)


def _is_set_of_a_class(key: str) -> Callable[[Any], bool]:
    def check(s: Any) -> bool:
        is_class = s.kind == "class" and (s.interaction is None or "kind" in s.model_fields_set)
        return is_class and key in s.model_fields_set and getattr(s, key) is not None

    return check


def _is_given_beside_a_plugin(key: str) -> Callable[[Any], bool]:
    return lambda s: s.plugin is not None and getattr(s, key) not in ("auto", {})


def _is_implied(s: Any) -> bool:
    """Predicted genotypes are to leave the variance that the SNPs imply."""
    return s.variance_left == "implied" and s.single_step != "none"


def _key_of_priors(key: str) -> Rule:
    """The rule of a key that some priors of SNP effects take."""
    names = " or ".join(name for name, kind in MARKER_PRIORS.items() if key in kind.keys)
    is_broken = lambda s: key in s.given and key not in s.prior_kind.keys
    return Rule(key, is_broken, f"cannot be combined with prior: {{s.prior}}; it belongs to {names}")


def _is_set_beside_known(key: str) -> Callable[[Any], bool]:
    return lambda s: s.variances.residual.known is not None and key in s.variances.residual.model_fields_set


def _is_beside_correlated_residuals(key: str, is_so: Callable[[Any], object]) -> Callable[[Any], bool]:
    """Residuals are correlated by this key, and something holds of the analysis."""

    def check(s: Any) -> bool:
        residual = s.variances.residual
        is_correlated = residual.known is not None if key == "known" else bool(residual.relationships)
        return is_correlated and bool(is_so(s))

    return check


_ONE_THREAD = (
    "found {s.threads}, which cannot be combined with engine: {s.engine}, which runs on one thread; needed 1 or auto, "
    "or engine: structured or hybrid"
)
_OF_PEDIGREE = (
    "pedigree_separator",
    "pedigree_encoding",
    "pedigree_widths",
    "pedigree_columns",
    "pedigree_header",
    "groups",
)
_OF_A_COVARIATE = ("degree", "legendre", "by")
OF_A_MIXED_MODEL = ("intercept", "fixed", "random", "markers")
OF_A_REGRESSION = ("response", "predictors", "groups", "group_predictors", "options")

# fmt: off
RULES: dict[str, tuple[Rule | Clash | RefusedByGpu, ...]] = {
    "Groups": (
        Rule("reference", lambda s: s.effect != "fixed" and s.reference is not None,
             "cannot be combined with effect: {s.effect}, whose base is its mean; needed fixed"),
        Rule("gamma", lambda s: s.effect == "metafounders" and s.gamma is None,
             "missing, needed a number, the path of a table, or genotypes (estimates it)"),
        Rule("gamma", lambda s: s.effect != "metafounders" and s.gamma is not None,
             "cannot be combined with effect: {s.effect}; it belongs to metafounders"),
    ),
    "Data": (
        *(Rule(key, _is_given(key, pedigree=None), "found without a pedigree, needed data.pedigree")
          for key in _OF_PEDIGREE),
        *(Rule(f"{table}widths", _are_given(f"{table}widths", f"{table}separator"),
               f"cannot be combined with {table}separator; needed one of them: columns have fixed widths or a "
               "character between them") for table in ("", "pedigree_")),
        Rule("inbreeding", lambda s: s.has_metafounders and s.inbreeding == "ignore",
             "ignore cannot be combined with metafounders, whose relationships are inbreeding"),
        Rule("groups.gamma", lambda s: s.has_metafounders and s.groups.gamma == "genotypes" and s.genotypes is None,
             "found genotypes, but the analysis has none: needed data.genotypes"),
        Rule("pedigree_columns", lambda s: s.pedigree_header is False and s.has_named_columns,
             "names of columns cannot be combined with pedigree_header: false; needed positions (1, 2, 3)"),
    ),
    "Shares": (
        Rule("start", lambda s: s.start is not None and abs(s.sum_of_start - 1) > 1e-6,
             "found shares that add up to {s.sum_of_start:g}, needed 1"),
        Rule("start", lambda s: 0.0 in (s.start or ()),
             "found a share of 0 or less, needed one above 0 for every class"),
        Rule("prior", lambda s: s.fixed and s.prior is not None, "cannot be combined with fixed: true"),
    ),
    "Windows": (Rule("snps", lambda s: s.size and s.snps, "cannot be combined with size; needed one of them"),),
    "ChosenSnps": (
        Rule("file", lambda s: s.group and s.file is None,
             "missing, needed the table that says which SNPs are in which group"),
        Rule("", lambda s: sum([bool(s.chromosomes), s.file is not None or bool(s.group), s.rest]) != 1,
             "needed one of chromosomes: [...], file: PATH (with group: NAME), or rest"),
    ),
    "MarkerEffects": (
        _key_of_priors("classes"),
        Rule("pi", lambda s: "pi" in s.given and s.prior in MARKER_PRIORS and not s.prior_kind.classes,
             "cannot be combined with prior: {s.prior}, which has no class without effect"),
        _key_of_priors("global_scale"),
        Rule("without_genotypes", lambda s: s.single_step != "none" and "without_genotypes" in s.given,
             "cannot be combined with single_step, which uses such records"),
        Rule("variance_left", lambda s: s.variance_left == "implied" and s.single_step == "none",
             "found implied without single_step: epsilon, where alone a variance is left"),
        Rule("variance_left", lambda s: (_is_implied(s) and s.prior_kind.has_common_variance
                                        and s.prior_kind.classes and not s.pi.fixed),
             "implied cannot be combined with prior: {s.prior}, whose shares of classes are sampled, and with them "
             "what they imply; needed pi: {{fixed: true}}, or rr"),
        Rule("variance_left", lambda s: _is_implied(s) and not s.prior_kind.has_common_variance,
             "implied cannot be combined with prior: {s.prior}, whose SNPs have no common variance that implies "
             "another; needed rr, or bayes_c or bayes_r with fixed pi"),
        Rule("variance.fixed", lambda s: (s.variance.fixed and s.prior in MARKER_PRIORS
                                          and not s.prior_kind.has_common_variance),
             "cannot be combined with prior: {s.prior}, which has no common one"),
    ),
    "Fixed": (
        *(Rule(key, _is_set_of_a_class(key),
               "cannot be combined with kind: class; needed kind: covariate") for key in _OF_A_COVARIATE),
        Rule("covariates", lambda s: s.covariates is not None and s.interaction is None,
             "found without interaction; needed interaction: [COLUMN, COLUMN], of which they are some"),
        Rule("covariates", lambda s: s.covariates is not None and s.kind == "class" and "kind" in s.model_fields_set,
             "cannot be combined with kind: class; needed kind: covariate or none"),
        Rule("degree", lambda s: s.kind != "class" and s.legendre is not None and "degree" in s.model_fields_set,
             "cannot be combined with legendre, which has a degree of its own; needed one of them"),
        Rule("reference", lambda s: s.kind != "class" and s.reference is not None,
             "cannot be combined with kind: covariate; it belongs to a class"),
    ),
    "RandomEffect": (
        Rule("", lambda s: s.covariates is not None and s.legendre is not None,
             "covariates cannot be combined with legendre; needed one of them"),
    ),
    "Random": (
        Rule("effects", lambda s: not s.effects,
             "found no effect, needed at least one: effects: {{NAME: {{level: COLUMN}}}}"),
        Rule("effects", lambda s: len(s.effects) > 1 and "" in s.effects,
             "found an effect without a name among others, needed a name"),
    ),
    "Model": (
        *(Rule(key, _is_given(key, plugin=None), "found without plugin; it belongs to a regression")
          for key in OF_A_REGRESSION),
        *(Rule(key, _is_given_beside_a_plugin(key),
               "cannot be combined with plugin; it belongs to a mixed model") for key in OF_A_MIXED_MODEL),
        Rule("response", lambda s: s.plugin and not s.response, "missing, needed for a regression"),
        Rule("predictors", lambda s: s.plugin and not s.predictors, "missing, needed for a regression"),
        Rule("group_predictors", _is_given("group_predictors", groups=None),
             "found without groups, needed groups: COLUMN beside them"),
    ),
    "Stop": (
        Rule("", lambda s: not s.targets, "found no target, needed one or more of rhat, ess, mcse, mcse_ebv"),
        Rule("", lambda s: s.targets and s.parameters is not None and s.rhat is None and s.ess is None,
             "found parameters without rhat or ess, which they are for; needed one of them"),
    ),
    "Sampler": (
        Rule("thin", lambda s: s.thin > s.samples,
             "found {s.thin}, needed at most sampler.samples ({s.samples}), or no draw is kept"),
        Rule("samples", lambda s: s.most_sweeps >= WORD,
             f"found {{s.most_sweeps}} sweeps with burn_in, needed fewer than {WORD}"),
        Rule("stop", lambda s: s.stop is not None and s.method != "gibbs",
             "cannot be combined with method: {s.method}, which draws nothing; needed method: gibbs"),
        Rule("stop.rhat", lambda s: s.stop is not None and s.stop.rhat is not None and s.chains < 2,
             "found chains: 1, needed at least two chains, which R-hat compares"),
        Rule("stop.max_samples", lambda s: s.most_samples < s.samples,
             "found {s.stop.max_samples}, needed at least sampler.samples ({s.samples}), after which the targets are "
             "checked first"),
        Rule("partition", lambda s: s.partition == "effect" and s.update == "level",
             "found effect, which draws the effects of a level separately and cannot be combined with update: level; "
             "needed update: site, or partition: colour or equal"),
        Clash("partition", ("effect",), "engine", _WITHOUT_EFFECT, "colour or auto, or engine: serial or hybrid"),
        RefusedByGpu("device"),
        Clash("update", ("site",), "method", ("blup", "reml"), "level", ", which draws nothing"),
        Clash("update", ("site",), "sampling_engine", WITHOUT_SWEEPS, "level", ", which draws all levels at once"),
        Rule("tolerance", lambda s: s.tolerance is not None and s.method == "gibbs" and not s.has_solver,
             "found {s.tolerance:g}, which cannot be combined with engine: {s.engine}, which solves nothing; needed "
             "engine: pcg, or method: blup or reml"),
        Rule("threads", lambda s: s.engine in WITHOUT_SWEEPS and s.has_several_threads, _ONE_THREAD),
        Clash("preconditioner", ANY, "method", ("gibbs", "reml"), "auto, or method: blup"),
        Rule("pev_samples", lambda s: s.pev_samples is not None and s.method == "reml" and not s.is_sampled_reml,
             "found {s.pev_samples}, which cannot be combined with method: reml, which computes every PEV; needed "
             "engine: pcg, or method: blup"),
        Rule("reml_samples",
             lambda s: s.reml_samples != type(s).model_fields["reml_samples"].default and not s.is_sampled_reml,
             "found {s.reml_samples}, which is for method: reml with engine: pcg; got method: {s.method} with engine: "
             "{s.engine}"),
        Clash("pev_samples", ANY, "method", ("gibbs",), "method: blup", ", whose draws know every PEV"),
        # REML and the marginal engine solve the equations on the CPU, in double precision
        Clash("engine", _WITHOUT_SOLUTIONS, "method", ("reml",), "auto or pcg"),
        Clash("precision", ("single",), "method", ("reml",), "double"),
        Clash("precision", ("single",), "sampling_engine", INTEGRATING, "double"),
        Clash("interweave", (True,), "sampling_engine", INTEGRATING, "auto"),
        Clash("engine", _WITHOUT_SOLUTIONS, "method", ("blup",), "pcg or auto"),
    ),
}

BETWEEN_SECTIONS = (
    Rule("traits", lambda s: s.model.plugin is not None and s.traits,
         "cannot be combined with model.plugin; needed model.response alone"),
    Rule("sampler.method", lambda s: s.model.plugin is not None and s.sampler.method != "gibbs",
         "found {s.sampler.method}, which cannot be combined with model.plugin; needed gibbs"),
    Rule("sampler.stop.mcse_ebv",
         lambda s: s.model.plugin is not None and s.sampler.stop is not None and s.sampler.stop.mcse_ebv is not None,
         "cannot be combined with model.plugin, which has no breeding values; needed rhat, ess or mcse"),
    Rule("output.save_levels", lambda s: s.model.plugin is not None and s.output.save_levels,
         "cannot be combined with model.plugin; every draw of a regression is saved"),
    Rule("output.moments", lambda s: s.output.moments and s.model.plugin is not None,
         "cannot be combined with model.plugin; needed a mixed model"),
    Rule("output.moments", lambda s: s.output.moments and s.model.plugin is None and s.sampler.method != "gibbs",
         "cannot be combined with method: {s.sampler.method}, which draws nothing; needed method: gibbs, or no "
         "output.moments (--set output.moments=null)"),
    Rule("output.probabilities", lambda s: s.output.probabilities and s.model.plugin is not None,
         "cannot be combined with model.plugin; a regression has no animals"),
    Rule("traits", lambda s: s.model.plugin is None and not s.traits, "missing, needed at least one trait"),
    Rule("model", lambda s: s.model.plugin is None and s.model.is_empty,
         "found no effect and intercept: false, needed at least one effect"),
    Rule("data.groups",
         lambda s: s.data.pedigree is not None and s.data.groups and not s.model.has_pedigree_relationships,
         "found groups, but no random effect has relationship: pedigree"),
    Rule("data.genotypes", lambda s: s.model.markers and s.data.genotypes is None,
         "missing, needed the file of genotypes for model.markers"),
    Rule("sampler.method", lambda s: s.model.markers and s.model.plugin is None and s.sampler.method != "gibbs",
         "{s.sampler.method} cannot be combined with model.markers; needed gibbs"),
    Rule("sampler.threads",  # threads share SNP effects with any engine
         lambda s: s.sampler.engine in _SERIAL and not s.model.markers and s.sampler.has_several_threads,
         _ONE_THREAD.replace("{s.", "{s.sampler.")),
    Rule("output.save_marker_draws", lambda s: s.output.save_marker_draws is not None and not s.model.markers,
         "found no SNP effects, needed a term in model.markers"),
)

OF_VARIANCES = (
    Rule("variances.mode",
         lambda s: s.sampler.method == "blup" and s.variances.is_to_be_sampled,
         "found sample, which cannot be combined with sampler.method: blup, which solves at given variances; needed "
         "fixed"),
    *(Rule(f"variances.residual.{key}", _is_set_beside_known(key),
           "cannot be combined with known, which is the covariance matrix of the residuals")
      for key in ("start", "fixed", "prior", "structure", "by", "classes", "relationship")),
    *(Rule(f"variances.residual.{key}", _is_beside_correlated_residuals(key, is_so), f"cannot be combined with {what}")
      for key in ("known", "relationship")
      for what, is_so in (
          ("data.weights: weights are for independent residuals", lambda s: s.data.weights is not None),
          ("traits that are not normal", lambda s: any(not trait.is_normal for trait in s.traits)),
          ("model.markers", lambda s: s.model.markers),
      )),
    Rule("variances.residual.classes", lambda s: s.variances.residual.classes and s.variances.residual.by is None,
         "found classes without by, needed by: COLUMN of the phenotypes"),
)
# fmt: on
