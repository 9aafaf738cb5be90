"""Panels of a validation side by side: sentences about their lines do not take the room of the curves."""

from __future__ import annotations

import numpy as np
import pytest

from analysis import Panel, Trace
from app.figures.style import new_figure, styled
from app.figures.validation import draw_panels

MEANING = "what is white stays inside at all lags, but for 1 record in 1000"


@pytest.mark.filterwarnings("error")  # that the layout was given up is told as a warning
def test_given_a_line_with_a_sentence_then_it_stands_below_and_the_curves_keep_their_room() -> None:
    lags = np.linspace(0.0, 0.02, 40)
    traces = (
        Trace("residuals", lags, 0.02 * np.sin(900 * lags), "model"),
        Trace(MEANING, lags, np.full(40, 0.06), "limit"),
        Trace("", lags, np.full(40, -0.06), "limit"),
    )
    with styled():
        figure = new_figure(7.0, 2.3)
        draw_panels(figure, [Panel(f"Panel {n}", "lag [s]", "correlation [–]", traces) for n in range(3)])
        figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    for axis in figure.axes:
        assert axis.get_window_extent(renderer).width > 0.2 * figure.bbox.width
        assert axis.get_legend() is None  # a single curve needs none
        (note,) = axis.texts
        assert note.get_text().replace("\n", " ").endswith(MEANING)
        assert note.get_window_extent(renderer).y1 < axis.get_window_extent(renderer).y0
