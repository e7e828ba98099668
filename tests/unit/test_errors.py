"""How messages write options."""

import pytest

from mmgibbs.cli import main
from mmgibbs.errors import Speaking, as_a_command, option, option_name


@pytest.mark.parametrize(
    ("name", "value", "python", "command"),
    [
        ("resume", True, "resume=True", "--resume"),
        ("extend", "SWEEPS", "extend=SWEEPS", "--extend SWEEPS"),
        ("folds", 3, "folds=3", "--folds 3"),
        ("by", "time", "by='time'", "--by time"),
        ("qtl_share", 0.5, "qtl_share=0.5", "--qtl-share 0.5"),
    ],
)
def test_options_of_python_and_of_a_command(name, value, python, command):
    assert option(name, value) == python and option_name(name) == name
    with as_a_command():
        assert option(name, value) == command and option_name(name) == command.split()[0]
    assert option(name, value) == python


def test_a_command_within_a_command_leaves_the_words_as_they_were(tmp_path):
    assert not Speaking.of_a_command
    with as_a_command():
        assert main(["check", str(tmp_path / "none.yaml")]) == 2
        assert Speaking.of_a_command
    assert main(["--version"]) == 0 and not Speaking.of_a_command


def test_words_are_restored_after_an_error():
    with pytest.raises(ZeroDivisionError), as_a_command():
        raise ZeroDivisionError
    assert not Speaking.of_a_command
