import pytest
from helpers.prepared_tables import PEDIGREE, PHENOTYPES


@pytest.fixture
def files(tmp_path):
    (tmp_path / "pedigree.csv").write_text(PEDIGREE)
    (tmp_path / "phenotypes.csv").write_text(PHENOTYPES)
    return tmp_path
