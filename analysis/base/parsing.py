"""Text from outside as plain data: the one place that reads TOML and JSON.

Whatever the text holds, the answer is data or a ValueError in one short phrase: nesting that would exhaust
the stack, numbers with thousands of digits and keys with thousands of dots are refused before they cost time.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

MAX_TOML = 4_000_000  # characters
MAX_DOTS = 300  # outside of quotes, in a line: reading a dotted key takes time with the square of its length
MAX_NESTING = 100  # tables and lists within each other; the parsers of Python recurse once for each
LONGEST_INTEGER = 18  # digits of an integer that every later step can hold; longer ones become real numbers

_QUOTED = re.compile(r'"[^"]*"|\'[^\']*\'')


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text; tomllib.TOMLDecodeError says what is wrong with it."""
    if len(text) > MAX_TOML:
        raise tomllib.TOMLDecodeError(f"The text is too long ({len(text)} characters)")
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > MAX_DOTS and _QUOTED.sub("", line).partition("#")[0].count(".") > MAX_DOTS:
            raise tomllib.TOMLDecodeError(f"A key has too many dots (at line {number}, column 1)")
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError("Values are nested too deeply") from None
    except ValueError as error:  # such as an integer with thousands of digits, or the 30th of February
        raise tomllib.TOMLDecodeError(str(error).split(";")[0]) from None
    if _nested_deeper_than(tables, MAX_NESTING):
        raise tomllib.TOMLDecodeError("Values are nested too deeply")
    read: dict[str, Any] = _shortened(tables)
    return read


def parse_json(text: str) -> Any:
    """The data of a JSON text; ValueError says what is wrong with it."""
    try:
        data = json.loads(text, parse_int=_integer)
    except RecursionError:
        raise ValueError("values are nested too deeply") from None
    if _nested_deeper_than(data, MAX_NESTING):
        raise ValueError("values are nested too deeply")
    return data


def read_as(kind: type[T], value: Any, where: str = "") -> T:
    """Plain data as the type that an annotation asks for; ValueError names the place that is of another.

    Dataclasses are read from tables by their fields' names. ``null`` stands for a real number that is none.
    """
    read: T = _read(kind, value, where)
    return read


def _read(kind: Any, value: Any, where: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if kind is float:
        return _real(value, where)
    if kind in (int, str, bool):
        if type(value) is not kind:
            raise ValueError(f"{where} is not {_NAMES[kind]}")
        return value
    if is_dataclass(kind):
        return _dataclass(kind, value, where)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        return _read(next(k for k in inner if k is not type(None)), value, where)
    if origin is Literal:
        if value not in inner:
            raise ValueError(f"{where} is not one of {', '.join(map(str, inner))}")
        return value
    if origin in (list, tuple):
        if not isinstance(value, list):
            raise ValueError(f"{where} is not a list")
        return origin(_read(inner[0], v, f"{where}[{i}]") for i, v in enumerate(value))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            raise ValueError(f"{where} is not a table")
        return {k: _read(inner[1], v, f"{where}.{k}".lstrip(".")) for k, v in value.items()}
    raise TypeError(f"no plain data are read as {kind}")


_NAMES = {int: "a whole number", str: "a text", bool: "true or false"}


def _real(value: Any, where: str) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{where} is not a number")
    return float(value)


def _dataclass(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{where or 'it'} is not a table")
    hints = get_type_hints(kind)
    known = {f.name: f for f in fields(kind) if f.init}
    for name in value:
        if name not in known:
            raise ValueError(f"'{name[:40]}' is not known{f' in {where}' if where else ''}")
    for name, field in known.items():
        if field.default is MISSING and field.default_factory is MISSING and name not in value:
            raise ValueError(f"'{name}' is missing{f' in {where}' if where else ''}")
    return kind(**{n: _read(hints[n], v, f"{where}.{n}".lstrip(".")) for n, v in value.items()})


def _integer(text: str) -> int | float:
    return int(text) if len(text.lstrip("-")) <= LONGEST_INTEGER else float(text)


def _shortened(data: Any) -> Any:
    """The same with long integers as real numbers, as those of a JSON text are."""
    if isinstance(data, dict):
        return {key: _shortened(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_shortened(value) for value in data]
    if type(data) is int and abs(data) >= 10**LONGEST_INTEGER:
        return _integer(str(data))
    return data


def _nested_deeper_than(data: Any, limit: int) -> bool:
    level = [data]
    for _ in range(limit):
        inner = (v.values() if isinstance(v, dict) else v for v in level if isinstance(v, dict | list))
        level = [v for values in inner for v in values if isinstance(v, dict | list)]
        if not level:
            return False
    return True
