"""Values of an analysis have the types that they are written with: nothing is turned silently into something else."""

import pytest
from helpers.good_analysis import changed

from mmgibbs.config import load_config
from mmgibbs.errors import ConfigError

SMALL = {"data": {"phenotypes": "p.csv"}, "traits": ["y"], "model": {"random": {"herd": {}}}}


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("sampler.chains", True),  # true is not 1
        ("sampler.chains", 2.5),
        ("sampler.chains", b"2"),
        ("sampler.interweave", 1),  # 1 is not true
        ("data.add_missing_animals", 1),
        ("data.add_missing_animals", "t"),
        ("data.weights", True),
        ("data.header", {"a", "b"}),  # a set has no order
        ("data.header", iter(["a", "b"])),
        ("data.genotypes", {"file": "g.bed", "quality": {"maf": True}}),
        ("sampler.stop", {"rhat": "inf"}),
        ("sampler.method", True),
        ("model.random", [("herd", {})]),
    ],
)
def test_other_types_are_refused(place, value):
    with pytest.raises(ConfigError, match=f"^analysis: {place}"):
        load_config(changed(place, value, SMALL))


@pytest.mark.parametrize(
    ("place", "value", "read"),
    [
        ("sampler.chains", "3", 3),
        ("sampler.thin", "1e1", 10),
        ("sampler.interweave", "yes", True),
        ("sampler.interweave", "Auto", "auto"),
        ("data.add_missing_animals", "On", True),
        ("data.weights", 2019, "2019"),
        ("data.missing", [-9, 1.0, True, "x"], ["-9", "1", "true", "x"]),
        ("sampler.threads", "auto", None),
        ("data.header", "a", ["a"]),
    ],
)
def test_what_a_file_writes_as_text_is_read_as_its_key_means(place, value, read):
    node = load_config(changed(place, value, SMALL)).resolved()
    for key in place.split("."):
        node = node[key]
    assert node == read and type(node) is type(read)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("data.widths", [4, "x", "y"], "data.widths: value 2 of the list: "),
        ("data.widths", "x", "data.widths: "),
        ("variances.herd", [[1], 2], "variances.herd.start: row 2 of the matrix: "),
        ("variances.herd", [["x"]], "variances.herd.start: row 1 of the matrix: "),
        ("model.fixed", {"a": {"prior": {"variance": {"y": 0}}}}, "model.fixed.a.prior.variance.y: "),
        ("sampler.stop", {"mcse": {"h2[*]": -1}}, r"sampler.stop.mcse.h2\[\*\]: "),
    ],
)
def test_a_problem_is_told_at_its_place(place, value, message):
    with pytest.raises(ConfigError) as error:
        load_config(changed(place, value, SMALL))
    (line,) = str(error.value).splitlines()
    assert line.startswith(f"analysis: {message}".replace("\\", ""))
