"""Drivers that do not take STOP, do not fall, cannot tell what they do: the second guard acts."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from drivers.acquisition import guard_process
from drivers.acquisition.messages import Links, Play, Request
from drivers.acquisition.second_guard import FALL_SECONDS, UNKNOWN_SECONDS, SecondGuard
from drivers.acquisition.server import NO_GUARD, RigServer, Watch
from drivers.base.drive_page import DrivePage, DriveStatus
from drivers.base.latch import Latch
from drivers.base.protocols import DriveState, InstrumentError
from drivers.base.waveform import Sine, Waveform
from drivers.rig.profile import Rig, RigError, load_rig


class Stubborn:
    """An exciter as somebody may write one."""

    unit = "V"

    def __init__(self, broken: str) -> None:
        self._broken = broken
        self.latch = Latch()
        self.closed = False

    def request_stop(self, reason: str) -> None:
        if self._broken == "request_stop":
            raise OSError("the instrument is busy")

    def state(self) -> DriveState:
        if self._broken == "state":
            raise OSError("the instrument is busy")
        return DriveState(0, True, "sine", 5.0, 1.5, 1.0)

    def zeroing(self) -> Any:
        told = {"zeroing": {"kind": "line", "port": 5000 * "x"}, "kind": {"kind": "by hand"}, "empty": {}}
        return told.get(self._broken, {"kind": "virtual"})

    def close(self) -> None:
        self.closed = True
        if self._broken == "close":
            raise OSError("the instrument is busy")


class Guard(SecondGuard):
    """One whose rig's process lives."""

    def _await_end_of_rig(self) -> None:
        return


@pytest.fixture
def page(tmp_path: Path) -> Iterator[DrivePage]:
    page = DrivePage.create(tmp_path / "a.drive", {"rig": "beam"})
    page.served = True
    yield page
    page.close()


def server_of(page: DrivePage, exciter: Stubborn) -> RigServer:
    server = RigServer(load_rig("two_well_beam"), Links(None, None, page.path), page, 0, None)
    server._exciter = exciter
    server.opened = True
    return server


def playing(at: float, state: str = "playing") -> DriveStatus:
    return DriveStatus(state, "sine", 5.0, 1.5, 1.0, "V", "STOP" if state != "playing" else "", at)


def test_given_a_driver_that_refuses_stop_then_it_stays_on_the_page_and_nothing_new_plays(
    page: DrivePage,
) -> None:
    exciter = Stubborn("request_stop")
    server = server_of(page, exciter)
    page.request_stop("STOP by hand")
    Watch(server, page, 1.0)._obey_stop()
    assert page.stop_requested and exciter.latch.reason == "STOP by hand"
    assert page.stops == 1
    Watch(server, page, 1.0)._obey_stop()
    assert page.stops == 1  # still the same STOP

    willing = server_of(page, Stubborn(""))
    Watch(willing, page, 1.0)._obey_stop()
    assert not page.stop_requested
    refusing = server_of(page, Stubborn("request_stop"))
    assert not refusing.stop_drive("x reached 3 mm", "trip")
    assert page.stop_requested and page.stop_word == "x reached 3 mm"  # a trip ends there too


def test_given_a_driver_that_cannot_tell_its_state_then_the_drive_is_stopped(page: DrivePage) -> None:
    exciter = Stubborn("state")
    server_of(page, exciter)._publish()
    assert "cannot tell the state of its drive (OSError: the instrument is busy)" in exciter.latch.reason


def test_given_an_output_that_does_not_fall_after_stop_then_the_guard_acts(page: DrivePage) -> None:
    guard, begin = Guard(page), 100.0
    page.output = 1.5

    def looked(after: float, state: str) -> str:
        guard._looked = begin + after - 0.01
        page.rig_beat = begin + after
        page.publish(playing(begin + after, state))
        return guard._reason(begin + after)

    assert looked(0.0, "playing") == looked(0.1, "latched") == ""
    assert looked(0.05 + FALL_SECONDS, "latched") == ""
    assert looked(0.15 + FALL_SECONDS, "latched") == "STOP; the output did not fall"
    assert looked(5.0, "playing") == ""  # armed and played again: counted anew
    assert looked(5.1, "latched") == ""
    page.output = 0.0
    assert looked(9.0, "latched") == ""


