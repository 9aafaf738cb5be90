"""Live identification on the running virtual rig."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from analysis.base.identification import Estimate, Identification
from app.desktop.pages.acquire import AcquirePage
from app.desktop.widgets.livepanel import how_much_longer
from app.desktop.window import MainWindow
from tests.waiting import LONG_MS as LONG

TRUTH = {"c": 0.035, "k1": -0.28, "k2": 0.178, "k3": 0.336, "k4": -0.064}


def test_given_a_running_rig_when_fitted_live_then_the_truth_is_found_and_enough_data_is_announced(
    window: MainWindow, qtbot: QtBot
) -> None:
    qtbot.waitUntil(lambda: window.bench.rig.drive().steady, timeout=LONG)
    page, said = window.page, list[str]()
    assert isinstance(page, AcquirePage)
    window.bench.noticed.connect(lambda notice: said.append(notice.text))
    panel = page.live_panel
    panel.precision.setValue(2.0)
    heard: list[tuple[Identification, float]] = []
    panel.fit.estimated.connect(lambda result, seconds: heard.append((result, seconds)))
    panel.start()
    qtbot.waitUntil(lambda: panel.enough, timeout=LONG)
    assert any("Enough data" in text for text in said)
    result = heard[-1][0]
    for name, truth in TRUTH.items():
        assert abs(result.parameters[name].value - truth) < 0.02 * abs(truth)
    before = len(heard)
    qtbot.waitUntil(lambda: len(heard) >= before + 3, timeout=LONG)  # it goes on
    assert heard[-1][1] > heard[0][1]
    panel.stop()
    assert not panel.fit.running


def test_given_a_rig_without_the_needed_channels_when_fitted_live_then_it_is_said_in_words(
    window: MainWindow, qtbot: QtBot
) -> None:
    page = window.page
    assert isinstance(page, AcquirePage)
    panel = page.live_panel
    text = panel._model_text()
    assert text is not None
    with qtbot.waitSignal(panel.fit.failed, timeout=LONG) as failed:
        panel.fit.start(text, window.bench.rig.rate, ["a", "b"])
    assert "lacks x, v, f" in failed.args[0]


def test_given_a_live_estimate_then_it_says_how_much_longer() -> None:
    result = Identification(
        "weak", "m", True, {"a": Estimate.normal(10.0, 0.2), "b": Estimate.normal(-2.0, 0.01)}
    )
    assert how_much_longer(result, 20.0, 0.01) == " 1 % in about 60 s more."
    assert how_much_longer(result, 20.0, 0.03) == ""
    vague = Identification("weak", "m", True, {"a": Estimate(10.0), "b": Estimate.normal(-2.0, 0.01)})
    assert how_much_longer(vague, 20.0, 0.01) == ""
