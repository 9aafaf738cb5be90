"""How a fit comes to rest: its cost, or any other number it reports, over the iterations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from app.desktop.plots.plot import Plot
from app.desktop.theme import Theme


class Convergence(Plot):
    """Misfit over the steps of the work under way."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(
            theme, "Convergence", "step [–]", "misfit [–]", "The misfit should fall and then stay level"
        )
        self._curve = self.curve(colour=0)
        self._dots = self.points(colour=0, size=6)
        self.item.setLogMode(False, True)
        self._values: list[float] = []

    def begin(self) -> None:
        self._values = []
        self._draw()

    def take(self, values: Mapping[str, float]) -> None:
        """Take one report; numbers other than the misfit are ignored."""
        for name in ("cost", "misfit", "residual", "chi2", "rms"):
            if name in values and np.isfinite(values[name]) and values[name] > 0:
                self._values.append(float(values[name]))
                self._draw()
                return

    def show_history(self, history: list[dict[str, float]]) -> None:
        """Draw the history that a result carries."""
        self._values = []
        for row in history:
            self.take(row)
        self._draw()

    def _draw(self) -> None:
        steps = np.arange(1.0, len(self._values) + 1)
        heights = np.log10(np.maximum(self._values, 1e-300)) if self._values else np.empty(0)
        self._curve.setData(steps, heights)
        self._dots.setData(steps, heights)
        self.item.enableAutoRange()
