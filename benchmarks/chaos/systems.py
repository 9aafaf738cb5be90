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

# Flows that were written down after the estimators had their form: nine on which their second form was
# looked at, seven that were counted when it stood.
FOREIGN = (
    Flow(
        "Aizawa",
        {
            "x": "(z-0.7)*x-3.5*y",
            "y": "3.5*x+(z-0.7)*y",
            "z": "0.6+0.95*z-z**3/3-(x**2+y**2)*(1+0.25*z)+0.1*z*x**3",
        },
        0.07,
        (0.1, 0.0, 0.0),
    ),
    Flow("Sprott K", {"x": "x*y-z", "y": "x-y", "z": "x+0.3*z"}, 0.25, (0.1, 0.1, 0.1)),
    Flow("Sprott S", {"x": "-x-4*y", "y": "x+z**2", "z": "1+x"}, 0.15, (0.1, 0.1, 0.1)),
    Flow(
        "Rabinovich-Fabrikant",
        {"x": "y*(z-1+x**2)+0.87*x", "y": "x*(3*z+1-x**2)+0.87*y", "z": "-2*z*(1.1+x*y)"},
        0.1,
        (-1.0, 0.0, 0.5),
    ),
    Flow("Burke-Shaw", {"x": "-10*(x+y)", "y": "-y-10*x*z", "z": "10*x*y+4.272"}, 0.025, (0.6, 0.0, 0.0)),
    Flow("Genesio-Tesi", {"x": "y", "y": "z", "z": "-x-1.1*y-0.44*z+x**2"}, 0.25, (0.1, 0.1, 0.1)),
    _forced(  # lengths in micrometres, 10 Hz
        "beam in micrometres", "-9.4*v+3948*x-0.01579*x**3+5.9e5*cos(20*pi*t)", 20 * np.pi, (500.0, 0.0)
    ),
    _forced("bilinear", "-0.1*v-x-where(x>0,15*x,0)+3*cos(3.2*t)+0.5", 3.2, (0.1, 0.0)),
    _forced("asymmetric Duffing", "-0.1*v-x-1.5*x**2-x**3+16*cos(1.3*t)", 1.3, (0.1, 0.0)),
)
UNSEEN = (
    Flow("Sprott E", {"x": "y*z", "y": "x**2-y", "z": "1-4*x"}, 0.2, (0.1, 0.1, 0.1)),
    Flow("Moore-Spiegel", {"x": "y", "y": "z", "z": "-z-(20*x**2-14)*y-6*x"}, 0.1, (0.1, 0.0, 0.0)),
    Flow("Rikitake", {"x": "-2*x+z*y", "y": "-2*y+(z-5)*x", "z": "1-x*y"}, 0.1, (1.0, 0.0, 1.0)),
    Flow("Dadras", {"x": "y-3*x+2.7*y*z", "y": "1.7*y-x*z+z", "z": "2*x*y-9*z"}, 0.06, (1.0, 1.0, 0.0)),
    Flow("Nose-Hoover", {"x": "y", "y": "-x+y*z", "z": "1-y**2"}, 0.25, (0.0, 5.0, 0.0)),
    _forced("parametric pendulum", "-0.2*v-(1+2.5*cos(1.8*t))*sin(x)", 1.8, (0.5, 0.0), channel=1),
    _forced("friction", "-0.05*v-0.4*tanh(20*v)-x-x**3+27*cos(1.33*t)", 1.33, (0.5, 0.0)),
)

