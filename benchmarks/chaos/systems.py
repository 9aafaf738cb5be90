"""Motions with a known answer: chaotic flows with their variational exponents, and what is not chaos."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from analysis.dynamics.lyapunov import LyapunovSpectrum, lyapunov_spectrum
from analysis.model import Model
from analysis.simulation.simulate import simulate

Array = NDArray[np.float64]
SETTLE = 400  # mean periods before the record begins


@dataclass(frozen=True, eq=False)
class Flow:
    """Equations, and how one channel of them is sampled: about 25 samples a turn."""

    name: str
    equations: dict[str, str]
    dt: float
    start: tuple[float, ...]
    channel: int = 0
    period: float | None = None  # of the drive, in units of time

    @cached_property
    def model(self) -> Model:
        rows = "\n".join(f'{name} = "{text}"' for name, text in self.equations.items())
        return Model.from_toml(f'name = "{self.name}"\n[states]\n{rows}\n')

    @property
    def samples_a_period(self) -> float | None:
        return None if self.period is None else self.period / self.dt

    def states(self, samples: int, seed: int = 0) -> Array:
        """States [n, samples] on the attractor; the seed moves the start."""
        settle = int(SETTLE * 25 * (1 + 0.37 * seed))
        if self.period is not None:  # so that the drive has phase 0 at the first sample
            settle = round(settle * self.dt / self.period) * self.period / self.dt
        times = (np.arange(samples + 1) + settle - 1) * self.dt
        times[0] = 0.0
        return simulate(self.model, times, self.start, rtol=1e-9).states[:, 1:]

    def spectrum(self, turns: int = 20_000) -> LyapunovSpectrum:
        """The exponents of the equations, by the variational method."""
        unit = 25 * self.dt
        return lyapunov_spectrum(self.model, turns * unit, transient=SETTLE * unit, initial=self.start)


def _forced(name: str, slope: str, frequency: float, start: tuple[float, float], channel: int = 0) -> Flow:
    period = 2 * np.pi / frequency
    return Flow(name, {"x": "v", "v": slope}, period / 26.37, start, channel, period)


# The first ten: the defaults of the estimators were chosen on these.
KNOWN = (
    Flow("Lorenz", {"x": "10*(y-x)", "y": "28*x-y-x*z", "z": "x*y-8*z/3"}, 0.03, (1.0, 1.0, 20.0)),
    Flow("Roessler", {"x": "-y-z", "y": "x+0.2*y", "z": "0.2+z*(x-5.7)"}, 0.23, (1.0, 1.0, 0.0)),
    _forced("Duffing", "-0.2*v-x-x**3+27*cos(1.33*t)", 1.33, (0.5, 0.0)),
    Flow("Sprott B", {"x": "y*z", "y": "x-y", "z": "1-x*y"}, 0.25, (0.5, 0.2, 0.1)),
    Flow(
        "Chua",
        {"x": "15.6*(y-x-(-0.714*x-0.2145*(abs(x+1)-abs(x-1))))", "y": "x-y+z", "z": "-28*y"},
        0.1,
        (0.7, 0.0, 0.0),
    ),
    Flow("Thomas", {"x": "sin(y)-0.18*x", "y": "sin(z)-0.18*y", "z": "sin(x)-0.18*z"}, 0.5, (0.1, 1.0, 0.5)),
    Flow("Rucklidge", {"x": "-2*x+6.7*y-y*z", "y": "x", "z": "-z+y**2"}, 0.12, (1.0, 0.0, 4.5)),
    Flow(
        "hyperchaotic Roessler",
        {"x": "-y-z", "y": "x+0.25*y+w", "z": "3+x*z", "w": "-0.5*z+0.05*w"},
        0.24,
        (-10.0, -6.0, 0.0, 10.0),
    ),
    _forced("two wells", "-0.25*v+x-x**3+0.4*cos(t)", 1.0, (0.5, 0.0)),
    _forced("pendulum", "-0.5*v-sin(x)+1.5*cos(2*t/3)", 2 / 3, (0.2, 0.0), channel=1),  # the angle runs away
)

# Five more, chosen when the defaults were fixed. Halvorsen's parameter was changed after the first run (the
# flow is periodic at 1.89); the estimators were not.
NEW = (
    Flow(
        "Halvorsen",
        {"x": "-1.4*x-4*y-4*z-y**2", "y": "-1.4*y-4*z-4*x-z**2", "z": "-1.4*z-4*x-4*y-x**2"},
        0.06,
        (-1.48, -1.51, 2.04),
    ),
    Flow(
        "Lorenz 84",
        {"x": "-y**2-z**2-0.25*x+2", "y": "x*y-4*x*z-y+1", "z": "4*x*y+x*z-z"},
        0.06,
        (1.0, 0.5, 0.5),
    ),
    Flow("Chen", {"x": "35*(y-x)", "y": "-7*x-x*z+28*y", "z": "x*y-3*z"}, 0.016, (-3.0, 2.0, 20.0)),
    _forced("forced van der Pol", "5*(1-x**2)*v-x+5*cos(2.463*t)", 2.463, (0.5, 0.0)),
    _forced("Ueda", "-0.05*v-x**3+7.5*cos(t)", 1.0, (2.5, 0.0)),
)


def flow_named(name: str) -> Flow:
    """The flow of that name."""
    return next(flow for flow in (*KNOWN, *NEW) if flow.name == name)


def _torus(rng: np.random.Generator, samples: int) -> Array:
    """Two or three frequencies with combinations."""
    t, angles = np.arange(samples), rng.uniform(0, 2 * np.pi, 3)
    rates = 2 * np.pi / (25 * np.array([1.0, rng.uniform(1.2, 3.0), rng.uniform(0.3, 0.8)]))
    waves = np.sin(np.outer(rates, t) + angles[:, None])
    third = rng.integers(0, 2) * 0.5 * waves[2]
    return waves[0] + 0.6 * waves[1] + third + 0.4 * waves[0] * waves[1]


def _periodic(rng: np.random.Generator, samples: int) -> Array:
    t = 2 * np.pi * np.arange(samples) / rng.uniform(15, 60)
    return np.exp(rng.uniform(0.3, 1.5) * np.sin(t)) + 0.5 * np.cos(t / rng.integers(2, 5))


def _autoregressive(rng: np.random.Generator, samples: int) -> Array:
    from scipy.signal import lfilter

    radius, angle = rng.uniform(0.8, 0.99), 2 * np.pi / rng.uniform(8, 40)
    shocks = rng.standard_normal(samples + 2000)
    return np.asarray(lfilter([1.0], [1.0, -2 * radius * np.cos(angle), radius**2], shocks)[2000:])


def _walk(rng: np.random.Generator, samples: int) -> Array:
    return np.cumsum(rng.standard_normal(samples))


def _surrogate(rng: np.random.Generator, samples: int) -> Array:
    """Linear noise with the values and spectrum of Lorenz's x."""
    from analysis.signal.surrogates import iaaft

    return iaaft(KNOWN[0].states(samples)[0], rng)


NOT_CHAOS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "torus": _torus,
    "periodic": _periodic,
    "autoregressive": _autoregressive,
    "random walk": _walk,
    "surrogate": _surrogate,
}
