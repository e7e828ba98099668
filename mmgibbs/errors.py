"""Errors caused by input, in four kinds.

Each message says what is wrong, where, what was found and what is needed, in a breeder's words.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

T = TypeVar("T")


class MmgibbsError(ValueError):
    """Base of all errors caused by input: the command line prints the message alone and exits with 2."""


class ConfigError(MmgibbsError):
    """An analysis that cannot be used: an unknown key, a wrong type. The message names the YAML path."""


class VersionError(ConfigError):
    """A checkpoint of a version that kept something else, which this version cannot continue."""


class DataError(MmgibbsError):
    """A table that cannot be used: a missing column, a wrong value. The message names file, row and column."""


class ModelError(MmgibbsError):
    """A model that does not fit the data, or has no posterior."""


class DeviceError(MmgibbsError):
    """A device, or an amount of memory, that the run needs and this machine does not have."""


class Stopped(KeyboardInterrupt):
    """SIGINT (Ctrl-C), SIGTERM or SIGHUP came. `signal`: its number; `kept`: there are checkpoints to continue from."""

    def __init__(self, signal: int, message: str, kept: bool = False):
        super().__init__(message)
        self.signal, self.kept = signal, kept


_is_command: ContextVar[bool] = ContextVar("is_command", default=False)


def is_command() -> bool:
    """Check whether messages write an option as on the command line, `--resume`, or as in Python, `resume=True`.

    It holds for this thread and for those that `submit_in_context` starts, so that a command beside calls from Python
    does not change their messages.
    """
    return _is_command.get()


@contextmanager
def as_a_command() -> Iterator[None]:
    """Messages write options as on the command line meanwhile, and then as they did before."""
    token = _is_command.set(True)
    try:
        yield
    finally:
        _is_command.reset(token)


def submit_in_context(pool: Executor, function: Callable[..., T], *arguments: Any) -> Future[T]:
    """`pool.submit` to a pool of threads, with messages as in the thread that submits."""
    return pool.submit(copy_context().run, function, *arguments)


def option(name: str, value: object = True) -> str:
    """Write an option as the reader gives it: 'resume=True' in Python, '--resume' for a command.

    With a value 'folds=3' or '--folds 3', "by='time'" or '--by time'. A value in capitals is one that the reader
    chooses: 'extend=SWEEPS'.
    """
    if is_command():
        return option_name(name) if value is True else f"{option_name(name)} {value}"
    return f"{name}={value if isinstance(value, str) and value.isupper() else repr(value)}"


def option_name(name: str) -> str:
    """'qtl_share' in Python, '--qtl-share' for a command."""
    return f"--{name.replace('_', '-')}" if is_command() else name


def nearest(wanted: str, names: Iterable[str], known: str = "known are") -> str:
    """Write the end of a message about a name that does not exist: the nearest one, or those that do."""
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


def describe_unknown_trait(trait: str, traits: Iterable[str], known: str = "the traits are") -> str:
    """Write what is wrong with a trait that does not exist, of an environment without one which there are."""
    traits = list(traits)
    name, bar, level = trait.partition("|")
    levels = [other.removeprefix(f"{name}|") for other in traits if other.startswith(f"{name}|")]
    if bar and levels and level.casefold() not in map(str.casefold, levels):
        listed = f"{', '.join(levels[:12])}{', ...' if len(levels) > 12 else ''}"
        return f"'{trait}' is not a trait: {name} has no level '{level}' (traits.{name}.by), but {listed}"
    return f"'{trait}' is not a trait; {nearest(trait, traits, known)}"
