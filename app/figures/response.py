"""A frequency response as a figure: size, phase and coherence; of a multisine the distortion levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis import FrequencyResponse, LinearApproximation
from app.figures.saving import save
from app.figures.style import COLOURS, MEASURED, MODEL, SOFT, label, new_figure, styled

if TYPE_CHECKING:
    from analysis import Resonance


def save_response(
    found: FrequencyResponse | LinearApproximation, modes: Sequence[Resonance], path: str
) -> None:
    """Size with its resonances above phase and coherence, or above the levels at all lines."""
    with styled():
        figure = new_figure(7.0, 6.4)
        size, phase, below = figure.subplots(3, 1, sharex=True, height_ratios=(3, 2, 2))
        style = "-" if isinstance(found, FrequencyResponse) else "."
        size.semilogy(found.frequency, np.abs(found.response), style, ms=3, color=MEASURED)
        for mode in modes:
            size.axvline(mode.frequency, color=SOFT, lw=0.7, ls=":")
        size.set(ylabel=label(f"|{found.output} / {found.input}|", found.unit))
        phase.plot(found.frequency, np.degrees(np.angle(found.response)), style, ms=3, color=MEASURED)
        phase.set(ylabel="phase [°]", ylim=(-185, 185), yticks=(-180, -90, 0, 90, 180))
        if isinstance(found, FrequencyResponse):
            below.plot(found.frequency, found.coherence, color=MEASURED)
            below.set(ylabel="coherence [–]", ylim=(0, 1.03))
        else:
            size.semilogy(found.frequency, found.noise, ".", ms=2, color=SOFT, label="noise")
            if np.isfinite(found.distortion).any():
                size.semilogy(found.frequency, found.distortion, ".", ms=2, color=MODEL, label="distortion")
            size.legend()
            _levels(below, found)
        below.set(xlabel="frequency [Hz]")
        save(figure, path, dpi=150)


def _levels(axis: Any, found: LinearApproximation) -> None:
    """Amplitude of the output at every line, by kind."""
    for name, members, colour in level_groups(found):
        axis.semilogy(
            found.lines[members], found.level[members], ".", ms=3, color=COLOURS[colour], label=name
        )
    axis.semilogy(found.lines, found.noise_level, ".", ms=1.5, color=SOFT, label="noise")
    axis.set(ylabel=f"{found.output} at each line")
    axis.legend(ncols=4)


def level_groups(found: LinearApproximation) -> list[tuple[str, np.ndarray, int]]:
    """Name, members of ``found.lines`` and number of the colour of each kind of line."""
    quiet = ~found.driven
    if {d.kind for d in found.distortions} == {"any"}:
        return [("driven", found.driven, 0), ("not driven", quiet, 1)]
    odd = found.number % 2 == 1
    return [("driven", found.driven, 0), ("odd, not driven", quiet & odd, 1), ("even", quiet & ~odd, 2)]
