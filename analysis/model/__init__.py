"""The model: equations written once, used by everything."""

from __future__ import annotations


class Model:
    """Placeholder for the parsed model."""
