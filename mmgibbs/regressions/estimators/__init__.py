"""Five regressions called from Python, as in scikit-learn: `HorseshoeProbit(chains=4, seed=1).fit(X, y)`."""

from mmgibbs.regressions.estimator import Classifier, Regression
from mmgibbs.regressions.estimators.hierarchical_slice import HierarchicalSlice
from mmgibbs.regressions.estimators.horseshoe import HorseshoeProbit
from mmgibbs.regressions.estimators.lasso import BayesianLasso
from mmgibbs.regressions.estimators.multinomial_hmc import MultinomialHMC
from mmgibbs.regressions.estimators.multinomial_pg import MultinomialPG

__all__ = [
    "BayesianLasso",
    "Classifier",
    "HierarchicalSlice",
    "HorseshoeProbit",
    "MultinomialHMC",
    "MultinomialPG",
    "Regression",
]