def test_given_a_drive_of_which_nobody_tells_then_the_guard_acts(page: DrivePage) -> None:
    guard = Guard(page)
    page.output = 1.5
    page.publish(playing(100.0))
    for after, words in ((UNKNOWN_SECONDS - 0.1, ""), (UNKNOWN_SECONDS + 0.1, "did not tell the state")):
        guard._looked = page.rig_beat = 100.0 + after
        assert words in guard._reason(100.0 + after)
        assert bool(words) == bool(guard._reason(100.0 + after))


@pytest.mark.parametrize(
    ("broken", "words"), [("zeroing", "4000 at most"), ("kind", "nobody knows"), ("empty", "nobody knows")]
)
def test_given_a_driver_whose_output_nobody_could_set_to_zero_then_the_rig_is_not_opened(
    page: DrivePage, broken: str, words: str
) -> None:
    exciter = Stubborn(broken)
    rig = Rig(load_rig("two_well_beam"), SimpleNamespace(close=lambda: None), exciter)  # type: ignore[arg-type]
    with pytest.raises(Exception, match=f"does not say how the output is set to zero .*{words}"):
        server_of(page, exciter)._guard_output(rig)
    assert exciter.closed and page.outputs == []


class Slow(Stubborn):
    """It takes 30 ms until it plays."""

    played, ended = 0, ""

    def play(self, waveform: Waveform) -> None:
        time.sleep(0.03)
        self.played += 1

    def stop(self, reason: str) -> None:
        self.ended = reason


@pytest.mark.parametrize(("left", "played"), [(60.0, 1), (0.01, 1), (-0.01, 0)])
def test_given_a_drive_whose_caller_has_given_up_then_it_is_not_begun_or_ended(
    page: DrivePage, left: float, played: int
) -> None:
    exciter = Slow("")
    server = server_of(page, exciter)
    server._rig = Rig(load_rig("two_well_beam"), SimpleNamespace(close=lambda: None), exciter)  # type: ignore[arg-type]
    request = Request(1, Play(Sine(1.0, 5.0)), time.monotonic() + left)
    if left > 1:
        server._do_in_time(request)
    else:
        with pytest.raises(InstrumentError, match="had given it up"):
            server._do_in_time(request)
    assert exciter.played == played
    assert bool(exciter.ended) == (played == 1 and left < 1)


def test_given_a_second_guard_that_does_not_start_then_the_person_at_the_rig_is_told(
    page: DrivePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard_process, "_BOOT", "raise SystemExit(1)")
    monkeypatch.setattr(guard_process, "READY_SECONDS", 0.1)
    exciter = Stubborn("")
    rig = Rig(load_rig("two_well_beam"), SimpleNamespace(close=lambda: None), exciter)  # type: ignore[arg-type]
    server = server_of(page, exciter)
    server._guard_output(rig)
    assert rig.notices == [NO_GUARD]
    process = server._guard._process if server._guard is not None else None
    assert process is not None and process.stdin is not None and process.wait(30) == 1
    process.stdin.close()


def test_given_a_second_guard_that_cannot_be_started_again_then_the_drive_is_stopped_and_told_of(
    page: DrivePage,
) -> None:
    def refused() -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    exciter = Stubborn("")
    server = server_of(page, exciter)
    server._guard = SimpleNamespace(keep_alive=refused)  # type: ignore[assignment]
    server._keep_guard()
    server._publish()
    assert exciter.latch.reason == "the second guard cannot be started (Resource temporarily unavailable)"
    assert page.status.state == "tripped"


def test_given_an_instrument_that_fails_to_close_then_the_others_are_and_the_guard_has_the_drive(
    page: DrivePage,
) -> None:
    exciter, closed = Stubborn("close"), []
    source: Any = SimpleNamespace(close=lambda: closed.append("source"))
    rig = Rig(load_rig("two_well_beam"), source, exciter)  # type: ignore[arg-type]
    with pytest.raises(RigError, match=r"did not close \(OSError: the instrument is busy\)"):
        rig.close()
    assert closed == ["source"]
    server = server_of(page, exciter)
    server._rig = rig
    server._close_rig()
    assert server._out_of_reach
