"""Drawings of pages: marks are where the data are, labels of ticks are round, and every drawing can be read as XML."""

import base64
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmgibbs.report import plots
from mmgibbs.report.marks import BAND, INK, SERIES, Plot
from mmgibbs.report.svg import UNITS_PER_INCH, round_places, tick_labels


def drawing(plot, title="title", **settings):
    """The element of a plot; no coordinate of it is without a value."""
    text = plots.Figures().draw(plot, title, "description", **settings)
    assert "nan" not in text and "inf" not in text
    return ElementTree.fromstring(text)


def circles(element):
    return np.array([[float(c.get("cx")), float(c.get("cy"))] for c in element.iter("circle")])


@pytest.mark.parametrize(
    ("low", "high", "most", "is_whole", "labels"),
    [
        (0.0, 1.0, 4, False, ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        (-0.2, 1.02, 4, False, ["0.0", "0.5", "1.0"]),
        (1.8, 4.9, 4, False, ["2", "3", "4"]),
        (1.0, 1000.0, 5, False, ["200", "400", "600", "800", "1000"]),
        (1999.7, 2007.3, 5, True, ["2000", "2002", "2004", "2006"]),
        (2000.0, 2001.0, 5, True, ["2000", "2001"]),
        (1995.0, 2006.0, 5, True, ["1995", "2000", "2005"]),  # no years and a half
        (-3.2, 2.1, 4, False, ["\u22122", "0", "2"]),
        (0.0, 3e7, 4, False, ["0", "1e7", "2e7", "3e7"]),
        (0.0, 2.2e-5, 4, False, ["0", "1e\u22125", "2e\u22125"]),
        (0.00012, 0.00031, 4, False, ["0.00015", "0.0002", "0.00025", "0.0003"]),
    ],
)
def test_ticks_are_at_round_values(low, high, most, is_whole, labels):
    places, step = round_places(low, high, most, is_whole)
    assert tick_labels(places, step) == labels
    assert [float(text.replace("\u2212", "-")) for text in labels] == pytest.approx(places)


@given(
    st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.integers(3, 6), st.booleans()
)  # ranges whose ticks have at most 16 digits
def test_ticks_lie_between_the_ends_and_have_labels_of_their_own(low, length, most, is_whole):
    high = low + length
    places, step = round_places(low, high, most, is_whole)
    assert len(places) <= most + 1 and len(places) >= (not is_whole)
    assert all(low - 1e-6 * step <= at <= high + 1e-6 * step for at in places)
    assert not is_whole or all(at == round(at) for at in places)
    labels = tick_labels(places, step)
    assert len(set(labels)) == len(labels)
    assert [float(t.replace("\u2212", "-")) for t in labels] == pytest.approx(places, abs=0.01 * step)


def test_points_are_where_the_data_are():
    plot = Plot()
    plot.points([0, 1, 4], [10, 20, 15], INK, 2)
    plot.x.limits, plot.y.limits = (0, 4), (10, 20)
    width, height = (inches * UNITS_PER_INCH for inches in plots.SIZE)
    start, end, foot, head = 0.15 * width, 0.97 * width, 0.78 * height, 0.06 * height
    expected = [[start, foot], [start + (end - start) / 4, head], [end, (foot + head) / 2]]
    np.testing.assert_allclose(circles(drawing(plot)), expected, atol=0.06)


def test_one_unit_is_as_long_in_both_directions():
    x, y = np.array([0.0, 10.0, 0.0]), np.array([0.0, 0.0, 3.0])
    origin, right, up = circles(drawing(plots.paint_cloud(x, y)))
    assert (right - origin)[0] / 10 == pytest.approx((origin - up)[1] / 3, rel=0.01)


def test_a_line_ends_at_a_value_that_is_missing():
    plot = Plot()
    plot.line(range(6), [np.nan, 1, 2, np.nan, 4, 3], INK)
    plot.points(range(2), [np.nan, 1], INK, 2)
    plot.band(range(3), [0, np.nan, 0], [1, 1, 1], BAND)
    plot.intervals(range(2), [0, 1], [np.nan, 2], INK, 1)
    element = drawing(plot)
    line = next(p.get("d") for p in element.iter("path") if "fill: none" in p.get("style"))
    assert re.sub("[^ML]", "", line) == "MLML" and len(circles(element)) == 1


def test_limits_leave_a_margin_and_bars_stand_on_their_axis():
    plot = Plot()
    plot.line([0, 10], [0, 1], INK)
    assert plot.limits("x") == (-0.5, 10.5) and plot.limits("y") == (-0.05, 1.05)
    plot.x.limits, plot.y.limits = (None, 20), (0, None)
    assert plot.limits("x") == (-0.5, 20) and plot.limits("y") == (0, 1.05)
    low, high = plots.paint_histogram(np.arange(30.0)).limits("y")
    assert low == 0 < high
    empty = Plot()
    assert empty.limits("x")[0] < 0 and drawing(empty) is not None


@pytest.mark.parametrize("value", [0.0, -3.0, 1e-300, 1e12])
def test_equal_values_have_a_range_about_them(value):
    plot = Plot()
    plot.line([value, value], [value, value], INK)
    plot.x.limits = (value, value)
    for axis in ("x", "y"):
        low, high = plot.limits(axis)
        assert low < value < high
    drawing(plot)


def test_text_cannot_be_markup():
    plot = Plot()
    plot.line([0, 1], [0, 1], INK)
    plot.x.ticks = [(0.0, "<b>&"), (1.0, '"')]
    element = drawing(plot, "<script> & co", x_label="a < b")
    texts = [t.text for t in element.iter("text")]
    assert element.find("title").text == "<script> & co" and {"<b>&", '"', "a < b"} <= set(texts)


def test_figures_of_a_page_have_ids_of_their_own():
    figures, plot = plots.Figures(), plots.paint_trace(np.arange(40.0).reshape(2, 20))
    ids = [re.findall(r'id="([^"]+)"', figures.draw(plot, "t", "d")) for _ in range(2)]
    assert len(ids[0]) == 3 and not set(ids[0]) & set(ids[1])


def test_the_first_row_of_a_matrix_is_on_top():
    from matplotlib.image import imread

    K = np.zeros((4, 4))
    K[0, 3] = 1.0
    (image,) = drawing(plots.paint_heat_map(K, 0.0, 1.0)).iter("image")
    shades = imread(io.BytesIO(base64.b64decode(image.get("href").partition(",")[2])))[..., 0]
    assert shades.shape == (4, 4) and np.argwhere(shades < shades.max()).tolist() == [[0, 3]]


def test_every_figure_can_be_drawn():
    random = np.random.default_rng(3)
    draws, x, n = random.normal(size=(3, 200)), random.normal(size=50), np.arange(5)
    shares = random.uniform(size=(5, 2))
    every = [
        plots.paint_trace(draws),
        plots.paint_ranks(plots.rank_shares(draws)),
        plots.paint_autocorrelation(plots.autocorrelations(draws)),
        plots.paint_density(draws, 0.0, -1.0, 1.0),
        plots.paint_histogram(x),
        plots.paint_by_year(2000 + n, n, n - 1, n + 1),
        plots.paint_categories(0.2, 1.0, [-0.5, 1.0]),
        plots.paint_observed(shares, shares, shares - 0.1, shares + 0.1),
        plots.paint_along_genome(np.arange(50.0), x, np.arange(50) // 25, [(0.0, "1"), (25.0, "2")]),
        plots.paint_along_genome(np.arange(50.0), x, np.arange(50) // 25, [(0.0, "1")], ceiling=True, stems=True),
        plots.paint_in_order(np.sort(np.abs(x))[::-1]),
        plots.paint_intervals([1.0, None, 2.0], [0.5, None, None], [1.5, None, None]),
        plots.paint_scatter(x, x + 1),
    ]
    for plot in every:
        element = drawing(plot)
        assert sum(1 for e in element.iter() if SERIES[0] in e.get("style", "")) >= 1
        assert plot.data().height and plot.data()["series"].null_count() == 0
