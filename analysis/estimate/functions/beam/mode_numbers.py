"""Which modes do measured frequencies belong to? A resonance that was overlooked shifts all after it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from analysis.estimate.functions.beam.description import Beam
from analysis.estimate.functions.beam.system import BeamSystem
from analysis.estimate.functions.beam.unknowns import UnknownProperties

_OVERLOOKED = 2  # resonances that may be missing from a list
_CLEAR = 3.0  # times smaller the scatter must be with a gap than without one
_FEWEST = 2  # frequencies whose ratios can tell a gap; one more where the stiffness or mass may vary


def with_mode_numbers(beam: Beam, elements: int | None = None) -> tuple[Beam, list[str]]:
    """The beam with a mode number for each measured frequency, and a sentence where the list has gaps.

    A common factor of stiffness or mass moves all frequencies alike: with the right numbers the ratios of
    measured to guessed frequencies are equal but for the shape of the properties.
    """
    count = len(beam.frequencies)
    varies = any(p.free and p.intervals for p in beam.profiles.values())
    if beam.frequency_modes or count < _FEWEST + varies:
        return beam, []
    system = BeamSystem(beam, UnknownProperties(beam, (), np.zeros(0)), elements)
    found, _ = system.frequencies(system.state(np.zeros(0), derivatives=False))
    most = min(count + _OVERLOOKED, len(found))
    if most < count:
        return beam, []
    measured = np.log(beam.frequencies)
    scatter = {
        chosen: float(np.std(measured - np.log(found[list(chosen)])))
        for chosen in combinations(range(most), count)
    }
    plain = tuple(range(count))
    best = min(scatter, key=lambda chosen: scatter[chosen])
    if best == plain or scatter[plain] < _CLEAR * max(scatter[best], beam.frequency_error):
        return replace(beam, frequency_modes=tuple(range(1, count + 1))), []
    numbers = tuple(k + 1 for k in best)
    missing = [str(k) for k in range(1, numbers[-1] + 1) if k not in numbers]
    words = (
        f"The measured frequencies are those of modes {', '.join(map(str, numbers))}: mode "
        f"{' and '.join(missing)} is not in the list. Say modes = [...] in [frequencies] if that is wrong."
    )
    return replace(beam, frequency_modes=numbers), [words]
