"""What the tests of stopped and continued runs share."""

import tempfile

import pytest
from helpers.kept_runs import SAMPLED, found_in_one_go
from helpers.small_analysis import contents, write_files


@pytest.fixture
def one_core(tmp_path, monkeypatch):
    """Chains one after another in this process; temporary files in a folder of their own, which must be empty at the
    end.
    """
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setattr("mmgibbs.runs.local.cores", lambda: 1)
    yield
    assert contents(scratch) == {}


@pytest.fixture
def folder(tmp_path):
    write_files(tmp_path / "analysis", {"analysis.yaml": SAMPLED})
    return tmp_path / "analysis"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return found_in_one_go(tmp_path_factory.mktemp("whole"))
