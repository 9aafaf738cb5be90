"""No sequence of calls, however wild, gets past the limits: property-based."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.base.errors import ShakedownError
from drivers.base.limits import STOP_RAMP, Limiter, Limits
from drivers.base.waveform import (
    BurstRandom,
    Multisine,
    RandomNoise,
    Sine,
    SteppedSine,
    Sweep,
    UserWaveform,
    Waveform,
)
from drivers.rig.player import Player

RATE = 1000.0
LIMITS = Limits(4.0, 1.0, 150.0, slew=1500.0, displacement=6.0, travel=2.0)  # 3 V by displacement

number = st.one_of(st.floats(-20, 20), st.sampled_from([0.0, 3.0, 4.0, np.nan, np.inf, -np.inf, 1e300]))
frequency = st.one_of(st.floats(-10, 600), st.sampled_from([1.0, 7.5, 150.0, np.nan, np.inf]))
seconds = st.floats(0.001, 3.0)
waveform = st.one_of(
    st.builds(Sine, number, frequency, st.floats(-10, 10)),
    st.builds(lambda a, f, d: SteppedSine(a, tuple(f), d), number, st.lists(frequency, min_size=1), seconds),
    st.builds(Sweep, number, st.floats(0.1, 300), st.floats(0.1, 300), seconds, st.booleans()),
    st.builds(Multisine, number, st.floats(1, 100), st.floats(106, 200), st.floats(0.5, 5)),  # holds a line
    st.builds(RandomNoise, number, st.floats(0, 50), st.floats(51, 200)),
    st.builds(BurstRandom, number, st.floats(0, 50), st.floats(51, 200), seconds),
    st.builds(UserWaveform, number, st.just((0.0, 1.0, -1.0, 0.3)), st.floats(1, 2000)),
)
call = st.one_of(
    st.tuples(st.just("play"), waveform),
    st.tuples(st.just("change"), st.tuples(st.none() | frequency, st.none() | number)),
    st.tuples(st.just("stop"), st.none()),
    st.tuples(st.just("take"), st.integers(0, 700)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(call, max_size=25))
def test_given_any_sequence_of_calls_then_no_sample_exceeds_a_limit(calls: list[tuple[str, object]]) -> None:
    player = Player(LIMITS, RATE)
    out = [np.zeros(1)]
    for name, argument in calls:
        with contextlib.suppress(ShakedownError):
            if name == "play":
                player.play(argument)  # type: ignore[arg-type]
            elif name == "change":
                player.change(*argument)  # type: ignore[misc]
            elif name == "stop":
                player.stop()
            else:
                out.append(player.take(argument))  # type: ignore[arg-type]
    player.stop()
    tail = player.take(100)  # 100 ms
    samples = np.concatenate([*out, tail])
    assert np.isfinite(samples).all()
    assert np.abs(samples).max() <= 3.0 + 1e-12
    assert np.abs(np.diff(samples)).max(initial=0.0) * RATE <= LIMITS.slew * (1 + 1e-9)
    assert tail[-1] == 0.0 and not tail[int(2 * STOP_RAMP * RATE) + 1 :].any()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(number, max_size=40), max_size=8))
def test_given_any_samples_then_the_limiter_holds_amplitude_and_slew(pieces: list[list[float]]) -> None:
    limiter = Limiter(LIMITS, RATE)
    out = np.concatenate([np.zeros(1), *[limiter(np.array(p, dtype=float)) for p in pieces]])
    assert np.isfinite(out).all() and np.abs(out).max() <= 3.0
    assert np.abs(np.diff(out)).max(initial=0.0) <= LIMITS.slew / RATE * (1 + 1e-9)


@pytest.mark.parametrize(
    "drive",
    [
        Sine(2.0, 40.0, 0.3),
        SteppedSine(2.0, (20.0, 31.0), 0.07),
        Sweep(2.0, 5.0, 100.0, 1.0),
        Multisine(2.0, 10.0, 60.0, 2.5),
        UserWaveform(0.5, tuple(np.sin(0.4 * np.pi * np.arange(50)) ** 3), 100.0),
    ],
    ids=lambda w: w.kind,
)
def test_given_stop_in_samples_already_given_out_then_they_fall_as_if_it_had_come_in_time(
    drive: Waveform,
) -> None:
    """The player that was stopped at that very sample is the truth."""
    ahead, in_time = Player(LIMITS, RATE), Player(LIMITS, RATE)
    for player in (ahead, in_time):
        player.play(drive)
    first = ahead.take(137)
    mark = ahead.mark()
    ahead.take(41)
    reached = ahead.mark()
    expected = np.concatenate([in_time.take(137), in_time.take(19)])
    np.testing.assert_array_equal(first, expected[:137])
    ahead.request_stop("STOP")
    in_time.request_stop("STOP")
    state, replaced = ahead.fall_from(mark, 19, 22)
    assert (state.index, state.reason) == (156, "STOP") and state.level == in_time.state().level
    np.testing.assert_allclose(replaced, in_time.take(22), atol=1e-12)
    np.testing.assert_allclose(ahead.take(60), in_time.take(60), atol=1e-12)
    assert not ahead.state().playing
    ahead.return_to(reached)  # the device would not have them: they follow behind
    assert ahead.state().playing and ahead.state().index == 178
    assert np.abs(ahead.take(100)[50:]).max() == 0.0
