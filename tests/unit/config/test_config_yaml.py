"""Reading of analysis files: what is no plain YAML mapping in UTF-8 is refused with one message, at once."""

import os
import time

import pytest

from mmgibbs.config import load_config
from mmgibbs.config.text import MOST_BYTES, Plain, parse_yaml
from mmgibbs.errors import ConfigError

HEAD = "data: {phenotypes: p.csv}\ntraits: [y]\n"


@pytest.fixture
def message(tmp_path):
    """The message for a file of this content, without the file's name, and never after more than 5 seconds."""

    def refused(content: str | bytes) -> str:
        path = tmp_path / "a.yaml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        started = time.perf_counter()
        with pytest.raises(ConfigError) as error:
            load_config(path)
        assert time.perf_counter() - started < 5
        text = str(error.value)
        assert text.startswith(str(path)) and "\n" not in text
        return text.removeprefix(str(path))

    return refused


@pytest.mark.parametrize(
    "content, expected",
    [
        ("", ": is empty, needed an analysis (name, data, traits, model, ...)"),
        ("- a\n- b\n", ": found a list of 2 values, needed a mapping with keys such as name, data, traits, model"),
        ("traits: [y]\nname: a\ntraits: [z]\n", " line 3: the key 'traits' is written twice in the same mapping"),
        (
            "name: !!python/object/apply:os.system [ls]\n",
            " line 1: the tag 'tag:yaml.org,2002:python/object/apply:os.system' is not accepted in an analysis file; "
            "write the plain value",
        ),
        ("name: !mine x\n", " line 1: the tag '!mine' is not accepted in an analysis file; write the plain value"),
        ("[a, b]: 3\n", " line 1: found a list of 2 values as a key, needed a name"),
        ("a: 1\n---\nb: 2\n", " line 2: a second document begins ('---'), needed one analysis per file"),
        ("a: *b\n", " line 1: '*b' refers to something that is not written before it; text beginning with * needs"),
        ("a: " + "[" * 40 + "]" * 40, " line 1: lists or mappings are nested more than 30 levels deep"),
        ("name: x\nmodel:\n\tfixed: {}\n", "; indent with blanks, not tabs"),
        ("name: a: b\n", "; check the indentation, and put text that holds ': ' in quotation marks"),
        ("name: [a\n", ": is not valid YAML"),
        ("name: @a\n", " line 1, column 7: is not valid YAML"),
        ("name: x\nb\x00c\n", ": is not readable text: "),
        ('name: "\\ud800"\n', ""),
        ("name: gr\xfc\xdfe\n".encode("latin-1"), " line 1: byte 0xfc is not UTF-8 text; save the file as UTF-8"),
        (b"x" * (MOST_BYTES + 1), ": has 4,000,001 bytes, an analysis file has at most 4,000,000; is this a data"),
    ],
    ids=lambda v: None if isinstance(v, bytes) and len(v) > 100 else repr(v)[:40],
)
def test_refused(message, content, expected):
    assert expected in message(content)


BOMB = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
BOMB += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("\n".join(BOMB), "more than 100,000 values (references unfolded)"),
        (HEAD + "output: {save_levels: {herd: [" + "1," * 1_000_000 + "]}}\n", "more than 100,000 values"),
        ("a: " + "[" * 1_000_000, "nested more than 30 levels deep"),
        (HEAD + f"sampler: {{seed: {'1' * 1_000_000}}}\n", "sampler.seed: found '111111"),
    ],
    ids=["bomb", "values", "brackets", "digits"],
)
def test_a_million(message, content, expected):
    assert expected in message(content)


def test_a_folder_a_device_and_nothing(tmp_path):
    for path, text in [
        (tmp_path, "is a folder, needed an analysis file (YAML)"),
        ("/dev/zero", "is a device or a pipe, needed an analysis file (YAML)"),
        (tmp_path / "none.yaml", "no such file"),
        (tmp_path / ("x" * 300), "cannot be read: File name too long"),
        ("a\0b", "cannot be read: "),
    ]:
        with pytest.raises(ConfigError, match=f".*: {text}".replace("(", r"\(").replace(")", r"\)")):
            load_config(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="is a device or a pipe"):
        load_config(tmp_path / "pipe")


