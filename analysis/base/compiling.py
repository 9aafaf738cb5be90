"""Numba's ``njit``, whose results are kept on disk where that is possible.

A disk that is full, or a folder that nobody may write to, costs the time to compile again and nothing else.
"""

from __future__ import annotations

import contextlib
from typing import Any

from numba import njit
from numba.core import caching

__all__ = ["njit"]

_save = caching.Cache.save_overload


def _save_if_possible(self: Any, signature: Any, data: Any) -> None:
    with contextlib.suppress(OSError):
        _save(self, signature, data)


caching.Cache.save_overload = _save_if_possible  # type: ignore[method-assign]  # there is no setting for it
