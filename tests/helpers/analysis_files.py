"""Analysis files that tests of `config` read and change."""

import copy

from mmgibbs.config import load_config

# The example of the design note, word for word.
BEEF = """\
name: beef-maternal
data:
  phenotypes: ../data_samples/beef/phenotypes.csv
  pedigree: ../data_samples/beef/pedigree.csv
traits: [birth_weight, weaning_weight]
model:
  fixed:
    contemporary_group: {column: cg}                       # every trait unless told otherwise
    sex: {}
    dam_age: {kind: covariate, degree: 2, traits: [weaning_weight]}
  random:
    genetic:
      relationship: pedigree
      effects:
        direct: {level: animal}
        maternal: {level: dam, traits: [weaning_weight]}
    maternal_environment: {level: dam, traits: [weaning_weight]}
variances:
  genetic:
    start: [[9, 6, 0], [6, 90, -10], [0, -10, 40]]
    prior: {df: 5, scale: [[9, 6, 0], [6, 90, -10], [0, -10, 40]]}
  maternal_environment: {start: 30}
  residual: {start: [[12, 10], [10, 160]]}
sampler: {chains: 4, burn_in: 5000, samples: 20000, thin: 10, seed: 42, engine: auto}
output: {directory: runs/beef-maternal}
"""
SMALL = {
    "data": {"phenotypes": "p.csv", "pedigree": "ped.csv"},
    "traits": ["y"],
    "model": {"random": {"genetic": {"level": "animal", "relationship": "pedigree"}}},
}


def small(**sections) -> dict:
    return copy.deepcopy(SMALL) | sections


def load_text(tmp_path, text: str, *overrides: str):
    path = tmp_path / "a.yaml"
    path.write_text(text)
    return load_config(path, overrides)
