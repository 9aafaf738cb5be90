"""What is known before the rig moves: the plant, the orbits of the model, what to expect of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analysis import SILENT, DataError
from app.holding.belonging import check_same_drive, fitted_model, shared_channels

if TYPE_CHECKING:
    from analysis import Identification, Progress, Record, Subject
    from analysis.holding.plant import LoopPlant
    from analysis.holding.target import Target
    from drivers.rig.profile import RigProfile

DRAWS = 24  # of the parameters, for the errors of multipliers


class Study:
    """What is known before the rig moves: the plant, the orbits, what to expect of each."""

    def __init__(
        self, profile: RigProfile, record: Record, fit: Identification, longest: int, progress: Progress,
        name: str = "the fit",
    ) -> None:  # fmt: skip
        """Refuses in one sentence what does not belong together; ``name``: what the fit is called there."""
        from analysis import prepare_subject
        from analysis.holding.plant import ActuatorPath
        from analysis.holding.target import orbit_targets
        from analysis.holding.tuning import plant_from_record

        model = fitted_model(fit, name)
        channels = shared_channels(profile, model, record)
        check_same_drive(profile, record)
        assert profile.drive is not None
        self.profile, self.fit, self.model, self.record = profile, fit, model, record
        self.subject: Subject = prepare_subject(model, record, fit.values())
        amplitude = profile.drive.amplitude
        gain = _force_gain(self.subject, amplitude)
        nominal = ActuatorPath(gain, 0.0, 1.0 / profile.rate)
        progress.report(0.0, "the model beside the record")
        self.plant: LoopPlant = plant_from_record(self.subject, channels, profile.rate, amplitude, nominal)
        shot = orbit_targets(self.subject, self.plant.nodes, longest, progress)
        self.targets: list[Target] = [t for t in shot if not t.stable]
        self.stable = len(shot) - len(self.targets)
        if not self.targets:
            raise DataError("The record shows no unstable periodic orbit that the model has, too.")

    def listed(self, progress: Progress = SILENT) -> dict[str, Any]:
        """Each orbit with what is to be expected of holding it."""
        expected = []
        for number, target in enumerate(self.targets, 1):
            progress.report((number - 1) / len(self.targets), f"what to expect of orbit {number}")
            expected.append(self._expected(number, target))
        return {
            "rig": self.profile.key,
            "model": self.model.name,
            "channels": self.plant.channels,
            "drive": {"frequency": self.plant.frequency, "amplitude": self.plant.amplitude},
            "model_gap": self.plant.process,
            "stable": self.stable,
            "orbits": expected,
        }

    def _expected(self, number: int, target: Target) -> dict[str, Any]:
        from analysis.holding.outlook import expected_control, longest_delay

        return {
            "number": number,
            "periods": target.multiple,
            "multipliers": pairs(target.multipliers),
            "expected_wait": self.wait(target),
            "expected_control": expected_control(self.plant, target),
            "longest_delay": longest_delay(self.plant, target),
        }

    def wait(self, target: Target) -> float:
        """Periods until the free motion will be caught, on average."""
        from analysis.holding.linearise import linearise
        from analysis.holding.outlook import expected_wait
        from analysis.holding.regulator import regulate

        regulator = regulate(linearise(self.plant, target.states))
        phase = 2 * np.pi * self.subject.times / self.subject.base
        return expected_wait(self.plant, target, regulator, self.subject.states, phase)

    def draws(self) -> list[np.ndarray[Any, Any]]:
        """Values of the parameters as uncertain as the fit says; none where it does not say."""
        from analysis import knowledge_of

        try:
            known = knowledge_of(self.model, self.fit)
        except DataError:
            return []
        drawn = known.draws(DRAWS, np.random.default_rng(0))
        return [known.vector(values)[: len(self.model.parameters)] for values in drawn]


def pairs(multipliers: np.ndarray[Any, Any]) -> list[list[float]]:
    """Real and imaginary parts, as they are written to files."""
    return [[m.real, m.imag] for m in multipliers.tolist()]


def _force_gain(subject: Subject, amplitude: float) -> float:
    """Units of the model's input for one volt, at the drive's frequency."""
    if not subject.model.inputs:
        raise DataError(
            f"{subject.model.name} has no measured input: to be held, it needs the drive as one "
            '(f = "measured"), and a fit of that.'
        )
    row = subject.record[subject.model.inputs[0]]
    theta = 2 * np.pi * subject.times / subject.base
    good = np.isfinite(row)
    tone = 2 * np.mean(row[good] * np.exp(-1j * theta[good]))
    if not abs(tone) > 0:
        raise DataError(f"The record's {subject.model.inputs[0]} does not follow the drive.")
    return float(np.copysign(abs(tone), tone.real) / amplitude)
