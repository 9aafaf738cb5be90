"""What a search is made in: the library's model on its records, the motion that these show, and the numbers
inside terms from which to begin.

A number inside a term (the gap of a contact, the steepness of friction) bends the likelihood too much for a
start from anywhere. The values between which the record sees a difference are found first: along the motion
a term is a vector, and as the number goes from one end of all numbers to the other its direction turns; what
turns it is worth trying, what leaves it as it is, empties it or makes it another term of the library is not.
Of values at even angles the weak form with all terms takes the one that leaves least.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ModelError
from analysis.estimate.discovery.library import UNKNOWN, Library, Shape
from analysis.estimate.discovery.motion import Motion, earlier, followed, motions
from analysis.estimate.discovery.weak_start import weak_blocks, weak_rows
from analysis.signal.timescale import mean_period

if TYPE_CHECKING:
    from analysis.experiment import Experiment
    from analysis.model import Model
    from analysis.signal.inputs import Inputs

Array = NDArray[np.float64]

# A term with a number inside, along a record, is a vector of its samples. How far it turns (an angle in rad)
# when the number changes tells how closely values of the number have to be tried.
_DECADES, _PER_DECADE = 9, 5  # values on a logarithmic scale, up and down from one, of both signs
_ALONG = 24  # values along the range of each state and input
_WIDE = 0.4  # rad: an interval over which the term turns by more is halved ...
_HALVINGS, _MOST_TRIED = 6, 1200  # ... so many times, as long as there are fewer values than this
_STEP = 0.3  # rad between the values that the weak form compares
_FEWEST, _MOST = 12, 120  # of these values
_FEWEST_SEEN = 3  # values that must make a difference; else the number has no effect in the record
_STILL = 1e-3  # rad: the term does not turn at all
_SAMPLES = 800  # of a run that are looked at for this
_SELDOM = 0.01  # share of the samples: a value that changes the term in fewer of them tells nothing
_ALIKE = 0.9995  # cosine above which a term is another one of the library
_SAME = 1.0 - 1e-9  # cosine of two terms that are one
_JUMP = 1.0  # rad between neighbouring values: beyond, as at a pole, one term tells nothing of the other
_HUGE = 1e60  # a term beyond this has run away; its square would overflow
_FAR = 30.0  # factor by which the known part of an equation may differ in size from the rate it makes up
_DELAYS, _CLEARLY = 26, 10.0  # delays that are compared, and the misfit by which one must be better
_ROUNDS = 2  # over all numbers
_FLOOR = 1e-5  # of the eigenvalues of the weak form's moments
_KNOTS = 18.0  # of the test functions in a period of the motion


class Scene:
    """Library and experiment, ready for a search; ``library`` has ranges for all of its shapes.

    ``sensors`` are first values of offsets, delays and drifts by their names, such as `delay x`.
    """

    def __init__(
        self, experiment: Experiment, library: Library, sensors: Mapping[str, float] | None = None
    ) -> None:
        self.experiment, self.library, self._sensors = experiment, library, dict(sensors or {})
        self._unknown = [state for state, text in library.equations.items() if UNKNOWN in text]
        late = [value for name, value in self._sensors.items() if name.startswith("delay ")]
        seen = motions(experiment, library.rates, self._unknown)
        self._base = [
            earlier(motion, float(np.median(late)) / run.dt) if late else motion
            for run, motion in zip(experiment.runs, seen, strict=True)
        ]
        model = experiment.model
        sought = [n for n in model.linear if n in model.free and n not in library.shapes]
        self.linear = [model.index(name) for name in sought]
        self.grids: dict[str, Array] = {}
        if library.shapes:
            self._find_ranges()

    def within(self, experiment: Experiment) -> Scene:
        """The same scene in an experiment whose model has the ranges that were found."""
        other = copy(self)
        other.experiment = experiment
        return other

    @property
    def hidden(self) -> list[str]:
        """States that no channel of any record shows."""
        common = set.intersection(*(set(motion.hidden) for motion in self._base))
        return [self.experiment.model.states[i] for i in sorted(common)]

    @cached_property
    def period(self) -> float:
        """Samples of a mean period, the median over the states."""
        rows = [row for m in self._base for row in m.smooth if np.ptp(row) > 0 and len(row) >= 16]
        found = [min(mean_period(row), len(row) / 4) for row in rows]
        if not found:
            raise DataError("Every channel is constant: there is no motion to find an equation for.")
        return float(np.median(found))

    @property
    def sensors(self) -> Array:
        """Offsets, delays and drifts of the outputs [3q] to begin with."""
        outputs = self.experiment.model.outputs
        return np.array(
            [self._sensors.get(f"{kind} {o}", 0.0) for kind in ("offset", "delay", "drift") for o in outputs]
        )

    def motions(self, model: Model) -> list[Motion]:
        """The motion of every run with the numbers that a model has for what nothing shows."""
        pairs = zip(self.experiment.runs, self._base, strict=True)
        return [followed(model, run, motion) for run, motion in pairs]

    def starts(self) -> Iterator[Model]:
        """The model with the numbers inside its terms to begin with: the best ones, and the next best."""
        model = self.experiment.model
        if not self.grids:
            yield model
            return
        best = {name: self.library.shapes[name].guess for name in self.grids}
        others: list[tuple[float, dict[str, float]]] = []
        for _ in range(_ROUNDS if len(self.grids) > 1 else 1):
            others = []
            for name, grid in self.grids.items():
                left = [self._left(model.with_values({**best, name: float(value)})) for value in grid]
                order = _minima(np.array(left))
                best = {**best, name: float(grid[order[0]])}
                others += [(left[i] - left[order[0]], {name: float(grid[i])}) for i in order[1:2]]
        yield model.with_values(best)
        for _, other in sorted(others, key=lambda pair: pair[0])[:1]:
            yield model.with_values({**best, **other})

    def likely_delay(self) -> float:
        """Seconds by which all sensors seem to be behind the drive, up to a quarter of a period: where all
        terms together leave least of the weak form; 0 without a measured drive."""
        runs = self.experiment.runs
        if not all(run.inputs.count for run in runs):
            return 0.0
        times = np.linspace(0.0, 0.25 * self.period * runs[0].dt, _DELAYS)
        left = []
        for time in times:
            given = [
                earlier(m, time / run.dt)
                for m, run in zip(self.motions(self.experiment.model), runs, strict=True)
            ]
            left.append(self._left(self.experiment.model, given))
        best = int(np.argmin(left))
        return float(times[best]) if left[best] < left[0] - _CLEARLY else 0.0

    def _left(self, model: Model, given: Sequence[Motion] | None = None) -> float:
        """What all terms together leave of the weak form, as a misfit."""
        stretches, rows = weak_rows(self.experiment, given or self.motions(model), self.linear)
        if not all(_sound(stretch.nodes.states) for stretch in stretches):
            return math.inf
        spacing = max(round(self.period / _KNOTS), 1)
        blocks = weak_blocks(model, stretches, rows, self.linear, spacing)
        if not all(_sound(block.gram) for block in blocks):
            return math.inf
        return sum(len(b.left) * math.log(b.misfit(_FLOOR) + np.finfo(float).tiny) for b in blocks)

    def _find_ranges(self) -> None:
        """Grid, bounds and guess of every shape in turn, those that are not yet seen at a neutral value."""
        model, shapes = self.experiment.model, dict(self.library.shapes)
        model = model.with_values({name: self._neutral(model, name) for name in shapes})
        for name, shape in shapes.items():
            grid = self._grid(model, name, shape)
            given = shape.lower is not None and shape.upper is not None
            lower, upper = (shape.lower, shape.upper) if given else _ends(grid)
            shapes[name] = Shape(lower, upper, float(grid[len(grid) // 2]))
            self.grids[name] = grid
            if len(shapes) > 1:
                model = model.with_values({name: shapes[name].guess})
        self.library = self.library.with_shapes(shapes)

    def _neutral(self, model: Model, name: str) -> float:
        """Zero where the terms live with it, otherwise one."""
        shape = self.library.shapes[name]
        if shape.lower is not None and shape.upper is not None:
            return 0.5 * (shape.lower + shape.upper)
        columns = self._columns(model.with_values({name: 0.0}))
        return 0.0 if all(_sound(columns[user]) for user in self._bearers(name)) else 1.0

    def _bearers(self, name: str) -> list[str]:
        """What a shape changes: terms by their coefficients, and known parts of equations by their states."""
        library = self.library
        terms = [n for n, c in library.candidates.items() if name in library.reach(c.term)]
        return [*terms, *library.steered(name)]

    def _grid(self, model: Model, name: str, shape: Shape) -> Array:
        """Numbers at even angles of what they make of the terms."""
        users = self._bearers(name)
        rows = {
            value: self._directions(model.with_values({name: value}), users)
            for value in self._tried(shape).tolist()
        }
        if shape.lower is None and _mirrored(rows):
            rows = {value: row for value, row in rows.items() if value > 0}
        for _ in range(_HALVINGS):
            wide = [(a, b) for a, b in pairwise(sorted(rows)) if _WIDE < _angle(rows[a], rows[b]) < math.inf]
            if len(rows) + len(wide) > _MOST_TRIED:
                break
            for value in (0.5 * (a + b) for a, b in wide):
                rows[value] = self._directions(model.with_values({name: value}), users)
        tried = np.array(sorted(rows))
        angles = np.array([_angle(rows[a], rows[b]) for a, b in pairwise(tried)])
        sides = [side for side in _sides(tried, angles) if len(side) >= _FEWEST_SEEN]
        if not sides:
            raise ModelError(
                f"The shape {name} makes no difference along this record that other terms do not make, too: "
                "leave its terms out, write it otherwise, or give it a range in which it does."
            )
        turned = np.cumsum(np.append(0.0, np.where(angles < _JUMP, angles, 0.0)))
        turning = [side for side in sides if turned[side[-1]] - turned[side[0]] >= _STILL]
        if not turning:
            raise ModelError(f"The shape {name} only scales its term: a coefficient does that already.")
        grids = [_evenly(tried[side], turned[side]) for side in turning]
        return grids[0] if len(grids) == 1 else min(grids, key=lambda grid: self._least(model, name, grid))

    def _least(self, model: Model, name: str, grid: Array) -> float:
        """What is left of the weak form with the best of some numbers."""
        return min(self._left(model.with_values({name: value})) for value in grid.tolist())

    def _tried(self, shape: Shape) -> Array:
        if shape.lower is not None and shape.upper is not None:
            return np.linspace(shape.lower, shape.upper, 8 * _ALONG)
        size = 10.0 ** np.linspace(-_DECADES, _DECADES, 2 * _DECADES * _PER_DECADE + 1)
        ranges = [row for m in self._base for row in m.smooth if np.ptp(row) > 0]
        ranges += [
            row for run in self.experiment.runs if run.inputs.count for row in run.inputs.values(run.times)
        ]
        along = [np.linspace(row.min(), row.max(), _ALONG) for row in ranges]
        return np.unique(np.concatenate([-size, size, *along]))

    def _columns(self, model: Model) -> dict[str, Array]:
        """Every candidate term along the motion, by the name of its coefficient, and the known part of every
        equation, by its state."""
        names, pattern = list(model.parameters), np.asarray(model.kernels().pattern_p)
        parts = []
        for run, motion in zip(self.experiment.runs, self.motions(model), strict=True):
            parts.append(term_values(model, run.times, motion.smooth, run.inputs, _SAMPLES))
        terms, rates = (np.hstack([part[i] for part in parts]) for i in (0, 1))
        found = {names[place]: row for (_, place), row in zip(pattern.T, terms, strict=True)}
        known = dict(zip(model.states, rates, strict=True))
        return {**known, **{name: found[name] for name in self.library.candidates}}

    def _directions(self, model: Model, users: Sequence[str]) -> Array | None:
        """The terms of some coefficients as unit vectors, one behind the other; None where they say nothing
        that other terms do not say."""
        columns, parts = self._columns(model), []
        for user in users:
            row = columns[user]
            if not _sound(row) or not self._of_size(user, row):
                return None
            row = row / np.abs(row).max()
            if (row**2).sum() ** 2 / (row**4).sum() < _SELDOM * len(row):
                return None
            row = row / np.linalg.norm(row)
            others = [c / np.linalg.norm(c) for c in self._beside(user, users, columns) if _sound(c)]
            if any(abs(row @ other) > _ALIKE for other in others):
                return None
            parts.append(row)
        return np.concatenate(parts) / math.sqrt(len(parts))

    def _of_size(self, name: str, row: Array) -> bool:
        """Whether a known part, which no coefficient scales, is anything like the rate that it is part of."""
        if name not in self.experiment.model.states:
            return True
        place = self.experiment.model.states.index(name)
        rates = [
            np.gradient(motion.smooth[place], run.dt)
            for run, motion in zip(self.experiment.runs, self._base, strict=True)
        ]
        size = float(np.sqrt(np.mean(np.concatenate(rates) ** 2)))
        return size / _FAR < float(np.sqrt(np.mean(row**2))) < size * _FAR

    def _beside(self, name: str, users: Sequence[str], columns: Mapping[str, Array]) -> list[Array]:
        """The other terms of the equation that a term is in."""
        candidates = self.library.candidates
        if name not in candidates:
            return []
        state = candidates[name].state
        return [columns[n] for n, c in candidates.items() if n not in users and c.state == state]


def term_values(
    model: Model, times: Array, states: Array, inputs: Inputs, most: int = 0
) -> tuple[Array, Array]:
    """Terms [entries of the pattern, samples] and rates [n, samples] along a motion, at about ``most``
    samples (0: all)."""
    kernels = model.kernels()
    step = max(len(times) // most, 1) if most else 1
    at, X = np.ascontiguousarray(times[::step]), np.ascontiguousarray(states[:, ::step])
    U = inputs.values(at) if inputs.count else np.zeros((0, len(at)))
    found, rates = np.empty((kernels.pattern_p.shape[1], len(at))), np.empty_like(X)
    with np.errstate(all="ignore"):
        kernels.jac_p_sparse_many(at, X, U, model.values(), rates, found)
    return found, rates


def _sound(values: Array) -> bool:
    """Whether numbers are finite, not all zero, and small enough to be squared."""
    size = float(np.max(np.abs(values), initial=0.0))
    return 0.0 < size < _HUGE  # not a number is neither


def _angle(a: Array | None, b: Array | None) -> float:
    """Between two lines; infinite where one of them is none."""
    return math.inf if a is None or b is None else math.acos(min(abs(float(a @ b)), 1.0))


def _mirrored(rows: Mapping[float, Array | None]) -> bool:
    """Whether a number and its negative make the same of the terms."""
    pairs = [(row, rows[-v]) for v, row in rows.items() if v > 0 and -v in rows]
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    one_sided = any((a is None) != (b is None) for a, b in pairs)
    return bool(both) and not one_sided and all(abs(float(a @ b)) > _SAME for a, b in both)


def _sides(tried: Array, angles: Array) -> list[NDArray[np.int64]]:
    """Places of the numbers whose terms the record follows; where there is a gap between numbers below and
    above zero, such as at a pole, those of each side by itself."""
    steady = angles < _JUMP
    usable = np.append(False, steady) | np.append(steady, False)
    around = int(np.searchsorted(tried, 0.0))
    whole = 0 < around < len(tried) and bool(steady[around - 1])
    if whole:
        return [np.flatnonzero(usable)]
    return [np.flatnonzero(usable & (tried < 0)), np.flatnonzero(usable & (tried >= 0))]


def _evenly(tried: Array, turned: Array) -> Array:
    """Numbers between which the terms turn by even angles."""
    count = int(np.clip(math.ceil((turned[-1] - turned[0]) / _STEP), _FEWEST, _MOST))
    return np.unique(np.interp(np.linspace(turned[0], turned[-1], count), turned, tried))


def _ends(grid: Array) -> tuple[float, float]:
    """Bounds around the numbers that make a difference."""
    if grid[0] > 0:
        return float(grid[0] / 3), float(grid[-1] * 3)
    if grid[-1] < 0:
        return float(grid[0] * 3), float(grid[-1] / 3)
    reach = 0.1 * float(grid[-1] - grid[0])
    return float(grid[0] - reach), float(grid[-1] + reach)


def _minima(values: Array) -> list[int]:
    """Places of the local minima, the lowest first."""
    padded = np.concatenate([[np.inf], values, [np.inf]])
    low = (values <= padded[:-2]) & (values <= padded[2:])
    return sorted(np.flatnonzero(low).tolist(), key=lambda i: float(values[i])) or [int(np.argmin(values))]
