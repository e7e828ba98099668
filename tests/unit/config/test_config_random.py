"""Whatever is done to a good analysis, it is either accepted or refused with a ConfigError that speaks plainly."""

import copy
import json
import math

import numpy as np
from helpers.analysis_files import BEEF
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.config.test_config import FULL

from mmgibbs.config import Analysis, load_config
from mmgibbs.config.text import as_yaml_value, parse_yaml
from mmgibbs.errors import ConfigError

JARGON = ("validation error", "Input should", "pydantic", "Traceback", "type=", "NoneType", "<class", "mmgibbs.config")
GOOD = [as_yaml_value(parse_yaml(BEEF, "beef")), json.loads(json.dumps(FULL, default=np.ndarray.tolist))]
WORDS = [*"auto flat fixed pedigree identity animal y z birth_weight genetic residual 1e-3 . a/b ~x".split(), "", " "]
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(WORDS),
    st.integers(-3, 30),
    st.just(10**400),
    st.just(-0.0),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4) | st.sampled_from(WORDS), inner, max_size=3)
    ),
    max_leaves=9,
)
quick = settings(
    max_examples=70,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def accepted_or_refused_plainly(source, overrides=()) -> None:
    try:
        analysis = load_config(source, overrides)
    except ConfigError as error:
        text = str(error)
        assert text and not any(word in text for word in JARGON), text
        origins = ("analysis: ", "override ") if isinstance(source, dict) else (str(source),)
        assert all(line.startswith(origins) for line in text.splitlines()), text
        return
    assert isinstance(analysis, Analysis)
    resolved = analysis.resolved()
    json.dumps(resolved)
    if "data frame" not in str(resolved):
        assert load_config(resolved).resolved() == resolved
    for variance in (analysis.variances.residual, *analysis.variances.terms.values()):
        if variance.start is not None:
            np.linalg.cholesky(np.array(variance.start) / math.sqrt(np.abs(variance.start).max()) ** 2)


def places(tree, above=()):
    """Paths of all nodes but the root."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*above, key)
        yield from places(value, (*above, key))


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


@st.composite
def mutated(draw):
    tree = copy.deepcopy(draw(st.sampled_from(GOOD)))
    for _ in range(draw(st.integers(1, 3))):
        everywhere = list(places(tree))
        if not everywhere:
            break
        path = draw(st.sampled_from(everywhere))
        node, key = at(tree, path[:-1]), path[-1]
        match draw(st.sampled_from(["replace", "remove", "rename", "copy", "wrap"])):
            case "replace":
                node[key] = draw(values)
            case "remove":
                del node[key]
            case "rename" if isinstance(node, dict):
                node[draw(st.text(max_size=4) | st.sampled_from([*WORDS, *(str(p[-1]) for p in everywhere)]))] = (
                    node.pop(key)
                )
            case "copy":
                node[key] = copy.deepcopy(at(tree, draw(st.sampled_from(everywhere))))
            case _:
                node[key] = [node[key]]
    return tree


@quick
@given(mutated())
def test_mutated_dicts(tree):
    accepted_or_refused_plainly(tree)


@quick
@given(
    st.integers(0, len(BEEF)),
    st.integers(0, 12),
    st.text(max_size=6)
    | st.sampled_from(["\t", "{", "[", "*a", "&a ", "!!x ", "\n", ": ", "- ", "'", '"', "#", "1e999"]),
)
def test_mutated_text(tmp_path, start, removed, inserted):
    path = tmp_path / "a.yaml"
    path.write_bytes((BEEF[:start] + inserted + BEEF[start + removed :]).encode("utf-8", "surrogatepass"))
    accepted_or_refused_plainly(path)


@quick
@given(
    st.lists(
        st.text(max_size=12)
        | st.builds(
            "{}={}".format, st.sampled_from([".".join(map(str, p)) for p in places(GOOD[0])]), st.text(max_size=8)
        ),
        max_size=3,
    )
)
def test_random_overrides(overrides):
    accepted_or_refused_plainly(GOOD[0], overrides)
