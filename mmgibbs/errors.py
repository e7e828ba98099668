"""What can go wrong for a user, in four kinds. Each message says what, where, found and needed, in a breeder's
words.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MmgibbsError(ValueError):
    """Base of all errors caused by input: the command line prints the message alone and exits with 2."""


class ConfigError(MmgibbsError):
    """The analysis file: an unknown key, a wrong type, a matrix of the wrong size. Names the YAML path."""


class OtherVersion(ConfigError):
    """The checkpoint of a chain, written by a version that kept something else: it cannot be continued by this one."""


class DataError(MmgibbsError):
    """A table: a missing file or column, a value that cannot be used. Names file, row and column."""


class ModelError(MmgibbsError):
    """The model and the data do not fit together, or the posterior does not exist."""


class DeviceError(MmgibbsError):
    """A device, or an amount of memory, that the run needs and this machine does not have."""


class Stopped(KeyboardInterrupt):
    """SIGINT (Ctrl-C) or SIGTERM came. `signal`: its number; `kept`: whether there are checkpoints to continue from."""

    def __init__(self, signal: int, message: str, kept: bool = False):
        super().__init__(message)
        self.signal, self.kept = signal, kept


class Speaking:
    """How messages call an option: `resume=True` in Python, `--resume` while a command runs (which sets this)."""

    of_a_command = False


def option(name: str, value: str = "True") -> str:
    """'resume=True', or '--resume'; with a value 'extend=SWEEPS', or '--extend SWEEPS'."""
    if not Speaking.of_a_command:
        return f"{name}={value}"
    return f"--{name}" if value == "True" else f"--{name} {value}"


def nearest(wanted: str, names: Iterable[str], known: str = "known are") -> str:
    """The end of a message about a name that is not there: the nearest one, or those there are."""
    folded, wanted = {name.casefold(): name for name in names}, wanted.casefold()
    close = difflib.get_close_matches(wanted, folded, n=1, cutoff=0.6)
    close += [
        name
        for name in folded
        if min(len(name), len(wanted)) > 3 and (name.startswith(wanted) or wanted.startswith(name))
    ]
    if close:
        return f"did you mean '{folded[close[0]]}'?"
    listed = list(folded.values())
    return f"{known} {', '.join(listed[:12])}{', ...' if len(listed) > 12 else ''}" if listed else "there are none"
