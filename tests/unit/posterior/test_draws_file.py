"""draws.nc is, variable by variable, the file that xarray writes."""

import numpy as np
import pytest
import xarray

from mmgibbs.posterior.draws_file import Group, Variable, write_groups

RNG = np.random.default_rng(11)
SHAPE = {"chain": np.arange(2), "draw": np.arange(5)}
DRAWS = ("chain", "draw")
POSTERIOR = Group(
    {
        "h2[a|b]": Variable(DRAWS, RNG.normal(size=(2, 5)), {"long_name": "h2[a/b]"}),
        "levels": Variable((*DRAWS, "id"), RNG.normal(size=(2, 5, 3)).astype(np.float32)),
    },
    SHAPE | {"id": ["007", "", "Ä"]},
)
STATISTICS = Group(
    {
        "steps": Variable(DRAWS, RNG.integers(0, 9, (2, 5))),
        "diverging": Variable(DRAWS, RNG.random((2, 5)) < 0.5),
        "unknown": Variable(DRAWS, np.full((2, 5), np.nan)),
    },
    SHAPE,
)
EMPTY = Group({}, {"chain": np.arange(0), "draw": np.arange(0)})


def written_by_xarray(path, groups, attributes):
    sets = {
        f"/{name}": xarray.Dataset(
            {n: (v.dims, v.values, dict(v.attributes)) for n, v in g.variables.items()}, g.labels
        )
        for name, g in groups.items()
    }
    tree = xarray.DataTree.from_dict(sets)
    tree.attrs = attributes
    tree.to_netcdf(path, engine="h5netcdf")


@pytest.mark.parametrize("groups", [{"posterior": POSTERIOR, "sample_stats": STATISTICS}, {"posterior": EMPTY}])
def test_as_xarray_writes_it(tmp_path, groups):
    attributes = {"analysis": "beef Ä", "seed": 42, "share": 0.5}
    written_by_xarray(tmp_path / "xarray.nc", groups, attributes)
    write_groups(tmp_path / "draws.nc", groups, attributes)
    with (
        xarray.open_datatree(tmp_path / "xarray.nc", engine="h5netcdf") as expected,
        xarray.open_datatree(tmp_path / "draws.nc", engine="h5netcdf") as found,
    ):
        xarray.testing.assert_identical(found, expected)
        for name in groups:
            for variable, own in expected[name].variables.items():
                stored = found[name][variable]
                assert stored.dtype == own.dtype
                kept = [key for key in own.encoding if key != "source"]
                assert str([stored.encoding[key] for key in kept]) == str([own.encoding[key] for key in kept])


def test_a_variable_of_another_size_is_refused(tmp_path):
    group = Group({"h2": Variable(DRAWS, np.zeros((2, 4)))}, SHAPE)
    with pytest.raises(ValueError, match=r"h2 has shape \(2, 4\), its dimensions \(2, 5\)"):
        write_groups(tmp_path / "draws.nc", {"posterior": group}, {})
