"""Every SNP of the mice, in GBLUP with a random cage effect, against dense generalised least squares."""

import numpy as np
import polars as pl
import pytest
from helpers.support import shared_data
from reference.models import class_term, random_term, with_records
from scipy.linalg import cho_factor, cho_solve

import mmgibbs
from mmgibbs.association.projection import InformationByMatrix, Projection
from mmgibbs.association.statistics import genomic_inflation
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.models.relationships.identity import Identity
from mmgibbs.models.terms import Effect
from mmgibbs.results.p_values import log_p_of_z

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def mice(tmp_path_factory):
    """(run, table of genotypes, X (n, p), cages)."""
    folder = tmp_path_factory.mktemp("mice")
    X = np.load(shared_data("data/genomics/bglr_mice/mice_X.npz"))["X"]
    table = pl.read_csv(shared_data("data/genomics/bglr_mice/mice_pheno.csv"), infer_schema_length=None)
    ids = [f"mouse{i}" for i in range(len(X))]
    pl.DataFrame({"animal": ids} | {f"snp{j}": X[:, j] for j in range(X.shape[1])}).write_csv(folder / "mice.csv")
    records = pl.DataFrame({"animal": ids, "bmi": table["Obesity.BMI"], "cage": table["cage"], "sex": table["GENDER"]})
    records.write_csv(folder / "records.csv")
    data = {"phenotypes": str(folder / "records.csv"), "genotypes": str(folder / "mice.csv")}
    random = {"genetic": {"level": "animal", "relationship": "genomic"}, "cage": {}}
    analysis = {"data": data, "traits": {"bmi": {}}, "model": {"fixed": {"sex": {}}, "random": random}}
    run = mmgibbs.run(analysis | {"sampler": {"method": "reml"}}, directory=folder / "run", progress=False)
    return run, folder / "mice.csv", X.astype(float), records


def test_against_dense_least_squares(mice):
    run, genotypes, X, records = mice
    tested = mmgibbs.gwas(run.directory, genotypes, maf=0.0, call_rate=0.0, exact_limit=1e9, progress=False).values
    relationship = run.info["relationships"]["genetic"]
    M = X - X.mean(axis=0)
    p = X.mean(axis=0) / 2
    G = M @ M.T / np.sum(2 * p * (1 - p))
    blend = relationship.get("blend", 0.0) if isinstance(relationship.get("blend", 0.0), float) else 0.0
    G = (1 - blend) * G + blend * np.eye(len(G))
    variance = dict(run.summary.select("parameter", "mean").iter_rows())
    Z = records["cage"].to_dummies().to_numpy().astype(float)
    V = variance["genetic.var[bmi]"] * G + variance["cage.var[bmi]"] * Z @ Z.T
    V += variance["residual.var[bmi]"] * np.eye(len(G))
    fixed = records["sex"].to_dummies().to_numpy().astype(float)
    factor = cho_factor(V)
    VX = cho_solve(factor, fixed)
    P = cho_solve(factor, np.eye(len(V))) - VX @ np.linalg.solve(fixed.T @ VX, VX.T)
    y = records["bmi"].to_numpy()
    score, information = M.T @ (P @ y), np.einsum("nj,nj->j", M, P @ M)
    is_tested = tested["left_out"].is_null().to_numpy()
    np.testing.assert_allclose(tested["effect_bmi"].to_numpy()[is_tested], (score / information)[is_tested], rtol=1e-8)
    np.testing.assert_allclose(tested["se_bmi"].to_numpy()[is_tested], information[is_tested] ** -0.5, rtol=1e-8)
    assert is_tested.sum() > 10_000


N_NULL, RECORDS = 200, 5


def test_null_simulations_with_repeated_records(mice):
    """Five records an animal: lambda and P(p < .01) are those of chance; records as if independent are not."""
    _, _, X, _ = mice
    rng = np.random.default_rng(6)
    m = 300
    x = X[np.ix_(rng.permutation(len(X))[:m], rng.permutation(X.shape[1])[:1000])]
    x = x[:, x.std(axis=0) > 0.2]
    x = rng.permuted(x - x.mean(axis=0), axis=0)  # of linked SNPs the median is skewed, and the mean of lambda above 1
    animal = np.repeat(np.arange(m), RECORDS)
    mean = class_term("mean", np.zeros(animal.size, np.int32), 1, (0,))
    term = random_term("animal", (Effect("", animal.astype(np.int32), (0,)),), Identity(m), m)
    between, within = np.array([[1.0]]), np.array([[2.0]])
    inflation, naive_inflation, small, information = [], [], [], None
    for _ in range(N_NULL):
        design = with_records(rng, animal.size, (mean, term), [None, between], within)
        projection = Projection(design, Variances([None, between], within[None]), animal, m)
        if information is None:  # the same for all records of this design
            information = InformationByMatrix(projection)(x)[:, 0, 0]
        log_p = log_p_of_z(x.T @ projection.scores[:, 0] / np.sqrt(information))
        inflation.append(genomic_inflation(log_p))
        small.append(np.mean(log_p > 2))
        y = design.y[:, 0] - design.y[:, 0].mean()
        z = x[animal].T @ y / np.sqrt(np.sum(x[animal] ** 2, axis=0) * y.var())
        naive_inflation.append(genomic_inflation(log_p_of_z(z)))

    def away(values, expected):
        return abs(np.mean(values) - expected) / (np.std(values, ddof=1) / np.sqrt(len(values)))

    assert away(inflation, 1.0) < 3 and away(small, 0.01) < 3
    assert away(naive_inflation, 1.0) > 6
