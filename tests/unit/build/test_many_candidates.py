"""Candidates of decisions as users write them: the same animals, or one line of refusal or a warning."""

import pytest
import yaml
from helpers.spelled_tables import NUMBERED, PLAIN, Case

from mmgibbs.build.assemble import assemble
from mmgibbs.build.decisions import candidate_ids, decision_notes, read_decisions
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import MmgibbsError

MIN_INPUTS = 50
CHOSEN = [20, 3, 31, 12, 7]


@pytest.fixture(scope="module")
def evaluations(tmp_path_factory):
    """Animals called K100, K101, ... and 1, 2, ...: folder, analysis as a tree, data, model."""
    out = {}
    for name, spelling in (("words", PLAIN), ("numbers", NUMBERED)):
        folder = tmp_path_factory.mktemp(name)
        tree = Case(name, spelling=spelling).config(folder)
        tree["variances"] = {"mode": "fixed", **{k: v for k, v in tree["variances"].items() if k != "mode"}}
        tree["sampler"] = {"chains": 2, "burn_in": 10, "samples": 100, "thin": 2, "seed": 1}
        prepared = prepare(load_config(tree))
        out[name] = folder, tree, prepared, assemble(load_config(tree), prepared)
    return out


def outcome_of(evaluation, candidates):
    """('same', 'told', 'refused' or 'different', what was said); candidates: a YAML value, or the content of a file."""
    folder, tree, prepared, assembled = evaluation
    spelling = NUMBERED if folder.name.startswith("numbers") else PLAIN
    if isinstance(candidates, bytes):
        (folder / "candidates.txt").write_bytes(candidates)
        candidates = {"file": str(folder / "candidates.txt")}
    path = folder / "analysis.yaml"
    path.write_text(yaml.safe_dump({**tree, "decisions": {"candidates": "LIST", "top": [40]}}))
    text = path.read_text(encoding="utf-8")
    written = candidates if isinstance(candidates, str) else yaml.safe_dump(candidates, default_flow_style=True).strip()
    path.write_text(text.replace("LIST", written), encoding="utf-8")
    try:
        analysis = load_config(path)
        decisions = read_decisions(analysis, prepared, assembled)
    except MmgibbsError as error:
        return "refused", str(error)
    ids = candidate_ids(decisions, prepared).to_list()
    warnings = [n for n in decision_notes(analysis, prepared, decisions) if type(n) is not str]
    if warnings:
        return "told", "\n".join(warnings)
    if ids == [spelling.ids[i] for i in CHOSEN]:
        return "same", ""
    return ("all", "") if sorted(ids) == sorted(spelling.ids) else ("different", f"{ids}")


def list_inputs():
    """(name, expected, of which animals, value of `candidates`)."""
    inputs = []
    words, numbers = ([s.ids[i] for i in CHOSEN] for s in (PLAIN, NUMBERED))

    def add(name, expected, value, of="words"):
        inputs.append((name, expected, of, value))

    add("plain", "same", words)
    add("numbers", "same", [int(n) for n in numbers], "numbers")
    add("numbers as text", "same", numbers, "numbers")
    add("floats", "same", [float(n) for n in numbers], "numbers")
    add("zeros in front", "refused", [f"{int(n):04d}" for n in numbers], "numbers")
    add("a block of lines", "same", "\n" + "\n".join(f"  - {w}" for w in words))
    for name, change in (
        ("small letters", str.lower),
        ("blanks within", lambda w: "K " + w[1:]),
        ("zero width", lambda w: w + "\u200b"),
        ("quotes", lambda w: f"'{w}'"),
        ("dash", lambda w: "K-" + w[1:]),
    ):
        add(f"{name} in all", "refused", [change(w) for w in words])
        add(f"{name} in one", "refused", [change(w) if k == 2 else w for k, w in enumerate(words)])
    add("outer blanks", "same", [f" {w} " for w in words])
    add("one twice", "refused", [*words, words[1]])
    add("one twice, as a float", "refused", [*numbers, f"{numbers[1]}.0"], "numbers")
    add("one twice, with blanks", "refused", [*words, f" {words[1]} "])
    for code in ("0", "NA", ".", "", "unknown", "K999", "-9"):
        add(f"{code!r} among them", "refused", [*words, code])
    add("null among them", "refused", [*words, None])
    add("a list in a list", "refused", [words])
    add("a mapping", "refused", {"ids": words, "born_after": 2010})
    add("ids as a key", "same", {"ids": words})
    add("one animal", "refused", [words[0]])
    add("none", "refused", [])
    add("a text", "refused", f'"{", ".join(words)}"')
    add("a word", "refused", "everything")
    add("All", "refused", "All")
    add("all", "all", "all")
    add("true", "refused", "true")
    add("born after, without births", "refused", {"born_after": 2010})
    add("born after a word", "refused", {"born_after": "spring"})
    add("a herd", "refused", ["north", "south"])
    return inputs


