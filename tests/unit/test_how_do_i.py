"""The answers of "How do I ...?": every fragment of an analysis file is understood in a shipped analysis."""

import re

import pytest
import yaml
from helpers.support import ROOT

from mmgibbs.config import load_config

PAGE = next(ROOT.glob("docs/**/how-do-i.md")).read_text(encoding="utf-8")
FRAGMENT = re.compile(r"^### (.*?)$|^<!-- base: (\w+) -->\n```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def fragments():
    question = ""
    for heading, base, text in FRAGMENT.findall(PAGE):
        question = heading or question
        if base:
            yield pytest.param(base, text, id=question)


def merge(base, changes):
    """`base` with the keys of `changes`; effects of a fragment take the place of those of the same section."""
    if not isinstance(base, dict) or not isinstance(changes, dict):
        return changes
    replaced = {"fixed", "random", "traits", "decisions", "groups"}
    return base | {k: v if k in replaced else merge(base.get(k), v) for k, v in changes.items()}


@pytest.mark.parametrize(("base", "text"), list(fragments()))
def test_a_fragment_is_understood(base, text, monkeypatch):
    monkeypatch.chdir(ROOT / "configs")
    whole = yaml.safe_load((ROOT / "configs" / f"{base}.yaml").read_text(encoding="utf-8"))
    load_config(merge(whole, yaml.safe_load(text)))


def test_a_wrong_key_in_a_fragment_is_seen():
    with pytest.raises(Exception, match="methd"):
        load_config(merge(yaml.safe_load((ROOT / "configs/first.yaml").read_text()), {"sampler": {"methd": "reml"}}))


def test_there_are_at_least_thirty_answers():
    questions = re.findall(r"^### How do I .*\?$", PAGE, re.MULTILINE)
    assert len(questions) >= 30
    assert len(set(questions)) == len(questions)
    assert PAGE.count("<!-- base: ") == len(list(fragments()))
