"""The control loop beside the limiter: limits, STOP and letting go, whatever the controller does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from drivers.base.clock import InstantClock
from drivers.base.protocols import InstrumentError, Modulated, status_of
from drivers.base.waveform import Sine
from drivers.rig.loop import ControlLoop
from drivers.rig.profile import Rig, load_rig, open_rig

STOP_SAMPLES = 19  # 100 ms at 187.5 Hz
LOOP = {"delay": 1.5 / 187.5, "jitter": 2e-4, "channels": True}


class Given:
    """A controller that gives out what it is told."""

    def __init__(
        self, gives: Callable[[int], float], bound: float = np.inf, channels: Sequence[str] = ("x",)
    ):
        self.channels, self.bound, self._gives, self.asked = channels, bound, gives, 0
        self.applied: list[float] = []
        self.shown, self.holding = 0.0, True

    def step(self, samples: NDArray[np.float64], phase: float, applied: float) -> float:
        self.applied.append(applied)
        self.asked += 1
        return self._gives(self.asked - 1)

    def adopt(self, other: object) -> None:
        pass


def _rig(**loop: float) -> Rig:
    profile = load_rig("two_well_beam")
    source = {**profile.instruments["source"], "loop": {**LOOP, **loop}}
    rig = open_rig(replace(profile, instruments={**profile.instruments, "source": source}), InstantClock(), 1)
    rig.source.start()
    rig.play()
    _read(rig, 150)
    return rig


def _read(rig: Rig, samples: int) -> dict[str, NDArray[np.float64]]:
    block = rig.source.read(np.empty((len(rig.source.channels), samples)))
    return {c.name: row for c, row in zip(rig.source.channels, block.data, strict=True)}


def _close(rig: Rig, controller: Given) -> None:
    assert isinstance(rig.exciter, Modulated)
    rig.exciter.control(controller)


wild = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(-1e3, 1e3),
    st.sampled_from([0.0, 1e308, -1e308, 3.9, -3.9]),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(wild, min_size=1, max_size=12), st.integers(1, 60), st.booleans())
def test_when_a_controller_goes_wild_then_the_limits_hold_and_stop_ends_the_drive(
    values: list[float], before: int, fast: bool
) -> None:
    rig = _rig(**({} if fast else {"missed": 0.3}))
    limits = rig.profile.limits
    player = rig.source._player  # type: ignore[attr-defined]
    out: list[NDArray[np.float64]] = []
    take = player.take
    player.take = lambda *args: out.append(take(*args)) or out[-1]
    _close(rig, Given(lambda i: values[i % len(values)]))
    _read(rig, before)
    rig.emergency_stop("STOP")
    _read(rig, STOP_SAMPLES)
    after = _read(rig, 10)
    samples = np.concatenate(out)
    assert np.isfinite(samples).all() and np.abs(samples).max() <= limits.peak
    assert np.abs(np.diff(samples)).max() <= limits.slew / player.rate * (1 + 1e-9)
    assert not np.any(samples[-10 * 2 * rig.source._plant.steps :])  # type: ignore[attr-defined]
    assert not rig.exciter.state().playing and not after["correction"].any()  # type: ignore[union-attr]


def test_when_a_controller_corrects_then_it_arrives_after_the_delay_and_is_recorded() -> None:
    rig = _rig(delay=3 / 187.5, jitter=0.0)
    before = rig.exciter.state()  # type: ignore[union-attr]
    controller = Given(lambda i: 0.25 * (i == 5))
    _close(rig, controller)
    got = _read(rig, 20)
    theta = before.phase + 2 * np.pi * before.frequency / rig.source.rate * np.arange(20)
    extra = got["drive"] - 1.5 * np.cos(theta)
    assert np.flatnonzero(np.abs(extra) > 0.1).tolist() == [8]  # sample 5 and three of delay
    assert controller.applied[6] == 0.25 and got["correction"][5] == 0.25
    assert got["loop"][0] == 2
    status = rig.exciter.loop_status()  # type: ignore[union-attr]
    assert status.delay == pytest.approx(3 / 187.5) and status.jitter < 1e-9


def test_when_the_stream_is_started_again_then_no_old_correction_comes_and_new_ones_do() -> None:
    rig = _rig()
    _close(rig, Given(lambda i: 0.3))
    _read(rig, 200)
    rig.source.stop()
    rig.source.start()
    before = rig.exciter.state()  # type: ignore[union-attr]
    theta = before.phase + 2 * np.pi * before.frequency / rig.source.rate * np.arange(40)
    left = np.abs(_read(rig, 40)["drive"] - 1.5 * np.cos(theta))
    assert left[:15].max() < 0.31 and left[15:].max() < 0.01  # let go softly
    _close(rig, Given(lambda i: 0.3))
    assert _read(rig, 40)["correction"][-1] == 0.3


@pytest.mark.parametrize(
    ("gives", "loop", "reason"),
    [
        (lambda i: 5.0, {}, "stayed at its bound"),
        (lambda i: np.nan if i > 3 else 0.1, {}, "gave no number"),
        (lambda i: 1 / (3 - i), {}, "controller failed (ZeroDivisionError"),
        (lambda i: 0.1, {"missed": 1.0}, "deadlines in a row"),
    ],
)
def test_when_the_loop_cannot_go_on_then_it_lets_go_softly_and_says_why(
    gives: Callable[[int], float], loop: dict[str, float], reason: str
) -> None:
    rig = _rig(**loop)
    _close(rig, Given(gives, bound=0.5))
    got = _read(rig, 80)
    status = rig.exciter.loop_status()  # type: ignore[union-attr]
    assert status.state == "open" and reason in status.reason
    assert rig.exciter.state().playing  # type: ignore[union-attr]
    assert np.abs(np.diff(got["correction"][10:])).max() <= 0.5 / (0.05 * 187.5) * 1.01  # over 50 ms
    assert got["correction"][-1] == 0.0


def test_when_samples_are_lost_then_the_controller_hears_and_the_loop_lets_go() -> None:
    from drivers.rig.loop import ControlLoop

    loop = ControlLoop(100.0, ["x"])
    loop.close(Given(lambda i: 0.1))
    for _ in range(5):
        assert loop.step(np.array([np.nan]), 0.0, 1.0, True) == 0.1
    for _ in range(3):
        loop.step(np.array([np.nan]), 0.0, 1.0, True)
    assert "samples in a row were lost" in loop.status().reason


def test_when_the_rig_cannot_close_a_loop_or_lacks_the_channel_then_one_sentence() -> None:
    profile = load_rig("two_well_beam")
    source = {k: v for k, v in profile.instruments["source"].items() if k != "loop"}
    without = open_rig(
        replace(profile, instruments={**profile.instruments, "source": source}), InstantClock()
    )
    with pytest.raises(InstrumentError, match="has no control loop"):
        without.exciter.control(Given(lambda i: 0.0))  # type: ignore[union-attr]
    with pytest.raises(InstrumentError, match="no channel 'strain'"):
        _close(_rig(), Given(lambda i: 0.0, channels=("strain",)))


def test_when_the_loop_makes_the_whole_drive_then_the_drive_is_told_with_it() -> None:
    """Who asks whether the output is zero must not be told so by a sine of no amplitude."""
    rig = _rig()
    exciter = rig.exciter
    assert exciter is not None
    exciter.play(Sine(0.0, 7.5))
    _read(rig, 300)
    _close(rig, Given(lambda i: 0.8 * np.sin(0.25 * i)))
    _read(rig, 60)
    for _ in range(25):  # at any phase of it, also where it passes zero
        _read(rig, 1)
        state = exciter.state()
        assert state.amplitude == 0.0 and 0.5 < state.correction < 0.81
    assert status_of(exciter).text.startswith("SINE 7.5 Hz 0.00 + loop 0.")
    exciter.request_stop("STOP")
    _read(rig, 3)
    assert exciter.state().level * exciter.state().correction > 0  # still falling
    _read(rig, STOP_SAMPLES)
    assert exciter.state().correction == 0.0


def test_when_a_drive_is_stopped_armed_and_played_again_then_the_controller_of_before_does_not_act() -> None:
    """Also if no sample was read in between: a controller that hung through all of it."""
    rig = _rig()
    exciter = rig.exciter
    assert exciter is not None
    old = Given(lambda i: 0.3)
    _close(rig, old)
    _read(rig, 40)
    asked = old.asked
    exciter.request_stop("STOP")
    rig.source._player.take(round(0.1 * rig.source._player.rate))  # type: ignore[attr-defined]
    exciter.arm()
    exciter.play(Sine(1.0, 7.5))
    got = _read(rig, 200)
    assert old.asked == asked and not got["correction"].any()
    assert exciter.loop_status().reason == "the drive was stopped"  # type: ignore[attr-defined]
    _close(rig, Given(lambda i: 0.2))
    assert _read(rig, 40)["correction"][-1] == 0.2


def test_when_a_drive_ends_while_a_controller_corrects_then_the_next_one_begins_without_its_correction() -> (
    None
):
    """As an NI rig asks its loop, for every sample: what was left to let go must not wait for a drive."""
    loop = ControlLoop(187.5, ["x"])
    loop.close(Given(lambda i: 0.4))
    samples = np.zeros(1)
    loop.went_out(loop.step(samples, 0.0, 1.0, True), 0.005)
    assert loop.step(samples, 0.1, 1.0, False) == 0.0
    loop.went_out(0.0, 0.005)
    assert [loop.step(samples, 0.2 + 0.1 * i, 1.0, True) for i in range(20)] == [0.0] * 20
    assert loop.status().reason == "the drive ended"
