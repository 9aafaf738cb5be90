"""The stroboscopic points of record and model side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.validation import Validation


def save_sections(checks: Validation, states: tuple[str, ...], path: str) -> None:
    """Write the figure; the ending of the path chooses png, svg or pdf."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.2), layout="constrained")
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    for axis, points, title in zip(
        axes, (checks.measured_section, checks.model_section), ("record", "model"), strict=True
    ):
        second = points[1] if len(points) > 1 else points[0]
        axis.plot(points[0], second, ".", ms=2.5, color="#0b6fa4")
        axis.set(title=title, xlabel=states[0], ylabel=states[1] if len(states) > 1 else states[0])
    figure.suptitle(checks.verdict[-1])
    figure.savefig(path, dpi=150)
