"""What a joint move of the variances of two competing terms would bring if it cost nothing, and what it may cost.

    PYTHONPATH=.:tests python tests/bench/competing_terms.py [--cases milk,warcolak] [--sweeps 8000] [--every 1 5]

Terms a and p that each record meets through one level each (animal and permanent environment, additive and dominance)
share s = a + p; a level of one goes with one level of the other. The move draws both variances given s alone, both
terms integrated out, then a and p given s and the variances:

    s ~ N(0, A sigma2_a + P sigma2_p)          A and P: the relationships among the levels with records

through the dense eigenvectors of A x = lambda P x, which models of this size allow. Printed are the sweeps for one
effective draw of each variance without the move and with one after every m-th sweep, and m (without / with - 1): the
sweeps that a move may cost before it brings nothing.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from helpers.shared_cases import analysis
from scipy.linalg import eigh
from scipy.sparse import csr_array

from mmgibbs.bench.command import print_table
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import structured_equations
from mmgibbs.posterior.diagnostics import diagnose
from mmgibbs.posterior.parameters import RESIDUAL, Parameter, matrix_name
from mmgibbs.runs.assemble import assemble
from mmgibbs.runs.engine import choose_engine
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.covariances import CovarianceMatrices, TermCovariance
from mmgibbs.sampler.interweave import terms_to_interweave
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule

PAIRS = {"milk": ("genetic", "cow"), "warcolak": ("genetic", "dominance")}
BURN_IN = 500
PROPOSALS = 300  # of the logarithms of both variances, given s: a draw that is nearly independent of the last
SIZES = (0.05, 0.2, 0.5)  # standard deviations of them


class Levels:
    """One term among the levels (m,) that records meet: K there, and draws of its other levels given those."""

    def __init__(self, model: MixedModel, term: int, engine, levels: np.ndarray):
        self.term, self.engine, self.levels = term, engine, levels
        indptr, indices, values = model.design.terms[term].relationship.inverse_csr()
        K = np.linalg.inv(csr_array((values, indices, indptr)).toarray())
        self.among = K[np.ix_(levels, levels)]
        self.regression = K[:, levels] @ np.linalg.inv(self.among)
        self.factor = np.linalg.cholesky(K)

    @property
    def effects(self) -> np.ndarray:
        """(q,) in model order."""
        return self.engine.fetch()[self.term][:, 0]

    def put(self, at_levels: np.ndarray, variance: float, rng: np.random.Generator) -> None:
        """Take the effects (m,) of the levels with records, and draw all others given them."""
        prior = self.factor @ rng.normal(size=len(self.factor)) * np.sqrt(variance)
        theta = prior + self.regression @ (at_levels - prior[self.levels])
        theta[self.levels] = at_levels
        self.engine.put_theta(self.term, theta[self.engine.equations.terms[self.term].code, None])


class JointMove:
    """A step after all others of every m-th sweep: both variances given s, then a and p. Residuals stay as they are."""

    parameters: dict[str, Parameter] = {}

    def __init__(self, a: Levels, p: Levels, matrices: CovarianceMatrices, every: int):
        self.a, self.p, self.matrices, self.every = a, p, matrices, every
        self.rng = np.random.default_rng(1)
        self.ratios, vectors = eigh(a.among, p.among)  # vectors' P vectors = I
        self.ratios = np.maximum(self.ratios, 0.0)
        self.to_independent, self.back = vectors.T, p.among @ vectors

    def __call__(self, number: int) -> None:
        if number % self.every:
            return
        s = self.a.effects[self.a.levels] + self.p.effects[self.p.levels]
        u = self.to_independent @ s
        names = [matrix_name(part.term) for part in (self.a, self.p)]
        logs = np.log([self.matrices[name][0, 0] for name in names])
        now = self._log_density(logs, u)
        for _ in range(PROPOSALS):
            proposed = logs + self.rng.choice(SIZES) * self.rng.normal(size=2)
            then = self._log_density(proposed, u)
            if np.log(self.rng.random()) < then - now:
                logs, now = proposed, then
        of_a, of_p = np.exp(logs)
        total = self.ratios * of_a + of_p
        share = self.ratios * of_a / total
        a = self.back @ (share * u + np.sqrt(share * of_p) * self.rng.normal(size=u.size))
        self.a.put(a, of_a, self.rng)
        self.p.put(s - a, of_p, self.rng)
        for name, variance in zip(names, (of_a, of_p), strict=True):
            self.matrices[name] = np.array([[variance]])

    def _log_density(self, logs: np.ndarray, u: np.ndarray) -> float:
        """Of the logarithms of both variances, whose priors are flat, given s; u (m,) = vectors' s."""
        of_a, of_p = np.exp(logs)
        total = self.ratios * of_a + of_p
        return logs.sum() - 0.5 * np.sum(np.log(total) + u * u / total)

    def draws(self) -> dict[str, np.ndarray]:
        return {}

    def state(self) -> dict[str, np.ndarray]:
        return {}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        pass


def sweeps_for_an_effective_draw(model: MixedModel, config, sweeps: int, names: tuple[str, str], every: int) -> dict:
    """Of each variance; names: of the terms to move jointly after every so many sweeps, 0: never."""
    design = model.design
    chosen = choose_engine(config.sampler.model_copy(update={"engine": "serial"}), model)
    engine = chosen.engine.build(structured_equations(design, partition(design, chosen.partition)))
    chain = Chain(model, engine, Schedule(BURN_IN, sweeps, interweave=terms_to_interweave(model)), (1, 0))
    if every:
        matrices = next(step.matrices for step in chain.steps if isinstance(step, TermCovariance))
        terms = [[t.name for t in design.terms].index(name) for name in names]
        met = np.unique([design.terms[i].effects[0].level for i in terms], axis=1)
        assert all(len(set(levels)) == levels.size for levels in met), "a level goes with one level of the other term"
        a, p = (Levels(model, i, engine, levels) for i, levels in zip(terms, met, strict=True))
        chain.steps.append(JointMove(a, p, matrices, every))
    chain.advance(BURN_IN + sweeps)
    of_matrix = {matrix_name(i): t.name for i, t in enumerate(design.terms)} | {RESIDUAL: "residual"}
    draws = chain.result().draws
    return {of_matrix[name]: sweeps / diagnose(d.reshape(1, -1))["ess_bulk"] for name, d in draws.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sweeps", type=int, default=8000)
    parser.add_argument("--every", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--cases", default=",".join(PAIRS))
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in args.cases.split(","):
            config = load_config(analysis(case, Path(folder)))
            model = assemble(config, prepare(config)).model
            without = sweeps_for_an_effective_draw(model, config, args.sweeps, PAIRS[case], 0)
            for every in args.every:
                found = sweeps_for_an_effective_draw(model, config, args.sweeps, PAIRS[case], every)
                for name in without:
                    cost = every * (without[name] / found[name] - 1)
                    of_name = {"without": without[name], "with": found[name], "may cost": cost}
                    rows.append({"case": case, "every": every, "variance": name} | of_name)
    print_table(rows)


if __name__ == "__main__":
    main()