# Flows on which the weights of the ways to an exponent were chosen, and those counted when they stood.
WEIGHED = (
    Flow("Sprott F", {"x": "y+z", "y": "-x+0.5*y", "z": "x**2-z"}, 0.25, (0.1, 0.1, 0.1)),
    Flow("Sprott H", {"x": "-y+z**2", "y": "x+0.5*y", "z": "x-z"}, 0.25, (0.1, 0.1, 0.1)),
    Flow("Sprott L", {"x": "y+3.9*z", "y": "0.9*x**2-y", "z": "1-x"}, 0.13, (0.1, 0.1, 0.1), 2),
    Flow("Sprott Q", {"x": "-z", "y": "x-y", "z": "3.1*x+y**2+0.5*z"}, 0.14, (0.1, 0.1, 0.1)),
    Flow("Arneodo", {"x": "y", "y": "z", "z": "5.5*x-3.5*y-z-x**3"}, 0.12, (0.2, 0.2, -0.75)),
    Flow("Shimizu-Morioka", {"x": "y", "y": "(1-z)*x-0.75*y", "z": "x**2-0.45*z"}, 0.25, (0.1, 0.5, 0.3)),
    Flow("Lu", {"x": "36*(y-x)", "y": "-x*z+20*y", "z": "x*y-3*z"}, 0.016, (0.1, 0.3, -0.6), 1),
    Flow(
        "Newton-Leipnik",
        {"x": "-0.4*x+y+10*y*z", "y": "-x-0.4*y+5*x*z", "z": "0.175*z-5*x*y"},
        0.11,
        (0.349, 0.0, -0.16),
    ),
    Flow(
        "Hindmarsh-Rose",
        {"x": "y-x**3+3*x**2-z+3.25", "y": "1-5*x**2-y", "z": "0.005*(4*(x+1.6)-z)"},
        0.4,
        (-1.0, 0.0, 3.0),
    ),
    Flow(
        "hyperchaotic Lorenz",
        {"x": "10*(y-x)+w", "y": "28*x-y-x*z", "z": "x*y-8*z/3", "w": "-y*z-1*w"},
        0.025,
        (1.0, 1.0, 1.0, 1.0),
        2,
    ),
    Flow(
        "Wang four wings", {"x": "0.2*x+y*z", "y": "-0.01*x-0.4*y-x*z", "z": "-z-x*y"}, 0.5, (0.7, 0.5, 0.2)
    ),
    _forced("Mathieu-Duffing", "-0.2*v-(1+3.5*cos(2*t))*x-x**3", 2.0, (0.5, 0.1)),
    _forced(
        "gap", "-0.06*v-0.2*x-where(x>1,20*(x-1),0)-where(x<-1,20*(x+1),0)+4*cos(0.9*t)", 0.9, (0.1, 0.0)
    ),
    _forced("driven rotor", "-0.15*v-sin(x)+1.1*cos(0.7*t)", 0.7, (0.2, 0.0), 1),
)
LATEST = (
    Flow("Sprott G", {"x": "0.4*x+z", "y": "x*z-y", "z": "-x+y"}, 0.25, (0.1, 0.1, 0.1)),
    Flow("Sprott J", {"x": "2*z", "y": "-2*y+z", "z": "-x+y+y**2"}, 0.15, (0.1, 0.1, 0.1)),
    Flow("Sprott M", {"x": "-z", "y": "-x**2-y", "z": "1.7+1.7*x+y"}, 0.2, (0.1, 0.1, 0.1)),
    Flow("Liu", {"x": "10*(y-x)", "y": "40*x-x*z", "z": "-2.5*z+4*x**2"}, 0.02, (2.2, 2.4, 28.0)),
    _forced("bent two wells", "-0.25*v+x-x**3+0.05+0.42*cos(t)", 1.0, (0.5, 0.0)),
    _forced("Duffing 2", "-0.1*v-x**3+11*cos(t)", 1.0, (1.0, 0.0)),
)


def flow_named(name: str) -> Flow:
    """The flow of that name."""
    return next(flow for flow in (*KNOWN, *NEW, *FOREIGN, *UNSEEN, *WEIGHED, *LATEST) if flow.name == name)


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


def _higher_order(rng: np.random.Generator, samples: int) -> Array:
    """Noise through two resonances and a low-pass: an autoregressive process of order five."""
    from scipy.signal import lfilter

    poles = []
    for radius in rng.uniform(0.85, 0.99, 2):
        angle = 2 * np.pi / rng.uniform(8, 40)
        poles += [radius * np.exp(1j * angle), radius * np.exp(-1j * angle)]
    shocks = rng.standard_normal(samples + 2000)
    return np.asarray(lfilter([1.0], np.real(np.poly([*poles, rng.uniform(0.5, 0.95)])), shocks)[2000:])


