"""An analysis without a mistake, and the message about one that has some."""

import copy

import pytest

from mmgibbs.config import load_config
from mmgibbs.errors import ConfigError

GOOD = {
    "name": "beef",
    "data": {"phenotypes": "p.csv", "pedigree": "q.csv"},
    "traits": ["bw", "ww"],
    "model": {
        "fixed": {"sex": {}, "age": {"kind": "covariate"}},
        "random": {
            "genetic": {
                "relationship": "pedigree",
                "effects": {"direct": {"level": "animal"}, "maternal": {"level": "dam", "traits": ["ww"]}},
            },
            "herd": {"traits": ["ww"]},
        },
    },
    "variances": {"genetic": [[9, 6, 0], [6, 90, -10], [0, -10, 40]], "herd": 30, "residual": [[12, 10], [10, 160]]},
    "sampler": {"samples": 1000},
    "output": {"save_levels": ["herd"]},
}
REMOVE = object()
IN_ORDER = "in the order direct:bw, direct:ww, maternal:ww"


def changed(path: str, value, tree: dict = GOOD) -> dict:
    """The tree with another value at the path; sections that it lacks are added."""
    tree = copy.deepcopy(tree)
    *above, last = path.split(".")
    node = tree
    for key in above:
        node = node.setdefault(key, {})
    if value is REMOVE:
        del node[last]
    else:
        node[last] = value
    return tree


def message_of(source, overrides=()) -> str:
    with pytest.raises(ConfigError) as error:
        load_config(source, overrides)
    return str(error.value)
