"""How messages write options."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mmgibbs.cli import main
from mmgibbs.errors import as_a_command, is_command, option, option_name, submit_in_context


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
    assert not is_command()
    with as_a_command():
        assert main(["check", str(tmp_path / "none.yaml")]) == 2
        assert is_command()
    assert main(["--version"]) == 0 and not is_command()


def test_a_command_in_one_thread_leaves_the_words_of_another():
    """A program may call `main` beside functions of Python."""
    inside, outside, words = threading.Event(), threading.Event(), {}

    def command():
        with as_a_command():
            inside.set()
            outside.wait(10)
            words["command"] = option("resume")
            with ThreadPoolExecutor(1) as pool:
                words["its thread"] = submit_in_context(pool, option, "resume").result()
                words["a thread alone"] = pool.submit(option, "resume").result()

    thread = threading.Thread(target=command)
    thread.start()
    inside.wait(10)
    words["python"] = option("resume")
    outside.set()
    thread.join()
    command, python = "--resume", "resume=True"
    assert words == {"command": command, "its thread": command, "a thread alone": python, "python": python}


def test_words_are_restored_after_an_error():
    with pytest.raises(ZeroDivisionError), as_a_command():
        raise ZeroDivisionError
    assert not is_command()
