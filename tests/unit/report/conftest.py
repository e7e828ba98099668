from html import escape

import pytest

from mmgibbs.report.plots import Figures


@pytest.fixture
def undrawn(monkeypatch):
    """Figures have their words and no drawing, which takes most of the time of a page."""
    words = lambda self, paint, title, description, *_, **__: (
        f'<svg class="plot"><title>{escape(title)}</title><desc>{escape(description)}</desc></svg>'
    )
    monkeypatch.setattr(Figures, "draw", words)
