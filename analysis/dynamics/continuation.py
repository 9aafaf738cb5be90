"""Branches of periodic motions over a parameter: pseudo-arclength continuation of multiple shooting.

The branch is followed by its length in states and parameter together (Keller 1977), so that it passes
folds, with stable and unstable motions alike. On the way the multipliers tell where its stability changes:
folds (the parameter turns back), period doublings (a multiplier passes -1), branch points such as symmetry
breakings (+1 without a fold) and torus bifurcations (a complex pair leaves the unit circle).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ModelError
from analysis.base.progress import SILENT, Progress
from analysis.dynamics.shooting import CLOSED, Flow, Shooting
from analysis.model import Model
from analysis.model.drive import drive_of

Array = NDArray[np.float64]
Kind = Literal["fold", "period doubling", "branch point", "torus"]
End = Literal["bound", "closed", "points", "lost"]

_SOLVED = (
    1e-9  # Newton step, relative to the orbit's size and the parameter's range, at which a point is found
)
_NEARLY = 1e-5  # the same where the closure holds to the integrator's accuracy
_WILD = 1e3  # such a step leads nowhere
_MOST_NEWTON = 9  # steps for one point
_EASY, _HARD = 3, 6  # Newton steps after which the next step of the branch is longer, or shorter
_FIRST, _LONGEST, _SHORTEST = 0.01, 0.04, 1e-7  # steps along the branch, in those units
_BEND = 0.9  # cosine between successive tangents below which the step was too long
_LOCATED = 1e-10  # how closely a special point is located, in the same units
_ASIDE = 0.1  # of the chord by which a point between two others may lie off it
_MOST_LOCATING = 40  # points tried to locate it
_FINER = 32  # points for each sample of an orbit, where its span is taken
_RETURNED = 0.5  # of the step: within which of its beginning a branch has closed


@dataclass(frozen=True, eq=False)
class BranchPoint:
    """A periodic motion on a branch."""

    parameter: float
    period: float
    nodes: Array  # [segments, n] states at the starts of the pieces
    path: Array  # [n, points] states along the orbit
    multipliers: NDArray[np.complex128]  # by falling size; of an autonomous motion without the trivial one
    direction: Array  # tangent of the branch: nodes, log period (autonomous), parameter
    flow: Flow

    @property
    def stable(self) -> bool:
        return bool(np.all(np.abs(self.multipliers) < 1.0))


@dataclass(frozen=True, eq=False)
class Special:
    """Where the branch turns back or its stability changes."""

    kind: Kind
    point: BranchPoint
    after: int  # number of the branch point before it
    stderr: float = float("nan")  # of the parameter's value there, from the errors of the other parameters


@dataclass(frozen=True, eq=False)
class Branch:
    """Periodic motions in the order of the branch, and the special points between them."""

    model: Model
    over: str
    points: list[BranchPoint]
    specials: list[Special] = field(default_factory=list)
    ended: End = "bound"

    @property
    def parameters(self) -> Array:
        return np.array([p.parameter for p in self.points])

    @property
    def stable(self) -> NDArray[np.bool_]:
        return np.array([p.stable for p in self.points])

    def outputs(self, point: BranchPoint) -> Array:
        """[q, points] what the sensors see along an orbit."""
        model = self.model.with_values({self.over: point.parameter})
        count = point.path.shape[1]
        times = np.arange(count) * point.period / count
        seen = np.empty((len(model.outputs), count))
        states = np.ascontiguousarray(point.path)
        model.kernels().out_many(times, states, np.zeros((0, count)), model.values(), seen)
        return seen

    def amplitudes(self, output: int) -> Array:
        """Half of the span of an output along the branch."""
        return np.array([self.amplitude(point, output) for point in self.points])

    def amplitude(self, point: BranchPoint, output: int) -> float:
        """Half of the span of an output on one orbit, between its samples by their Fourier series."""
        row = self.outputs(point)[output]
        fine = _FINER * np.fft.irfft(np.fft.rfft(row), _FINER * len(row))
        return 0.5 * float(np.ptp(fine))

    def harmonics(self, output: int, order: int = 1) -> NDArray[np.complex128]:
        """Complex amplitude of a harmonic of an output along the branch: y = Re sum c_k exp(i k w t)."""
        return np.array(
            [2.0 * np.fft.rfft(self.outputs(p)[output])[order] / p.path.shape[1] for p in self.points]
        )


@dataclass(frozen=True)
class PeriodRule:
    """The period of the drive over the parameter: T0 (parameter / at)^power; None: autonomous."""

    period: float
    at: float
    power: int

    def __call__(self, parameter: float) -> float:
        return self.period * (parameter / self.at) ** self.power

    def slope(self, parameter: float) -> float:
        return self.power * self(parameter) / parameter if self.power else 0.0


def period_rule(model: Model, over: str, lower: float, upper: float, periods: int = 1) -> PeriodRule | None:
    """How the drive's period depends on the parameter; None if the equations hold no drive."""
    model.index(over)
    drive = drive_of(model.with_values({over: 0.5 * (lower + upper)}))
    if not drive.present:
        return None
    places = [lower, 0.5 * (lower + upper), upper]
    found = [drive_of(model.with_values({over: place})).period for place in places]
    known = [period for period in found if period is not None]
    if len(known) < len(found):
        raise ModelError(f"The drive of {model.name} does not repeat for every {over}: no periodic motions.")
    for power in (0, -1, 1):
        if power and lower <= 0.0:
            continue
        rule = PeriodRule(periods * known[0], lower or 1.0, power)
        if all(abs(rule(p) - periods * t) < 1e-9 * rule(p) for p, t in zip(places, known, strict=True)):
            return rule
    raise ModelError(
        f"The drive's period of {model.name} is neither constant in {over} nor proportional to it or to "
        f"1/{over}: choose the frequency itself as the parameter."
    )