def file_inputs():
    inputs = []
    words, numbers = ([s.ids[i] for i in CHOSEN] for s in (PLAIN, NUMBERED))
    text = "\n".join(words) + "\n"

    def add(name, expected, content, of="words"):
        inputs.append((f"file: {name}", expected, of, content if isinstance(content, bytes) else content.encode()))

    add("plain", "same", text)
    add("numbers", "same", "\n".join(numbers), "numbers")
    add("floats", "same", "\n".join(f"{n}.0" for n in numbers), "numbers")
    for name, end in (
        ("CRLF", "\r\n"),
        ("CR", "\r"),
        ("blank lines", "\n\n"),
        ("blanks behind", "  \n"),
        ("blanks in front", "\n  "),
    ):
        add(name, "same", end.join(words) + end)
    add("byte order mark", "same", "\ufeff" + text)
    add("two byte order marks", "same", "\ufeff\ufeff" + text)
    add("end of text of DOS", "same", text + "\x1a")
    add("UTF-16", "refused", text.encode("utf-16"))
    add("no-break space", "same", text.replace("\n", "\u00a0\n"))
    add("quotes", "same", "".join(f'"{w}"\n' for w in words))
    for header in ("id", "animal", "ID", "Animal_ID", '"animal"', "candidates"):
        add(f"below {header}", "refused" if header == "candidates" else "same", f"{header}\n{text}")
    add("a comma behind each", "refused", text.replace("\n", ",\n"))
    add("on one line", "refused", ", ".join(words))
    add("on one line with blanks", "refused", " ".join(words))
    add("with births", "refused", "".join(f"{w},2011\n" for w in words))
    add("with row numbers", "refused", "".join(f"{k},{w}\n" for k, w in enumerate(words, 1)))
    add("a list of YAML", "refused", "".join(f"- {w}\n" for w in words))
    add("a comment", "refused", "# bulls\n" + text)
    add("a comment behind", "refused", text.replace("\n", "  # good\n", 1))
    add("small letters", "refused", text.lower())
    add("one twice", "refused", text + words[0])
    add("one twice, otherwise", "refused", "\n".join([*numbers, numbers[0] + ".0"]), "numbers")
    for code in ("0", "NA", ".", "unknown", "K999"):
        add(f"{code!r} among them", "refused", text + code)
    add("nothing", "refused", "")
    add("blanks", "refused", " \n\n")
    add("one", "refused", words[0])
    add("a parquet file", "refused", b"PAR1\x00\x01")
    inputs.append(("file: none", "refused", "words", {"file": "absent.txt"}))
    inputs.append(("file: a folder", "refused", "words", {"file": "."}))
    return inputs


def test_candidates(evaluations):
    inputs, wrong = [*list_inputs(), *file_inputs()], []
    assert len(inputs) >= MIN_INPUTS and len({name for name, *_ in inputs}) == len(inputs)
    for name, expected, of, value in inputs:
        outcome, said = outcome_of(evaluations[of], value)
        if outcome not in expected.split("|") or (outcome == "refused" and "candidates" not in said):
            wrong.append(f"{name}: {outcome}, expected {expected}: {said[:300]}")
    assert not wrong, "\n".join(wrong)
