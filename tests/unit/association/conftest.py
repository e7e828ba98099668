import pytest
from helpers.new_animals import Herd

GENOMIC = {"kind": "genomic", "blend": 0.1}


@pytest.fixture(scope="module")
def herd(tmp_path_factory):
    return Herd(tmp_path_factory.mktemp("herd"))


@pytest.fixture(scope="module")
def run(herd):
    return herd.run("genomic", GENOMIC)
