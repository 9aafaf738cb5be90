"""Errors that a user may see: each is one clear sentence, never a traceback."""

from __future__ import annotations


class ShakedownError(Exception):
    """Something the user can act on. ``str(error)`` is the whole message, one sentence or two."""


class ModelError(ShakedownError):
    """A model text that cannot be understood; the message names file, line, column and the likely fix."""


class DataError(ShakedownError):
    """Data that cannot be read, or that do not support what was asked of them."""


class Cancelled(ShakedownError):
    """The user cancelled the work."""