@pytest.mark.skipif(
    os.name == "nt" or not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read everything"
)
def test_a_file_without_permission(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(HEAD)
    path.chmod(0)
    with pytest.raises(ConfigError, match="cannot be read: Permission denied"):
        load_config(path)


def test_a_byte_order_mark_is_no_character(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + HEAD.encode())
    assert load_config(path).traits[0].name == "y"


def test_anchors_are_unfolded_and_quoted_text_is_told_apart():
    assert parse_yaml("a: &x [1, '2']\nb: *x\n", "t") == {"a": ["1", "2"], "b": ["1", "2"]}
    tree = parse_yaml("[1, '1', \"1\", x, !!str 1]", "t")
    assert [isinstance(v, Plain) for v in tree] == [True, False, False, True, False]


def deep(n: int):
    value: list = []
    for _ in range(n):
        value = [value]
    return value


def test_dicts_are_held_to_the_same_limits():
    itself: dict = {}
    itself["a"] = itself
    for tree, text in [
        (itself, "nested more than 30 levels deep"),
        ({"a": deep(10_000)}, "nested more than 30 levels deep"),
        ({"a": [0] * 200_000}, "more than 100,000 values"),
        ({"a": {None: 1}}, "a: found nothing as a key, needed a name"),
        ({True: 1}, "the analysis: found true as a key, needed a name"),
        ({"name": "\ud800"}, "which is not text"),
        ({"\ud800": 1}, "which is not text"),
        ({"sampler": {"seed": 10**4000}}, "found a number of more than 30 digits"),
        ({"sampler": {"seed": object()}}, "found a value of type object"),
    ]:
        with pytest.raises(ConfigError, match=text):
            load_config(tree)


@pytest.mark.parametrize("word", ["true", "yes"])
def test_true_in_a_file_asks_for_windows(tmp_path, word):
    (tmp_path / "a.yaml").write_text(
        "name: a\ndata: {phenotypes: p.csv, genotypes: g.bed}\ntraits: [y]\n"
        f"model: {{markers: {{snps: {{windows: {word}}}}}}}\n"
    )
    windows = load_config(tmp_path / "a.yaml").model.markers["snps"].windows
    assert windows is not None and windows.share == 0.01


@pytest.mark.parametrize(("written", "size"), [("20", 20), ("{size: 20}", 20), ("5000", 5000)])
def test_a_number_is_the_size_of_a_core(tmp_path, written, size):
    for kind in ("genomic", "single_step"):
        (tmp_path / "a.yaml").write_text(WITH_A_CORE.format(kind=kind, core=written))
        core = load_config(tmp_path / "a.yaml").model.random["animal"].relationship.core
        assert (core.size, core.explained, core.file, core.seed) == (size, None, None, 1)


@pytest.mark.parametrize("written", ["0", "-3", "2.5", "many", "[20]", "true"])
def test_what_is_no_size_of_a_core(tmp_path, written):
    (tmp_path / "a.yaml").write_text(WITH_A_CORE.format(kind="genomic", core=written))
    with pytest.raises(ConfigError, match=r"model.random.animal.relationship.core(.size)?: found .*, needed a"):
        load_config(tmp_path / "a.yaml")


WITH_A_CORE = """
data: {{phenotypes: p.csv, pedigree: ped.csv, genotypes: g.bed}}
traits: [y]
model: {{random: {{animal: {{level: animal, relationship: {{kind: {kind}, core: {core}}}}}}}}}
variances: {{animal: {{start: 1, fixed: true}}, residual: {{start: 1, fixed: true}}}}
sampler: {{method: blup}}
"""
