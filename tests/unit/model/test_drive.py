"""The drive of a model, read off its equations: in any unit, exact."""

import numpy as np
import pytest

from analysis.model import Model
from analysis.model.drive import drive_of
from drivers.library import load_model, model_files


def driven(text: str, **values: float) -> Model:
    return Model.from_equations({"x": "v", "v": f"-k*x + {text}"}, {"k": 1.0, **values})


@pytest.mark.parametrize("length", [1e-12, 1.0, 1e6])
@pytest.mark.parametrize("time", [4e-8, 1.0, 1e3])
def test_given_any_units_then_the_period_is_exact(length: float, time: float) -> None:
    model = driven("f*cos(w*t + 0.3)", f=length, w=1.33 / time)
    assert drive_of(model).period == pytest.approx(time * 2 * np.pi / 1.33, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "values", "period"),
    [
        ("f*sin(2*pi*n*t)", {"f": 1.0, "n": 5.0}, 0.2),
        ("cos(3*t) + sin(2*t)**2", {}, 2 * np.pi),
        ("cos(1.5*t)*cos(2*t)", {}, 4 * np.pi),
        ("cos(w*t/2 + x)", {"w": 3.0}, 4 * np.pi / 3),  # an angle that also holds a state
        ("sign(sin(t))*x", {}, 2 * np.pi),
        ("f*cos(t)", {"f": 0.0}, None),  # nothing drives
        ("cos(t) + cos(sqrt(2)*t)", {}, None),
        ("cos(t**2)", {}, None),
        ("t*cos(t)", {}, None),
        ("exp(-t)", {}, None),
        ("0", {}, None),
    ],
)
def test_given_a_drive_then_its_period_is_the_shortest(text: str, values: dict, period: float | None) -> None:
    found = drive_of(driven(text, **values)).period
    assert found is None if period is None else found == pytest.approx(period, rel=1e-12)


def test_given_equations_without_a_steady_drive_then_time_is_told_from_none() -> None:
    assert drive_of(driven("exp(-t)")).present and drive_of(driven("cos(t) + cos(sqrt(2)*t)")).present
    assert not drive_of(driven("f*cos(t)", f=0.0)).present
    implicit = Model.from_equations(
        {"x": "-z"},
        {"w": 2.0},
        definitions={"z": {"solve": "z + z**3 - cos(w*t)", "lower": -2.0, "upper": 2.0}},
    )
    assert drive_of(implicit).period == pytest.approx(np.pi)


def test_given_the_library_then_the_equations_repeat_after_the_period_and_not_after_part_of_it() -> None:
    for name in model_files():
        model = load_model(name)
        period, n = drive_of(model).period, len(model.states)
        if period is None:
            continue
        x, u, slope = np.linspace(0.31, 0.73, n), np.zeros(len(model.inputs)), np.empty((4, n))
        for row, t in enumerate((0.3 * period, 1.3 * period, 0.65 * period, 0.95 * period)):
            model.kernels().rhs(t, x, u, model.values(), slope[row])
        slope = slope[:, np.all(np.isfinite(slope), axis=0)]  # miura_ori has no such state
        assert slope[1] == pytest.approx(slope[0], rel=1e-9, abs=1e-9 * np.abs(slope).max()), name
        if slope.shape[1] == n:
            assert np.abs(slope[2:] - slope[0]).max() > 1e-6 * np.abs(slope).max(), name
