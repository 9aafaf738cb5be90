"""Ctrl-C is noted, and acted upon where it does no harm."""

from __future__ import annotations

import os
import signal

import pytest

from app.ctrl_c import CtrlC, check_noted


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_given_ctrl_c_then_nothing_happens_until_it_is_asked_for_and_then_once() -> None:
    before = signal.getsignal(signal.SIGINT)
    with CtrlC() as ctrl_c:
        assert ctrl_c.check() is False
        press()
        with pytest.raises(KeyboardInterrupt):
            ctrl_c.check()
        assert ctrl_c.check() is False
    assert signal.getsignal(signal.SIGINT) is before


def test_given_one_press_that_arrives_twice_then_it_counts_once() -> None:
    with CtrlC() as ctrl_c:
        press()
        press()
        with pytest.raises(KeyboardInterrupt):
            ctrl_c.check()
        assert ctrl_c.check() is False


def test_given_ctrl_c_again_after_waiting_then_it_interrupts_at_once() -> None:
    with CtrlC(patience=0.0):
        press()
        with pytest.raises(KeyboardInterrupt):
            press()


def test_given_ctrl_c_that_was_noted_then_who_was_not_given_it_can_ask_too() -> None:
    check_noted()  # nobody notes anything
    with CtrlC():
        check_noted()
        press()
        with pytest.raises(KeyboardInterrupt):
            check_noted()
