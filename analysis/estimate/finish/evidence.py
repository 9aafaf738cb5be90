"""What speaks for and against a fit, each piece of evidence with its number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.words import percent
from analysis.estimate.finish.autoregression import Autoregression
from analysis.estimate.finish.channels import (
    DELAY,
    DISPERSION,
    DRIFT,
    OFFSET,
    SENSOR_FAULTS,
    channel_faults,
    dispersion,
    dispersion_words,
    fault_words,
    is_curve,
)
from analysis.estimate.finish.held_out import Prediction, held_out, output_spread
from analysis.estimate.finish.high_pass import HIGH_PASS, high_pass_words
from analysis.estimate.finish.honest import noise_processes
from analysis.estimate.finish.linearised import Linearisation, Regression, linearisations, regressions_of
from analysis.estimate.finish.missing_terms import input_correlation, missing_terms
from analysis.estimate.finish.periodic_drive import drive_probability
from analysis.estimate.finish.score import Missing, with_limits
from analysis.estimate.finish.sensor_noise import SensorNoise, sensor_noise
from analysis.estimate.finish.tones import tone, tone_words
from analysis.estimate.finish.whiteness import Whiteness, whiteness

if TYPE_CHECKING:
    from analysis.estimate.finish.fitted import Fitted

Array = NDArray[np.float64]

_MOST_TESTED = 100_000  # samples in which missing terms are looked for
RARE = 1e-3  # probability of chance below which a test speaks against the model
NOISELESS = 1e-5  # of an output's spread: a residual below it shows no noise
# Faults and missing terms compete by their |t|. Beside the surest one counts, from this share of its |t| on:
_ALIKE = 0.9  # a delay of another channel: an input that comes early and an output that comes late look alike
_NEARLY = 0.75  # a high-pass in a sensor: about resonance it looks like a delay
_CLEARLY = 0.6  # anything else where a bent sensor is the surest: a sensor is suspected last


@dataclass(frozen=True)
class Fault:
    """What the score test names: a delay [time], an offset [the channel's unit] or a drift [that a time]."""

    kind: str
    channel: str
    size: float


@dataclass(frozen=True)
class Figures:
    """The numbers behind a verdict by which it is decided what else is tried and said."""

    missed: float = np.nan  # systematic part of the residual over the spread, worst output
    held_out_r2: dict[str, float] = field(default_factory=dict)  # by output, of data that were not fitted
    over_noise: dict[str, float] = field(default_factory=dict)  # residual over the sensor's noise, by output
    tones: list[str] = field(default_factory=list)  # outputs whose residuals hold a tone
    fault: Fault | None = None  # of a channel, that explains the residual best


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything that was looked at."""

    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    linear: list[Linearisation]  # stretches in which terms are looked for: all, or excerpts of long records
    excerpts: list[Regression]  # their regressions
    regressions: list[Regression]  # of the whole fit
    processes: list[Autoregression]
    left: dict[str, float]  # rms of the residual over the output's spread
    r2: dict[str, float]  # share of the variance explained, by output
    shares: dict[str, float]  # systematic part of the residual, rms over the spread
    white: dict[str, Whiteness]
    noise: dict[str, SensorNoise]
    tones: dict[str, str]  # sentences on tones that are left, by output
    missing: list[Missing]
    input_trace: float  # probability of the residuals' correlation with the inputs
    prediction: Prediction | None
    drive: float = 1.0  # probability that periodic drives were fitted so far from what was measured of them

    @property
    def explained(self) -> float:
        """Share of the variance explained, of the output that is explained worst."""
        return min(self.r2.values(), default=float("nan"))

    @property
    def noiseless(self) -> bool:
        """Whether what is left is so small that it tells of integration and rounding, not of the specimen."""
        return bool(self.left) and max(self.left.values()) < NOISELESS

    @property
    def missed(self) -> float:
        """Systematic part of the residual over the spread, worst output; held-out data count as well."""
        found = list(self.shares.values())
        if self.prediction is not None:
            for name, value in self.prediction.r2.items():
                beyond = max(self.r2[name] - value, 0.0)  # what was worse than within the fit
                found.append(float(np.hypot(self.shares[name], np.sqrt(beyond))))
        return max(found, default=float("nan"))

    def supporting(self) -> list[str]:
        """A sentence for each output that passed its tests, and for the terms that were tried in vain."""
        words = []
        for name, w in self.white.items():
            n = self.noise[name]
            size = f" and {n.ratio:.2f} times the sensor's own noise" if np.isfinite(n.ratio) else ""
            words.append(
                f"What is left of {name} is white (p = {w.probability:.2g} over {w.lags} lags){size}."
            )
        if self.missing:
            most = self.missing[0]
            words.append(
                f"None of {len(self.missing)} terms tried is missing (largest |t| {abs(most.t):.1f}, "
                f"{most.name} in {most.place})."
            )
        return words

    def against(self) -> list[str]:
        """A sentence for each test that the fit does not pass."""
        return [
            *self._noise_words(),
            *self._white_words(),
            *self.tones.values(),
            *self._input_words(),
            *self._drive_words(),
            *self._missing_words(),
        ]

    def notes(self) -> list[str]:
        return [
            f"{n.outliers} samples of {name} lie far outside the rest."
            if n.outliers > 1
            else f"1 sample of {name} lies far outside the rest."
            for name, n in self.noise.items()
            if n.outliers
        ]

    def _noise_words(self) -> list[str]:
        origin = {"given": "the noise given", "differences": "the noise that its samples show"}
        return [
            f"What is left of {name}{_in_records(n.records)} is {n.ratio:.2f} times {origin[n.source]} "
            f"({n.noise:.2g})."
            for name, n in self.noise.items()
            if n.significant
        ]

    def _white_words(self) -> list[str]:
        return [
            f"What is left of {name} is not white: p = {_p(w.probability)} over {w.lags} lags, correlation "
            f"{w.largest:.2f} at lag {w.largest_lag}."
            for name, w in self.white.items()
            if w.probability < RARE
        ]

    def _input_words(self) -> list[str]:
        if self.input_trace >= RARE:
            return []
        return [f"What is left follows the inputs of the past (p = {_p(self.input_trace)})."]

    def _drive_words(self) -> list[str]:
        if self.drive >= RARE:
            return []
        inputs = " and ".join(self.inputs)
        return [f"The motion asks for another drive than {inputs} shows (p = {_p(self.drive)})."]

    @property
    def lacking(self) -> list[Missing]:
        """Terms that would explain part of what is left, the surest first."""
        return [m for m in self.missing if m.speaks_against]

    @property
    def moves(self) -> list[Missing]:
        """What the channels lack, if that explains the residual best and moves every part alike: a delay, the
        curve of a sensor, or an input in an output; and a high-pass, if it explains nearly as much, with the
        mean of its channel, which it took away.
        """
        found = [m for m in self.lacking[:1] if not m.text and m.name not in (OFFSET, DRIFT) and m.shift]
        places = [m.place for m in self.high_pass]
        means = [m for m in self.lacking if m.name == OFFSET and m.place in places]
        return [*found, *(m for m in (*self.high_pass, *means) if m not in found)]

    @property
    def high_pass(self) -> list[Missing]:
        """A high-pass in a channel that explains nearly as much as whatever explains most: about resonance it
        acts as if the channel came early, in a short record as if its zero drifted."""
        least = _NEARLY * max((abs(m.t) for m in self.lacking), default=0.0)
        return [m for m in self.lacking if m.name == HIGH_PASS and abs(m.t) > least][:1]

    @property
    def fault(self) -> Missing | None:
        """An offset, delay or drift of a channel that the fit lacks, if that explains the residual best."""
        return self.lacking[0] if self.lacking and self.lacking[0].name in SENSOR_FAULTS else None

    def _missing_words(self) -> list[str]:
        sure = self.lacking
        if not sure:
            return []
        if self.fault is not None:
            interval = float(np.diff(self.linear[0].stretch.times[:2])[0])
            words = [fault_words(self.fault, interval, self.inputs, self.outputs)]
            return [*words, *(high_pass_words(m) for m in self.high_pass)]
        if sure[0].name == DISPERSION:
            return [dispersion_words(sure[0])]
        if sure[0].name == HIGH_PASS:
            return [high_pass_words(sure[0])]
        others = [m for m in sure[1:] if m.name not in (*SENSOR_FAULTS, DISPERSION, HIGH_PASS)][:3]
        alike = [m.name if m.place == sure[0].place else f"{m.name} in {m.place}" for m in others]
        return [missing_words(sure[0], alike)]

    def figures(self) -> Figures:
        """The numbers that decide."""
        fault = self.fault
        return Figures(
            self.missed,
            {} if self.prediction is None else self.prediction.r2,
            {name: n.ratio for name, n in self.noise.items() if np.isfinite(n.ratio)},
            sorted(self.tones),
            None if fault is None else Fault(fault.name, fault.place, fault.coefficient),
        )

    def findings(self) -> dict[str, Any]:
        """The others, as a result lists them."""
        figures = self.figures()
        return {
            "whiteness": {name: w.probability for name, w in self.white.items()},
            "residual over noise": figures.over_noise,
            "outliers": {name: n.outliers for name, n in self.noise.items() if n.outliers},
            "tones": figures.tones,
            "channel fault": {} if figures.fault is None else asdict(figures.fault),
            "input trace": self.input_trace,
            "drive": self.drive,
            "held out rms": {} if self.prediction is None else self.prediction.rms,
            "missing terms": [
                {"term": m.name, "in": m.place, "t": m.t, "coefficient": m.coefficient, "share": m.share}
                for m in self.missing[:5]
            ],
        }


def gather(fitted: Fitted) -> Evidence:
    """All evidence about a fit that needs no other fit."""
    linear = linearisations(fitted)
    regressions, followed = regressions_of(fitted, linear)
    unknowns = len(fitted.estimate) + sum(len(piece.states) for piece in fitted.pieces)
    processes = noise_processes(regressions, unknowns)
    outputs = fitted.experiment.model.outputs
    left: dict[str, float] = {}
    r2, shares, white, noise, tones = {}, {}, {}, {}, {}
    for i, name in enumerate(outputs):
        errors = [r.errors[i] for r in regressions]
        shown = sensor_noise(fitted, i, errors, [r.record for r in regressions])
        if shown is None:
            continue
        rows = np.concatenate([piece.residuals[i] for piece in fitted.pieces])
        size, spread = float(np.sqrt(np.nanmean(rows**2))), output_spread(fitted, i) or 1.0
        line = tone([piece.residuals[i] for piece in fitted.pieces], fitted.pieces[0].run.dt)
        if line is not None and not fitted.experiment.model.equations.functions_of_time:  # it took the others
            tones[name] = tone_words(name, line, spread)
        left[name], r2[name] = size / spread, 1.0 - (size / spread) ** 2
        noise[name], white[name] = shown, whiteness(errors)
        own = max(
            _white_part(processes[i], errors),
            (shown.noise / shown.assumed) ** 2 if shown.significant else 0.0,
        )
        power = float(np.nanmean(np.concatenate(errors) ** 2))
        shares[name] = size / spread * float(np.sqrt(max(1.0 - own / power, 0.0))) if power > 0 else 0.0
    linear, excerpts = _excerpts(fitted, linear, regressions) if followed else (linear, regressions)
    return Evidence(
        outputs,
        tuple(fitted.experiment.model.inputs),
        linear,
        excerpts,
        regressions,
        processes,
        left,
        r2,
        shares,
        white,
        noise,
        tones,
        lacking(fitted, linear, excerpts) if followed else [],
        input_correlation(fitted, linear, excerpts) if followed else 1.0,
        held_out(fitted) if followed else None,
        drive_probability(fitted),
    )


def lacking(fitted: Fitted, linear: list[Linearisation], excerpts: list[Regression]) -> list[Missing]:
    """All that was tried and that the unknowns cannot imitate, the surest first.

    Delays of input and output that are the same to the data stand as the one that comes late; the curve of a
    sensor stands behind what does nearly as well.
    """
    found = [
        *missing_terms(fitted, linear, excerpts),
        *channel_faults(fitted, linear, excerpts),
        *dispersion(fitted, linear, excerpts),
    ]
    found = sorted(with_limits([m for m in found if m.t != 0.0]), key=lambda m: -abs(m.t))
    if found and found[0].name == DELAY and found[0].coefficient < 0:
        same = _ALIKE * abs(found[0].t)
        late = next((m for m in found if m.name == DELAY and m.coefficient > 0 and abs(m.t) > same), found[0])
        found = [late, *(m for m in found if m is not late)]
    if found and is_curve(found[0]):  # the first suspect only where nothing else does as well
        same = _CLEARLY * abs(found[0].t)
        other = next((m for m in found if not is_curve(m) and abs(m.t) > same), found[0])
        found = [other, *(m for m in found if m is not other)]
    return found


def _excerpts(
    fitted: Fitted, linear: list[Linearisation], regressions: list[Regression]
) -> tuple[list[Linearisation], list[Regression]]:
    """The stretches themselves, or of very long ones four parts with initial states of their own."""
    samples = sum(part.N for part in linear)
    if samples <= _MOST_TESTED:
        return linear, regressions
    cuts = int(np.ceil(4 * samples / _MOST_TESTED / len(linear)))
    parts = linearisations(fitted, cuts)
    chosen = [parts[int(i)] for i in np.unique(np.linspace(0, len(parts) - 1, 4).astype(int))]
    return chosen, [part.regression() for part in chosen]


def _white_part(process: Autoregression, errors: Sequence[Array]) -> float:
    """Variance of what the samples before do not predict of the errors."""
    power = float(np.nanmean(np.concatenate(errors) ** 2))
    return min(process.variance, power) if process.order else power


def _in_records(records: Sequence[int]) -> str:
    """Words for records by their numbers; none where all are meant."""
    if not records:
        return ""
    many = "s" if len(records) > 1 else ""
    return f" in record{many} {', '.join(str(r + 1) for r in records)}"


def missing_words(missing: Missing, others: Sequence[str]) -> str:
    """What a missing term looks like, in words."""
    whole = missing.place if missing.shift and not missing.text else "the force"
    size = f"t = {abs(missing.t):.1f}, {_percent(missing.share)} of {whole}"
    words = f"A term {missing.name} in {missing.place} would explain part of what is left ({size})"
    if is_curve(missing):
        words = f"The sensor of {missing.place} does not seem to be linear. {words}"
    return words + (f"; so would {', '.join(others)}." if others else ".")


def _percent(share: float) -> str:
    """A share in per cent, with as many nines as it has."""
    if 0.99 < share < 1.0:
        digits = min(max(int(np.ceil(-np.log10(1.0 - share))) - 1, 1), 6)
        return f"{100 * share:.{digits}f} %"
    return percent(share, 3)


def _p(probability: float) -> str:
    return f"{probability:.1g}" if probability > 1e-300 else "0"
