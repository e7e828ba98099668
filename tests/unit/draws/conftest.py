"""The C++ twins, compiled once: as they are, and with one error in each family."""

import pytest
from helpers.draw_batches import build, twin_source

# family -> a mistake that the statistical test of this family must catch
MUTATIONS = {
    "normal": ("z1 = radius * s;", "z1 = 1.01 * radius * s;"),
    "exponential": ("e0 = -log(u);", "e0 = -log(0.99 * u + 0.01 * v);"),
    "gamma": ("double d = shape - 0.3333333333333333;", "double d = shape - 0.29;"),
    "truncated_normal": ("double centre = 1.0 / rate;", "double centre = 0.97 / rate;"),
    "inverse_gaussian": ("if (u * (1.0 + g) > g)", "if (u * (1.0 + g) > 1.02 * g)"),
    "sums of polya_gamma": ("mean -= shape * weight;", "mean -= 1.01 * shape * weight;"),
    "poisson_log_normal": ("double mode = a - w;", "double mode = a - 1.02 * w;"),
    "polya_gamma": ("const double LEFT_MASS = 0.47", "const double LEFT_MASS = 0.45"),
}


@pytest.fixture(scope="session")
def twins(tmp_path_factory):
    """The C++ twins of all draws, compiled by g++ through the host shim."""
    return build(tmp_path_factory.mktemp("twins"), "twins", twin_source())


@pytest.fixture(scope="session")
def mutants(tmp_path_factory):
    """The same with every mistake of MUTATIONS in it."""
    return build(tmp_path_factory.mktemp("mutants"), "mutants", twin_source(MUTATIONS.values()))
