"""Shared by all tests: where the data sets are."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def shared_data(name: str) -> Path:
    """The path of a data set beside the repository (../shared/NAME), or a visible skip where it is absent."""
    path = ROOT.parent / "shared" / name
    if not path.exists():
        pytest.skip(f"needs ../shared/{name}, which is not here")
    return path
