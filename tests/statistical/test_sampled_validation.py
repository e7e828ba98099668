"""Probabilities of records left out are calibrated where the model is the one that made the records.

z = sum (y - p)(p - p') / sqrt(sum p (1 - p) (p - p')^2) is standard normal if p are the probabilities of y. Spoilt
copies must fail: squared probabilities, and Phi of the mean liability in place of the mean of Phi.
"""

import numpy as np
import pytest
from helpers.validation_data import binary_analysis, binary_population
from scipy.special import ndtr

from mmgibbs.models.families.categories import Binary
from mmgibbs.validation import predicted_records
from mmgibbs.validation.options import ValidationPlan
from mmgibbs.validation.page import calibration_curve
from mmgibbs.validation.run import validate_analysis

pytestmark = pytest.mark.slow


def predictions(path):
    config = binary_analysis(*binary_population(), str(path / "run"), burn_in=100, samples=500)
    found = validate_analysis(config, ValidationPlan(method="kfold", folds=4), progress=False, report=False).predictions
    return found["predicted"].to_numpy(), found["observed"].to_numpy()


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    return predictions(tmp_path_factory.mktemp("right"))


def z_of(p, y):
    weight = p - p.mean()
    return ((y - p) * weight).sum() / np.sqrt((p * (1 - p) * weight**2).sum())


def test_the_model_is_calibrated(right):
    p, y = right
    assert abs(z_of(p, y)) < 3.3
    curve = calibration_curve(p, y)
    outside = ((curve[:, 1] < curve[:, 2]) | (curve[:, 1] > curve[:, 3])).sum()
    assert len(curve) == 10 and outside <= 2


def test_squared_probabilities_are_noticed(right):
    p, y = right
    curve = calibration_curve(p**2, y)
    assert ((curve[:, 1] < curve[:, 2]) | (curve[:, 1] > curve[:, 3])).sum() >= 6


def test_phi_of_the_mean_is_noticed(tmp_path, monkeypatch):
    """Liabilities are averaged first: too sure of themselves."""
    monkeypatch.setattr(Binary, "predict", lambda self, eta, V, thresholds: (eta[:, None], eta))

    def found(self):
        eta = self.sums[1] / self.n
        p = ndtr(eta)
        return predicted_records.FoldPredictions(self.records, np.stack([1 - p, p], axis=1), p, 0)

    monkeypatch.setattr(predicted_records.Predictions, "found", found)
    assert abs(z_of(*predictions(tmp_path))) > 5
