"""Options with numbers: each declares its range, and takes no other number and no text."""

import argparse
import math
from importlib import import_module

import numpy as np
import pytest

from mmgibbs.cli import _COMMANDS, main
from mmgibbs.errors import ConfigError
from mmgibbs.options import AT_LEAST_ONE, POSITIVE, SEED, NumberRange

VALUES = ["-1", "0", "nan", "inf", "-inf", "1e400", "1_0", "text", "genotypes.bed", ""]
NAMED = {"_read_window_size": NumberRange(above=0)}  # functions that read a range with a message of their own


def list_actions(parser):
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from list_actions(sub)


def list_number_options():
    """(command, option, range) of every option with a number, as its declaration says."""
    found = []
    for name, command in _COMMANDS.items():
        parser = argparse.ArgumentParser()
        import_module(f"mmgibbs.{command.module}").COMMANDS[name][0](parser)
        for action in list_actions(parser):
            kind = NAMED.get(getattr(action.type, "__name__", ""), action.type)
            assert kind not in (int, float), f"{name} {action.option_strings}: a number without a range"
            if isinstance(kind, NumberRange):
                option = action.option_strings[0]
                found.append(pytest.param(name, option, kind, id=f"{name} {option}"))
    return found


NUMBER_OPTIONS = list_number_options()
REQUIRED = {
    "gwas": ["run"], "finemap": ["gwas"], "contributions": ["run", "c.csv"], "pedigree": ["p.csv"],
    "export": ["run", "--format", "draws"], "validate": ["a.yaml"], "run": ["a.yaml"], "report": ["run"],
    "compare": ["a", "b"], "open": [], "simulate": ["new"], "bench": ["evaluation", "a.yaml"],
}  # fmt: skip


def test_the_options_are_those_of_the_commands():
    """A command whose options are no longer found would pass below."""
    assert len(NUMBER_OPTIONS) >= 35 and {p.values[0] for p in NUMBER_OPTIONS} == set(REQUIRED)


@pytest.mark.parametrize("command, option, numbers", NUMBER_OPTIONS)
def test_no_other_value_is_taken(command, option, numbers, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    more = ["--matings", "5"] if command == "contributions" and option != "--matings" else []
    for text in VALUES:
        try:
            is_taken = "_" not in text and (int(text) if numbers.is_whole else float(text)) in numbers
        except ValueError:
            is_taken = False
        if is_taken:
            continue
        assert main([command, *REQUIRED[command], *more, f"{option}={text}"]) == 2
        said = capsys.readouterr().err
        last = said.splitlines()[-1]
        assert option in last and f"expected {numbers.describe()}, got '{text}'" in last, last
        assert "Traceback" not in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "numbers, words, taken, refused",
    [
        (NumberRange(1, is_whole=True), "a whole number of 1 or more", ["1", "+7"], ["0", "1.0", "1e3", "nan"]),
        (NumberRange(0, 0.5), "a number from 0 to 0.5", ["0", "0.5", "1e-3"], ["-0.1", "0.51", "inf"]),
        (NumberRange(0, below=1), "a number from 0 to below 1", ["0", "0.99"], ["1", "-1"]),
        (NumberRange(above=0), "a number above 0", ["1e-9", "3"], ["0", "inf", "-inf"]),
        (NumberRange(above=0, high=1), "a number above 0 and up to 1", ["1"], ["0", "1.1"]),
        (NumberRange(above=0, below=1), "a number above 0 and below 1", ["0.5"], ["0", "1"]),
        (NumberRange(0, can_be_infinite=True), "a number of 0 or more", ["inf", "0"], ["-1", "nan", "-inf"]),
        (NumberRange(), "a number", ["-3.5"], ["nan", "inf", "x"]),
    ],
)
def test_ranges(numbers, words, taken, refused):
    assert numbers.describe() == words
    for text in taken:
        assert numbers(text) == float(text) and math.isfinite(numbers(text)) | numbers.can_be_infinite
    for text in refused:
        with pytest.raises(argparse.ArgumentTypeError, match="expected"):
            numbers(text)


def test_a_number_that_no_float_can_have():
    assert AT_LEAST_ONE("9" * 400) == int("9" * 400)
    with pytest.raises(argparse.ArgumentTypeError, match="expected a whole number from 0 to 4294967295"):
        SEED("9" * 400)


def test_numbers_from_python():
    assert AT_LEAST_ONE.check("top", np.int32(3)) == 3 and POSITIVE.check("width", np.float32(0.5)) == 0.5
    for numbers, value in (
        (AT_LEAST_ONE, True),
        (AT_LEAST_ONE, 2.0),
        (AT_LEAST_ONE, "3"),
        (POSITIVE, None),
        (POSITIVE, 0),
    ):
        with pytest.raises(ConfigError, match=rf"^top: expected {numbers.describe()}, got {value!r}$"):
            numbers.check("top", value)


def test_a_file_behind_the_windows_is_no_size(capsys):
    assert main(["gwas", "run", "--windows", "genotypes.bed"]) == 2
    assert "a FILE stands before --windows, or after --windows=SIZE" in capsys.readouterr().err
