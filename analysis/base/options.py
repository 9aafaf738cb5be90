"""Options of a method given as text, such as on the command line: ``name=value`` by the type of the field."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from analysis.base.errors import ShakedownError


def parse_options(options: type | Sequence[type], texts: Iterable[str]) -> dict[str, Any]:
    """Keyword arguments for the dataclass ``options`` (or several) from texts ``name=value``.

    Lists are separated by commas; a table is written ``name:value,name:value``; ``none`` is no value.
    """
    kinds = [options] if isinstance(options, type) else list(options)
    hints = {name: hint for kind in reversed(kinds) for name, hint in get_type_hints(kind).items()}
    known = [f.name for kind in kinds for f in fields(kind)]
    chosen = {}
    for text in texts:
        name, sign, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not sign or name not in known:
            raise ShakedownError(f"No option `{text}`: this method takes {', '.join(known)}, as name=value.")
        try:
            chosen[name] = _parsed(value.strip(), hints[name])
        except ValueError:
            raise ShakedownError(f"Option {name} cannot be `{value}`.") from None
    return chosen


def _parsed(text: str, kind: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        if text not in inner:
            raise ShakedownError(f"`{text}` is not one of {', '.join(map(str, inner))}.")
        return text
    if origin in (Union, types.UnionType):
        if text.lower() == "none" and type(None) in inner:
            return None
        return _parsed(text, next(k for k in inner if k is not type(None)))
    if origin in (tuple, list):
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return tuple(_parsed(part, inner[0]) for part in parts)
    if origin is not None and issubclass(origin, Mapping):
        pairs = [part.partition(":") for part in text.split(",") if part.strip()]
        return {key.strip(): _parsed(value.strip(), inner[1]) for key, _, value in pairs}
    if kind is bool:
        if text.lower() not in ("yes", "no", "true", "false", "on", "off", "1", "0"):
            raise ValueError(text)
        return text.lower() in ("yes", "true", "on", "1")
    if kind in (int, float):
        return kind(text)
    return text