def _pink(rng: np.random.Generator, samples: int) -> Array:
    """Noise whose power falls as one over the frequency."""
    lines = np.fft.rfft(rng.standard_normal(samples))
    lines[1:] /= np.sqrt(np.arange(1, len(lines)))
    lines[0] = 0.0
    return np.fft.irfft(lines, samples)


def _bent(rng: np.random.Generator, samples: int) -> Array:
    """Linear noise seen through a curved characteristic: skewed, saturated or rectified."""
    x = _autoregressive(rng, samples)
    x /= x.std()
    curves = (lambda u: np.exp(0.7 * u), lambda u: u + 0.3 * u**3, np.tanh, lambda u: np.abs(u) - 0.4 * u)
    return np.asarray(curves[rng.integers(len(curves))](x))


def _drifting_tone(rng: np.random.Generator, samples: int) -> Array:
    """A periodic motion whose size, mean or pace changes by a few per cent along the record."""
    rise = rng.uniform(0.01, 0.1) * np.arange(samples) / samples
    t = 2 * np.pi * np.arange(samples) / rng.uniform(15, 60)
    kind = rng.integers(3)
    angle = t * (1 + rise / 2) if kind == 0 else t
    wave = np.sin(angle) + 0.3 * np.sin(2 * angle)
    return (1 + rise) * wave if kind == 1 else wave + (kind == 2) * rise


def _wandering_tone(rng: np.random.Generator, samples: int) -> Array:
    """A generator whose phase wanders: linear noise moves the clock of a wave with harmonics."""
    rate = 2 * np.pi / rng.uniform(15, 60)
    phase = rate * np.arange(samples) + rng.uniform(0.005, 0.05) * np.cumsum(rng.standard_normal(samples))
    return np.sin(phase) + 0.4 * np.sin(2 * phase + 1.0) + 0.2 * np.cos(3 * phase)


def _beating_tones(rng: np.random.Generator, samples: int) -> Array:
    """Two tones of incommensurate frequencies through a cubic characteristic."""
    t = np.arange(samples)
    rate = 2 * np.pi / rng.uniform(15, 40)
    ratio = (np.sqrt(5) - 1) / 2 * rng.uniform(0.8, 1.2)
    x = np.sin(rate * t) + rng.uniform(0.3, 1.0) * np.sin(ratio * rate * t + 1.0)
    return np.asarray(x + rng.uniform(0.1, 0.5) * x**3)


def _shaken(slope: str, pushes: float, damped: float) -> Callable[[np.random.Generator, int], Array]:
    """An oscillator that random pushes keep going: no sensor noise, and no chaos either."""

    def record(rng: np.random.Generator, samples: int) -> Array:
        code = compile(slope, "slope", "eval")
        inner, dt = 10, 0.25
        step = dt / inner
        kicks = pushes * rng.uniform(0.7, 1.4) * np.sqrt(step) * rng.standard_normal((samples + 400, inner))
        x, v, seen = 0.5, 0.0, np.empty(samples + 400)
        for i in range(samples + 400):
            for kick in kicks[i]:
                v += (eval(code, {"x": x, "v": v}) - damped * v) * step + kick
                x += v * step
            seen[i] = x
        return seen[400:]

    return record


NOT_CHAOS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "torus": _torus,
    "periodic": _periodic,
    "autoregressive": _autoregressive,
    "random walk": _walk,
    "surrogate": _surrogate,
    "autoregressive of order 5": _higher_order,
    "1/f noise": _pink,
    "noise through a curve": _bent,
    "drifting tone": _drifting_tone,
    "wandering tone": _wandering_tone,
    "beating tones": _beating_tones,
    "shaken two-well oscillator": _shaken("x - x*x*x", 0.25, 0.25),
    "shaken Duffing oscillator": _shaken("-x - x*x*x", 0.5, 0.2),
    "shaken van der Pol oscillator": _shaken("(1 - x*x)*v - x", 0.15, 0.0),
}