def follow(
    model: Model,
    over: str,
    lower: float,
    upper: float,
    start: Mapping[str, float] | Array,
    *,
    at: float | None = None,
    period: float | None = None,
    periods: int = 1,
    segments: int = 1,
    rtol: float = 1e-10,
    most_points: int = 2000,
    covariance: Mapping[tuple[str, str], float] | None = None,
    progress: Progress = SILENT,
) -> Branch:
    """The branch of periodic motions through ``start`` at ``over`` = ``at`` (default: ``lower``).

    It is followed towards ``upper`` (from ``upper``: towards ``lower``) until it leaves the interval, closes
    or is lost. ``periods`` of the drive make one period of the motion. Autonomous models need a guess of the
    ``period``; then it is part of the solution. With the ``covariance`` of identified parameters (by pairs of
    names) the special points have standard errors.
    """
    if not lower < upper or not np.isfinite([lower, upper]).all():
        raise DataError(f"The range of {over} must go from a smaller to a larger number.")
    rule = period_rule(model, over, lower, upper, periods)
    if rule is None and period is None:
        raise DataError(f"{model.name} has no drive: a guess of the motion's period is needed.")
    begin = lower if at is None else at
    state = np.array([start[s] for s in model.states]) if isinstance(start, Mapping) else np.asarray(start)
    tracer = _Tracer(model, over, lower, upper, rule, segments, rtol)
    first = tracer.first_point(state, period, begin, 1.0 if begin < upper else -1.0)
    if first is None:
        raise DataError(f"No periodic motion was found at {over} = {begin:g} near the start given.")
    branch = _traced(tracer, first, most_points, progress)
    if covariance is None:
        return branch
    names = tuple(dict.fromkeys(name for name, _ in covariance if name != over))
    matrix = np.array([[covariance.get((a, b), 0.0) for b in names] for a in names])
    return replace(branch, specials=[tracer.with_error(s, names, matrix) for s in branch.specials])


