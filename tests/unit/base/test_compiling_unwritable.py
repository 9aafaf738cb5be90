"""Compiled functions where nothing may be written: they work, and nothing is kept."""

from __future__ import annotations

import pytest
from numba.core import caching

from analysis.base.compiling import njit


def test_given_no_folder_to_keep_code_in_then_the_function_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])

    @njit(cache=True)
    def double(x: float) -> float:
        return 2 * x

    assert double(1.5) == 3.0
