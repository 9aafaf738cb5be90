"""The system's locale as Qt knows it, also where the window's packages are not installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PyQt6.QtCore import QLocale


def system_locale() -> QLocale | None:
    """The locale in use; None (points and ISO dates) where the extra ``desktop`` is not installed."""
    if find_spec("PyQt6") is None:
        return None
    from PyQt6.QtCore import QLocale

    return QLocale()
