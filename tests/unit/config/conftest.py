import pytest
from helpers.analysis_files import BEEF


@pytest.fixture
def beef(tmp_path):
    path = tmp_path / "configs" / "beef.yaml"
    path.parent.mkdir()
    path.write_text(BEEF)
    return path
