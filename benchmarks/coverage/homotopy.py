"""Homotopy: few sensors, poor guesses."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.coverage.core import Case

CASES: dict[str, Callable[[], Case]] = {}