def _traced(tracer: _Tracer, first: BranchPoint, most_points: int, progress: Progress) -> Branch:
    points: list[BranchPoint] = [first]
    specials: list[Special] = []
    ended: End = "points"
    step, travelled = _FIRST, 0.0
    while len(points) < most_points:
        here = points[-1]
        found = tracer.next_point(here, step)
        if found is None:
            step /= 2
            if step < _SHORTEST:
                ended = "lost"
                break
            continue
        point, easy, beyond = found
        specials += tracer.specials_between(here, point, len(points) - 1)
        points.append(point)
        travelled += step
        share = (point.parameter - tracer.lower) / (tracer.upper - tracer.lower)
        progress.report(float(np.clip(share, 0.0, 1.0)), f"{tracer.over} = {point.parameter:.4g}")
        if beyond:
            ended = "bound"
            break
        if travelled > 10 * _LONGEST and tracer.distance(first, point) < _RETURNED * step:
            ended = "closed"
            break
        step = min(2 * step if easy else step, _LONGEST)
    return Branch(tracer.model, tracer.over, points, specials, ended)


@dataclass(frozen=True)
class _Tracer:
    """Newton's method for the points of one branch."""

    model: Model
    over: str
    lower: float
    upper: float
    rule: PeriodRule | None
    segments: int
    rtol: float

    @property
    def width(self) -> float:
        return self.upper - self.lower

    def shooting(self, parameter: float, wrt: tuple[str, ...] = ()) -> Shooting:
        values = self.model.values({self.over: parameter})
        free = self.rule is None
        return Shooting(self.model, values, 0.0, free, self.segments, self.rtol, (self.over, *wrt))

    def first_point(
        self, state: Array, period: float | None, parameter: float, sign: float
    ) -> BranchPoint | None:
        """Newton's method at a fixed parameter; the tangent points to larger parameters for sign +1."""
        from analysis.dynamics.shooting import periodic_orbit
        from analysis.simulation.simulate import simulate

        duration = self.rule(parameter) if self.rule is not None else float(period or 0.0)
        values = self.model.values({self.over: parameter})
        orbit = periodic_orbit(
            self.model,
            state,
            duration,
            values,
            free_period=self.rule is None,
            segments=self.segments,
            rtol=self.rtol,
        )
        if not orbit.converged:
            return None
        times = orbit.period * np.arange(self.segments) / self.segments
        nodes = simulate(self.model, times, orbit.state, values, rtol=self.rtol).states.T.copy()
        onward = np.zeros(nodes.size + (2 if self.rule is None else 1))
        onward[-1] = sign
        return self._point(nodes, orbit.period, parameter, onward)

    def next_point(self, here: BranchPoint, step: float) -> tuple[BranchPoint, bool, bool] | None:
        """The point one step along the branch, or where it leaves the interval on the way; whether it was
        easy, and whether it leaves. None if the step is too long.
        """
        scale = self._scale(here.flow)
        ahead = here.direction * step
        nodes, log_period, parameter = self._unpacked(self._packed(here, scale) + ahead, scale, here)
        found = self._newton(nodes, np.exp(log_period), parameter, scale, here.direction, here)
        if found is None:
            return None
        point, iterations = found
        if self._turn(here, point) < _BEND or not np.isfinite(point.multipliers).all():
            return None
        easy = iterations <= _EASY
        if self.lower <= point.parameter <= self.upper:
            return point, easy, False
        edge = self.at_bound(here, point)
        return None if edge is None else (edge, easy, True)

    def at_bound(self, here: BranchPoint, beyond: BranchPoint) -> BranchPoint | None:
        """The point at which the branch leaves the interval, between two of its points."""
        bound = self.upper if beyond.parameter > self.upper else self.lower
        share = (bound - here.parameter) / (beyond.parameter - here.parameter)
        nodes = here.nodes + share * (beyond.nodes - here.nodes)
        period = here.period + share * (beyond.period - here.period)
        scale = self._scale(here.flow)
        fixed = np.zeros(len(here.direction))
        fixed[-1] = 1.0
        found = self._newton(nodes, period, bound, scale, fixed, here)
        if found is None:
            return None
        return self._point(found[0].nodes, found[0].period, bound, here.direction)

    def distance(self, one: BranchPoint, other: BranchPoint) -> float:
        scale = self._scale(other.flow)
        return float(np.linalg.norm(self._packed(one, scale) - self._packed(other, scale)))

    def specials_between(self, a: BranchPoint, b: BranchPoint, after: int) -> list[Special]:
        """Special points passed from one point to the next, located along the branch."""
        found: list[tuple[Kind, Test]] = []
        turned = a.direction[-1] * b.direction[-1] < 0
        if turned:
            found.append(("fold", lambda p: float(p.direction[-1])))
        elif _at_one(a) * _at_one(b) < 0:
            found.append(("branch point", _at_one))
        if _at_minus_one(a) * _at_minus_one(b) < 0:
            found.append(("period doubling", _at_minus_one))
        if _complex_outside(a) != _complex_outside(b):
            found.append(("torus", _largest_pair))
        located = []
        for kind, test in found:
            located.append(Special(kind, self._located(a, b, test), after))
        return located

    def _located(self, a: BranchPoint, b: BranchPoint, test: Test) -> BranchPoint:
        """The point between two at which the test function is zero, by false position (Illinois).

        Each trial begins on the chord between the closest points known, so that Newton's method stays on this
        branch where another one crosses it. At such a crossing itself it fails: then the closest point
        before that is the answer.
        """
        at_a, at_b = test(a), test(b)
        best, at_best = (a, at_a) if abs(at_a) < abs(at_b) else (b, at_b)
        for _ in range(_MOST_LOCATING):
            point = self._between(a, b, at_a / (at_a - at_b)) or self._between(a, b, 0.5)
            if point is None:
                break
            here = test(point)
            if abs(here) < abs(at_best):
                best, at_best = point, here
            if here == 0 or self.distance(point, b) < _LOCATED:
                break
            if here * at_b < 0:
                a, at_a = b, at_b
            else:
                at_a /= 2
            b, at_b = point, here
        return best

    def _between(self, a: BranchPoint, b: BranchPoint, share: float) -> BranchPoint | None:
        """The point of the branch beside a point of the chord from ``a`` to ``b``; None if it is lost."""
        scale = self._scale(a.flow)
        begin, end = self._packed(a, scale), self._packed(b, scale)
        chord = (end - begin) / np.linalg.norm(end - begin)
        nodes, log_period, parameter = self._unpacked(begin + share * (end - begin), scale, a)
        anchor = replace(a, direction=chord * np.sign(chord @ a.direction))
        found = self._newton(nodes, float(np.exp(log_period)), parameter, scale, anchor.direction, anchor)
        if found is None:
            return None
        place = (self._packed(found[0], scale) - begin) @ chord / np.linalg.norm(end - begin)
        aside = self.distance(found[0], a) + self.distance(found[0], b)
        stays = aside < (1 + _ASIDE) * self.distance(a, b) + _LOCATED
        return found[0] if stays and -_ASIDE < place < 1 + _ASIDE else None

    def with_error(self, special: Special, names: tuple[str, ...], covariance: Array) -> Special:
        """The special point with the standard error of its parameter, to first order in the other errors."""
        if special.kind == "fold":
            slopes = self._fold_slopes(special.point, names)
        elif special.kind == "branch point":  # the closure is singular there, and so are its derivatives
            return special
        else:
            test = _at_minus_one if special.kind == "period doubling" else _largest_pair
            slopes = self._test_slopes(special.point, names, test, np.sqrt(np.diag(covariance)))
        return replace(special, stderr=float(np.sqrt(np.maximum(slopes @ covariance @ slopes, 0.0))))

    def _fold_slopes(self, point: BranchPoint, names: tuple[str, ...]) -> Array:
        """d parameter / d name at a fold: l'(closure by name) + l'(closure by parameter) d = 0, l' J = 0."""
        shooting = self.shooting(point.parameter, names)
        flow = shooting.flow(point.nodes, point.period)
        scale = self._scale(flow)
        matrix, _ = self._closure(shooting, point.nodes, flow, point.period, point.parameter, scale, point)
        left = np.linalg.svd(matrix[:, :-1])[0][:, -1]
        by_parameter = float(left @ matrix[:, -1]) / self.width
        by_name = np.zeros((len(left), len(names)))
        for j in range(self.segments):
            rows = slice(j * len(flow.size), (j + 1) * len(flow.size))
            by_name[rows] = flow.by_parameters[j, :, 1:] / flow.size[:, None]
        return np.asarray(-(left @ by_name) / by_parameter)

    def _test_slopes(self, point: BranchPoint, names: tuple[str, ...], test: Test, errors: Array) -> Array:
        """d parameter / d name where a test function of the multipliers is zero, by small differences."""

        def at(model: Model, parameter: float) -> float:
            fixed = np.zeros(len(point.direction))
            fixed[-1] = 1.0
            tracer = replace(self, model=model)
            found = tracer._newton(
                point.nodes, point.period, parameter, self._scale(point.flow), fixed, point
            )
            return float("nan") if found is None else test(found[0])

        step = 1e-5 * self.width
        by_parameter = (at(self.model, point.parameter + step) - at(self.model, point.parameter - step)) / (
            2 * step
        )
        slopes = np.zeros(len(names))
        for i, (name, error) in enumerate(zip(names, errors, strict=True)):
            here = self.model.parameters[name].value
            step = max(1e-2 * float(error), 1e-7 * abs(here))
            up, down = (self.model.with_values({name: here + s}) for s in (step, -step))
            slopes[i] = -(at(up, point.parameter) - at(down, point.parameter)) / (2 * step) / by_parameter
        return slopes

    def _newton(
        self,
        nodes: Array,
        period: float,
        parameter: float,
        scale: Array,
        direction: Array,
        anchor: BranchPoint,
    ) -> tuple[BranchPoint, int] | None:
        """Closure, phase (autonomous) and no motion along ``direction`` from the first guess."""
        for iteration in range(1, _MOST_NEWTON + 1):
            duration = period if self.rule is None else self.rule(parameter)
            if not duration > 0 or (self.rule is not None and self.rule.power and parameter <= 0):
                return None
            shooting = self.shooting(parameter)
            flow = shooting.flow(nodes, duration)
            if not (np.isfinite(flow.ends).all() and np.isfinite(flow.jacobians).all()):
                return None
            matrix, residual = self._closure(shooting, nodes, flow, duration, parameter, scale, anchor)
            matrix = np.vstack([matrix, direction])
            try:
                change = np.linalg.solve(matrix, np.append(-residual, 0.0))
            except np.linalg.LinAlgError:
                return None
            nodes = nodes + (change[: nodes.size] * scale).reshape(nodes.shape)
            if self.rule is None:
                period = duration * float(np.exp(np.clip(change[-2], -1.0, 1.0)))
            parameter += float(change[-1]) * self.width
            moved = float(np.max(np.abs(change)))
            # close to a branch point the error of the integrator alone moves the point along the other branch
            if moved < _SOLVED or (moved < _NEARLY and np.max(np.abs(residual)) < 10 * self.rtol):
                duration = period if self.rule is None else self.rule(parameter)
                point = self._point(nodes, duration, parameter, anchor.direction)
                return None if point is None else (point, iteration)
            if moved > _WILD:
                return None
        return None

    def _point(self, nodes: Array, period: float, parameter: float, onward: Array) -> BranchPoint | None:
        """A point found, with its multipliers and the tangent that goes on as ``onward`` does."""
        shooting = self.shooting(parameter)
        flow = shooting.flow(nodes, period)
        scale = self._scale(flow)
        here = BranchPoint(parameter, period, nodes, flow.path, flow.multipliers, onward, flow)
        matrix, residual = self._closure(shooting, nodes, flow, period, parameter, scale, here)
        if np.max(np.abs(residual)) > CLOSED:
            return None
        multipliers = flow.multipliers
        if self.rule is None:
            multipliers = np.delete(multipliers, int(np.argmin(np.abs(multipliers - 1.0))))
        _, _, rows = np.linalg.svd(matrix)
        tangent = rows[-1]
        tangent = tangent if tangent @ onward >= 0 else -tangent
        return replace(here, multipliers=multipliers, direction=tangent / np.linalg.norm(tangent))

    def _closure(
        self,
        shooting: Shooting,
        nodes: Array,
        flow: Flow,
        period: float,
        parameter: float,
        scale: Array,
        anchor: BranchPoint,
    ) -> tuple[Array, Array]:
        """Derivatives [rows, unknowns] and residuals of the closure in units of ``scale``."""
        count, n = nodes.shape
        free = self.rule is None
        rows = count * n + (1 if free else 0)
        matrix, residual = np.zeros((rows, rows + 1)), np.zeros(rows)
        size = scale[:n]
        slope = 0.0 if self.rule is None else self.rule.slope(parameter)
        for j in range(count):
            here, following = slice(j * n, (j + 1) * n), (j + 1) % count
            matrix[here, here] += flow.jacobians[j] * size / size[:, None]
            matrix[here, following * n : (following + 1) * n] -= np.eye(n)
            by_parameter = flow.by_parameters[j, :, 0].copy()
            if slope:
                begin = np.empty(n)
                time = period * j / count
                self.model.kernels().rhs(time, nodes[j].copy(), np.empty(0), shooting.values, begin)
                moved = flow.slopes[j] * (j + 1) - flow.jacobians[j] @ begin * j
                by_parameter += moved * slope / count
            matrix[here, -1] = by_parameter * self.width / size
            if free:
                matrix[here, -2] = flow.slopes[j] * period / count / size
        residual[: count * n] = (shooting.gaps(nodes, flow) / size).ravel()
        if free:  # no sliding along the orbit
            along = np.empty(n)
            self.model.kernels().rhs(0.0, anchor.nodes[0].copy(), np.empty(0), shooting.values, along)
            along = along / size / max(float(np.linalg.norm(along / size)), 1e-300)
            matrix[-1, :n] = along
            residual[-1] = along @ ((nodes[0] - anchor.nodes[0]) / size)
        return matrix, residual

    def _scale(self, flow: Flow) -> Array:
        return np.tile(flow.size, self.segments)

    def _packed(self, point: BranchPoint, scale: Array) -> Array:
        tail = [np.log(point.period)] if self.rule is None else []
        return np.concatenate([point.nodes.ravel() / scale, tail, [point.parameter / self.width]])

    def _unpacked(self, packed: Array, scale: Array, like: BranchPoint) -> tuple[Array, float, float]:
        nodes = (packed[: len(scale)] * scale).reshape(like.nodes.shape)
        log_period = float(packed[-2]) if self.rule is None else float(np.log(like.period))
        return nodes, log_period, float(packed[-1]) * self.width

    def _turn(self, one: BranchPoint, other: BranchPoint) -> float:
        """Cosine between two tangents, both in the units of the first."""
        n = one.nodes.size
        ratio = self._scale(other.flow) / self._scale(one.flow)
        later = other.direction.copy()
        later[:n] *= ratio
        return float(one.direction @ later / np.linalg.norm(later))


Test = Callable[[BranchPoint], float]


def _at_one(point: BranchPoint) -> float:
    return float(np.prod(point.multipliers - 1.0).real)


def _at_minus_one(point: BranchPoint) -> float:
    return float(np.prod(point.multipliers + 1.0).real)


def _pairs(point: BranchPoint) -> NDArray[np.complex128]:
    return point.multipliers[point.multipliers.imag > 1e-9]


def _complex_outside(point: BranchPoint) -> int:
    return int(np.sum(np.abs(_pairs(point)) > 1.0))


def _largest_pair(point: BranchPoint) -> float:
    pairs = _pairs(point)
    nearest = pairs[np.argmin(np.abs(np.abs(pairs) - 1.0))] if len(pairs) else 0.0
    return float(np.abs(nearest) - 1.0)
