"""Arguments of the estimators that are no options of a plugin: chains, sweeps, seed, threads, switches."""

from __future__ import annotations

import reprlib
import secrets
from typing import Any, Protocol

import numpy as np

from mmgibbs.errors import ConfigError

MAX_COUNTER_WORD = 2**32 - 1  # of a seed, and of the number of a sweep: words of a counter
MOST_CHAINS = 10_000


class Sampling(Protocol):
    """Settings of the chains that every estimator has."""

    chains: int
    burn_in: int
    samples: int
    thin: int
    threads: int | None
    device: str
    standardise: bool
    progress: bool


def shown(value: object) -> str:
    """`value` as a message shows it: long arrays and texts are cut."""
    return reprlib.repr(value.tolist() if isinstance(value, np.ndarray) else value)


def check_integer(name: str, value: Any, least: int, most: int = MAX_COUNTER_WORD) -> int:
    """ConfigError unless `value` is a whole number from `least` to `most`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
        raise ConfigError(f"{name}: found {shown(value)}, needed a whole number from {least} to {most:,}")
    return int(value)


def read_seed(seed: Any) -> int:
    """A whole number from 0 to 2^32 - 1; None: a fresh one from the system's entropy."""
    if seed is None:
        return secrets.randbelow(MAX_COUNTER_WORD + 1)
    try:
        return check_integer("seed", seed, 0)
    except ConfigError as error:
        raise ConfigError(f"{error}, or None for a fresh one") from None


def check_sampling(given: Sampling) -> None:
    """ConfigError names the argument that cannot be used, what was found and what is needed."""
    check_integer("chains", given.chains, 1, MOST_CHAINS)
    for name, least in (("burn_in", 0), ("samples", 1), ("thin", 1)):
        check_integer(name, getattr(given, name), least)
    check_integer("burn_in + samples", int(given.burn_in) + int(given.samples), 1)
    if given.thin > given.samples:
        raise ConfigError(
            f"thin: found {given.thin} with {given.samples} samples, of which none would be kept; needed at most "
            f"{given.samples}"
        )
    if given.threads is not None:
        check_integer("threads", given.threads, 1)
    if not isinstance(given.device, str):
        raise ConfigError(f"device: found {shown(given.device)}, needed 'cpu', 'gpu' or 'auto'")
    for name in ("standardise", "progress"):
        if not isinstance(getattr(given, name), (bool, np.bool_)):
            raise ConfigError(f"{name}: found {shown(getattr(given, name))}, needed True or False")
