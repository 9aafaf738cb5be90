"""What the searches decide by: steps in standard errors, scans, readings of the inputs. Linear by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from analysis.base.errors import DataError
from analysis.base.progress import SILENT
from analysis.estimate.shooting import interpolation as interpolation_module
from analysis.estimate.shooting import search as search_module
from analysis.estimate.shooting.evidence import Evidence
from analysis.estimate.shooting.interpolation import other_interpolations
from analysis.estimate.shooting.search import Search, Trial, _scanned
from analysis.estimate.unknowns import Unknowns
from analysis.estimate.weak.fit import Block, _factor, _Fit, _in_errors, fit_weak
from analysis.experiment import Conditions

GOOD, POOR = Evidence(1.0, 0.5, 0.99, 100), Evidence(3.0, 0.0, 0.9, 100)


class Rows:
    """Rows y - A p in place of a weak form; what is not linear in p is squared."""

    def __init__(self, y: np.ndarray, A: np.ndarray, squared: tuple[int, ...] = ()) -> None:
        self.left, self.A, self.squared = y[None], A, list(squared)
        self.parameters = A.shape[1]
        self.probes = np.zeros(len(y))
        self.variance = 1.0
        self.every: list[int] = []  # asked for by a scan

    def __len__(self) -> int:
        return self.left.size

    def linearised(self, values: np.ndarray, free: list[int]) -> tuple[np.ndarray, np.ndarray]:
        p, slope = values[: self.parameters].copy(), np.ones(self.parameters)
        slope[self.squared] = 2 * p[self.squared]
        p[self.squared] **= 2
        return self.left - (self.A @ p)[None], -(self.A * slope).T[free][:, None, :]

    def normal(self, values: np.ndarray, free: list[int], weight: np.ndarray) -> tuple[Any, Any, float]:
        r, D = self.linearised(values, free)
        r, D = (r * weight[:, None]).ravel(), (D * weight[:, None]).reshape(len(free), -1)
        return D @ D.T, -D @ r, float(r @ r)

    def variances(self, values: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        return np.full_like(self.left, self.variance)

    def covariance(self, values: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        return np.full((len(self), 1), self.variance)

    def thinned(self, every: int) -> Rows:
        self.every.append(every)
        return self


def linear_fit(
    noise: float = 0.1,
    squared: tuple[int, ...] = (),
    upper: float = np.inf,
    start: tuple[float, ...] = (1.0, 1.0),
) -> tuple[_Fit, np.ndarray, np.ndarray]:
    """Two unknowns, true 2 and 3, seen in 400 rows."""
    rng = np.random.default_rng(1)
    A = rng.standard_normal((400, 2))
    truth = np.array([2.0, 3.0])
    truth[list(squared)] **= 2
    y = A @ truth + noise * rng.standard_normal(400)
    rows = Rows(y, A, squared)
    rows.variance = noise**2
    linear = {0, 1} - set(squared)
    low = np.full(2, -np.inf if np.isinf(upper) else 0.0)
    found = _Fit(
        [Block(cast(Any, rows), 0, np.ones(1))], np.array(start), Unknowns([(0, -1), (1, -1)], 1), low,
        np.full(2, upper), linear,
    )  # fmt: skip
    return found, A, y


def test_given_a_step_then_its_size_is_counted_in_standard_errors_of_what_is_left() -> None:
    fit, A, y = linear_fit()
    here = fit._normal(fit._scaled, np.array([[2.0, 3.0]]))
    left = y - A @ [2.0, 3.0]
    assert here.squares * fit.scale[0] ** 2 == pytest.approx(left @ left)
    error = np.sqrt(np.diag(np.linalg.inv(A.T @ A)) * (left @ left) / 398)
    assert fit.after(here, np.array([0.0, 0.3])).step == pytest.approx(0.3 / error[1])
    assert fit.after(here, np.array([-0.2, 0.0])).step == pytest.approx(0.2 / error[0])
    step, gain = fit.proposed(here, 0.0)
    best = np.linalg.lstsq(A, y, rcond=None)[0]
    assert np.array([2.0, 3.0]) + step == pytest.approx(best)
    lowest = y - A @ best
    assert gain * fit.scale[0] ** 2 == pytest.approx(0.5 * (left @ left - lowest @ lowest))
    exact, A, _ = linear_fit(noise=0.0)
    there = exact._normal(exact._scaled, np.array([[2.0, 3.0]]))
    assert there.squares == 0.0 and np.isfinite(exact.after(there, np.array([0.1, 0.0])).step)
    assert _in_errors(np.array([0.0, 0.0]), np.ones(2), np.eye(2)) == 0.0
    assert _in_errors(np.array([1.0, -6.0]), np.ones(2), np.diag([4.0, 0.25])) == pytest.approx(3.0)


def test_given_rows_without_weights_then_the_errors_are_the_scatter_of_their_scores() -> None:
    fit, A, y = linear_fit()
    found = fit.run(False, SILENT)
    best = np.linalg.lstsq(A, y, rcond=None)[0]
    assert found.estimate == pytest.approx(best, rel=1e-9) and found.converged
    left = y - A @ best
    assert found.misfit == pytest.approx(np.sqrt((left @ left) / (400 * 0.01)))
    assert not found.model_error and found.dof == 398
    scores = np.array([part.sum(axis=0) for part in np.array_split(A * left[:, None], 33)])
    H = np.linalg.inv(A.T @ A)
    exact = H @ (scores.T @ scores) @ H * 33 / 31  # 400 rows in parts of twelve, less two unknowns
    assert np.linalg.inv(found.information) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(("assumed", "widened"), [(0.1, 1.0), (0.05, 4.0), (0.5, 1.0)])
def test_given_a_misfit_beyond_the_noise_then_it_widens_the_errors_and_never_narrows_them(
    assumed: float, widened: float
) -> None:
    fit, A, y = linear_fit()
    fit.blocks[0].system.variance = assumed**2  # type: ignore[attr-defined]
    found = fit.run(True, SILENT)
    best = np.linalg.lstsq(A, y, rcond=None)[0]
    assert found.estimate == pytest.approx(best, rel=1e-6) and found.converged
    left = y - A @ best
    assert found.chi2 == pytest.approx(left @ left / assumed**2, rel=1e-6)
    expected = np.linalg.inv(A.T @ A) * assumed**2 * max(found.chi2 / 398, 1.0)
    assert np.linalg.inv(found.information) == pytest.approx(expected, rel=1e-6)
    assert max(found.chi2 / 398, 1.0) == pytest.approx(widened, rel=0.15)


@pytest.mark.parametrize(
    ("noise", "missing", "wrong"),
    [(0.01, 0.44, True), (0.01, 0.40, False), (1e-5, 0.008, True), (1e-5, 0.006, False), (0.01, 0.0, False)],
)
def test_given_equations_that_miss_far_beyond_the_noise_then_the_rows_stay_unweighted(
    noise: float, missing: float, wrong: bool
) -> None:
    """Thirty times the noise, and two thousandths of the terms, which have a size of 3.5."""
    fit, *_ = linear_fit(noise=noise)
    fit.blocks[0].system.left += missing * np.sqrt(2) * np.sin(np.arange(400))  # type: ignore[attr-defined]
    fit.blocks[0].system.variance = noise**2 * 2  # type: ignore[attr-defined]
    assert fit.run(True, SILENT).model_error == wrong


def test_given_a_trial_point_then_the_linear_unknowns_are_solved_for_and_the_cost_is_what_is_left() -> None:
    fit, A, y = linear_fit(squared=(1,), start=(9.0, 1.5))
    cost, solved = fit._projected(np.array([[9.0, 1.5]]))
    rest = y - A[:, 1] * 2.25
    best = A[:, 0] @ rest / (A[:, 0] @ A[:, 0])
    left = rest - A[:, 0] * best
    assert solved == pytest.approx(np.array([[best, 1.5]]), rel=1e-6)
    assert cost * fit.scale[0] ** 2 == pytest.approx(left @ left, rel=1e-6)


def test_given_unknowns_that_are_not_linear_then_a_grid_between_their_bounds_is_scanned() -> None:
    fit, *_ = linear_fit(squared=(1,), upper=8.0, start=(1.0, 7.3))
    tried: list[float] = []
    inner = fit._projected

    def projected(values: np.ndarray) -> tuple[float, np.ndarray]:
        tried.append(float(values[0, 1]))
        return inner(values)

    fit._projected = projected  # type: ignore[method-assign]
    fit._scan(SILENT)
    grid = np.append(8.0 * (np.arange(400) + 0.5) / 400, 7.3)
    assert tried[:401] == pytest.approx(grid)  # on a hundred of the four hundred rows
    assert fit.blocks[0].system.every == [4]  # type: ignore[attr-defined]
    nearest = grid[np.argsort(np.abs(grid**2 - 9.0))]
    assert set(np.round(tried[401:], 9)) == set(np.round(nearest[:8], 9))  # then the best eight on all
    assert fit.values[0] == pytest.approx([2.0, 3.0], abs=0.02) and not fit.scanning
    both, *_ = linear_fit(squared=(0, 1), upper=8.0)
    count: list[int] = []
    both._projected = lambda values: (count.append(1) or 1.0, values)  # type: ignore[method-assign]
    both._scan(SILENT)
    assert len(count) == 21**2 + 8  # twenty along each, and the guess


def test_given_a_poor_end_then_a_scan_is_made_where_bounds_allow_one() -> None:
    fit, *_ = linear_fit(squared=(1,), upper=8.0)
    expected = fit._expected()
    assert expected == pytest.approx(400 * 0.01 / fit.scale[0] ** 2)
    assert not fit._astray(True, 19.9 * expected) and fit._astray(True, 20.1 * expected)
    assert fit._astray(False, 0.0)
    assert not linear_fit(squared=(1,))[0]._astray(False, 1e9)  # no bounds
    assert not linear_fit(upper=8.0)[0]._astray(False, 1e9)  # linear: nothing to scan
    assert fit._solved(np.array([0.5, 0.0]), np.ones(2)) is False
    straight, *_ = linear_fit(upper=8.0)
    assert straight._solved(np.array([0.5, 6.9]), np.ones(2))
    assert not straight._solved(np.array([0.5, 7.0]), np.ones(2))
    assert not straight._solved(np.array([-1.0, 0.0]), np.ones(2))


def test_given_a_covariance_that_is_nearly_singular_then_it_is_lifted() -> None:
    good = np.array([[4.0, 2.0], [5.0, 0.0]])
    L = np.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]))
    assert _factor(good.copy())[:, 0] == pytest.approx(np.diag(L))
    singular = np.array([[1.0, 1.0], [1.0, 0.0]])
    assert np.isfinite(_factor(singular)).all() and singular[0, 0] == pytest.approx(1.0 + 2e-6)


def test_given_no_stretch_at_all_then_that_is_said() -> None:
    with pytest.raises(DataError, match="too short"):
        fit_weak([], np.zeros(2), Unknowns([(0, -1)], 1), np.zeros(2), np.ones(2))


def descent(cost: float) -> Any:
    evaluation = SimpleNamespace(motions=[None], point="there", cost=cost)
    return SimpleNamespace(cost=cost, iterations=1, history=[cost], evaluation=evaluation)


def search_with(judgements: list[Evidence], best: float | None = None, work: float = 0.0) -> Search:
    problem = SimpleNamespace(
        stretches=[None], work=work, settle_substeps=lambda *_: None, evaluate=lambda point: point
    )
    found = Search(cast(Any, problem), np.ones(1))
    found.judge = lambda problem, descent: judgements.pop(0)  # type: ignore[method-assign,assignment]
    if best is not None:
        found.best = descent(best)
    return found


def test_given_an_unknown_without_effect_then_its_values_are_tried_until_one_is_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[Any] = []
    monkeypatch.setattr(search_module, "without_effect", lambda problem, here: [1, 4])
    monkeypatch.setattr(search_module, "scan", lambda problem, here, unknown: [(unknown, 0), (unknown, 1)])

    def minimise(problem: Any, here: Any, *_: Any, watch: Any) -> Any:
        tried.append(here)
        return descent(3.0)

    monkeypatch.setattr(search_module, "minimise", minimise)
    assert not _scanned(search_with([])) and tried == []  # no motion to scan from
    assert not _scanned(search_with([POOR] * 4, best=5.0))
    assert tried == [(1, 0), (1, 1), (4, 0), (4, 1)]
    tried.clear()
    found = search_with([POOR, POOR, GOOD], best=5.0)
    assert _scanned(found) and len(tried) == 3 and found.cost == 3.0


def interpolated(
    monkeypatch: pytest.MonkeyPatch,
    costs: dict[str, Any],
    anew: dict[str, Any],
    work: float = 0.0,
    **given: Any,
) -> tuple[str, float, list[str], list[str]]:
    """The reading that is kept, its cost, which were searched anew, and the trials, from a cost of 10."""
    searched: list[str] = []

    def experiment(conditions: Conditions) -> Any:
        return SimpleNamespace(
            conditions=conditions, given=None, records=None,
            model=SimpleNamespace(inputs=given.get("inputs", ("f",))),
        )  # fmt: skip

    def trial(found: Any, name: str) -> Search | None:
        if found is None:
            return None
        cost, judged = found
        one = search_with([], best=cost)
        one.judged, one.trials = judged, [Trial(name, cost, judged)]
        return one

    def search(other: Any, progress: Any) -> Any:
        searched.append(other.conditions.inputs)
        return trial(anew[other.conditions.inputs], "anew")

    monkeypatch.setattr(interpolation_module, "Experiment", lambda given, records, c: experiment(c))
    monkeypatch.setattr(
        interpolation_module, "_from_there", lambda other, *_: trial(costs[other.conditions.inputs], "refit")
    )
    begun = search_with([], best=10.0, work=work)
    begun.trials, begun.judged = [Trial("grow", 10.0, POOR)], given.get("judged", POOR)
    kept, best = other_interpolations(
        experiment(Conditions(inputs=given.get("said", "auto"))), begun,
        cast(Any, SimpleNamespace(search=search)), SILENT,
    )  # fmt: skip
    assert kept.conditions.denoise is (kept.conditions.inputs != "hold")
    return kept.conditions.inputs, best.cost, searched, [t.name for t in best.trials]


MUCH = 1e9  # work that was spent: a search anew would cost too much


def test_given_inputs_then_another_reading_is_kept_if_it_leaves_a_tenth_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    poor = {"hold": (20.0, POOR), "linear": (20.0, POOR)}
    found = interpolated(monkeypatch, {"hold": (8.9, POOR), "linear": (8.5, POOR)}, poor, MUCH)
    assert found == ("hold", 8.9, [], ["grow", "refit, inputs hold"])
    assert interpolated(monkeypatch, {"hold": (9.1, POOR), "linear": (9.1, GOOD)}, poor, MUCH)[:2] == (
        "auto",
        10.0,
    )
    assert interpolated(monkeypatch, {"hold": (8.9, POOR), "linear": (7.9, POOR)}, poor, MUCH)[0] == "linear"
    # a good one ends it
    assert interpolated(monkeypatch, {"hold": (8.9, GOOD), "linear": (1.0, POOR)}, poor, MUCH)[0] == "hold"
    assert interpolated(monkeypatch, {}, {}, said="cubic")[0] == "cubic"
    assert interpolated(monkeypatch, {}, {}, inputs=())[0] == "auto"


def test_given_a_poor_refit_then_the_search_is_made_anew_where_it_is_cheap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refits = {"hold": (9.5, POOR), "linear": (9.5, POOR)}
    better = {"hold": (2.0, GOOD), "linear": (9.9, POOR)}
    assert interpolated(monkeypatch, refits, better) == ("hold", 2.0, ["hold"], ["grow", "anew, inputs hold"])
    assert interpolated(monkeypatch, refits, better, MUCH)[:3] == ("auto", 10.0, [])
    worse = {"hold": (9.9, POOR), "linear": (9.9, POOR)}
    assert interpolated(monkeypatch, {"hold": (8.0, POOR), "linear": (9.9, POOR)}, worse)[:2] == ("hold", 8.0)
    lost = {"hold": None, "linear": (9.9, GOOD)}  # no motion from there: the search is all there is
    assert interpolated(monkeypatch, lost, better, MUCH)[:3] == ("hold", 2.0, ["hold"])
    good = {"hold": (9.5, GOOD), "linear": (9.5, GOOD)}
    assert interpolated(monkeypatch, good, better)[2] == []
