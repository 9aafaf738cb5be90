"""How a fit comes to rest: its cost, or any other number it reports, over the iterations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from app.descents import apart
from app.desktop.plots.plot import Plot
from app.desktop.theme import Theme

# what a report may carry, the most telling first, and what it is called on the axis
QUANTITIES = {"step": "change", "change": "change", "cost": "misfit", "misfit": "misfit", "rms": "misfit"}


class Convergence(Plot):
    """Change from step to step, or the misfit, of the work under way."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(
            theme,
            "Convergence",
            "step [–]",
            "change [–]",
            "How much each step still changes, or the misfit: it should fall. A gap: another measure of the "
            "misfit begins (other weights, more of the record), which does not compare with the one before",
        )
        self._curve = self.curve(colour=0)
        self._dots = self.points(colour=0, size=6)
        self.item.setLogMode(False, True)
        self._values: list[float] = []
        self._name = ""  # of the quantity that is drawn

    def begin(self) -> None:
        self._values, self._name = [], ""
        self._draw()

    def take(self, values: Mapping[str, float]) -> None:
        """Take one report; numbers other than the misfit are ignored."""
        for name, words in QUANTITIES.items():
            if name in values and np.isfinite(values[name]) and values[name] > 0 and self._name in ("", name):
                self._name = name
                self._values.append(float(values[name]))
                self.item.setLabel("left", f"{words} [–]")
                self._draw()
                return

    def show_history(self, history: list[dict[str, float]]) -> None:
        """Draw the history that a result carries."""
        self._values, self._name = [], ""
        for row in history:
            self.take(row)
        self._draw()

    def _draw(self) -> None:
        steps = np.arange(1.0, len(self._values) + 1)
        heights = np.log10(np.maximum(self._values, 1e-300)) if self._values else np.empty(0)
        lines = apart(self._values) if QUANTITIES.get(self._name) == "misfit" else (steps, self._values)
        self._curve.setData(np.array(lines[0]), np.log10(np.maximum(lines[1], 1e-300)))
        self._dots.setData(steps, heights)
        every = max(1, len(self._values) // 12)
        self.item.getAxis("bottom").setTicks([[(s, f"{s:.0f}") for s in steps[::every]]])
        self.item.setXRange(0.5, max(len(self._values), 4) + 0.5, padding=0)
        if self._values:
            low, high = float(heights.min()), float(heights.max())
            middle, half = 0.5 * (low + high), max(0.6 * (high - low), 1.0)  # always a decade or two in view
            self.item.setYRange(middle - half, middle + half, padding=0)
