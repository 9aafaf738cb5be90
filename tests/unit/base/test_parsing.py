"""Plain data from hostile text: data or a short phrase, never a long wait."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from analysis.base.parsing import parse_json, parse_toml, read_as


@dataclass(frozen=True)
class Inner:
    value: float
    unit: str = ""


@dataclass(frozen=True)
class Outer:
    name: str
    parts: dict[str, Inner]
    count: int = 0
    kind: Literal["a", "b"] = "a"
    rows: list[list[float]] = field(default_factory=list)
    note: str | None = None
    anything: Any = None


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 2000 + "]" * 2000,
        "a = " + "{b = " * 2000 + "1" + "}" * 2000,
        "[" + ".".join("a" * 5000) + "]",
        "[" + ".".join("a" * 200) + "]",
        "a = 1" + "0" * 5000,
        "a = 1979-02-30",
        "a = ",
        "\x00",
    ],
)
def test_given_hostile_toml_then_one_short_phrase(text: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError) as caught:
        parse_toml(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_given_dots_inside_of_quotes_then_they_are_no_key() -> None:
    assert parse_toml('a = "' + "." * 400 + '"') == {"a": "." * 400}


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 5000, "[" * 200 + "]" * 200, "", "nope", '{"a": 1']
)
def test_given_hostile_json_then_one_short_phrase(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_json(text)
    assert len(str(caught.value)) < 200


def test_given_integers_of_many_digits_then_they_become_real_numbers() -> None:
    data = parse_json('{"a": 1' + "0" * 400 + ', "b": -123456789012345678, "c": 1' + "0" * 5000 + "}")
    assert data == {"a": math.inf, "b": -123456789012345678, "c": math.inf}


def test_given_plain_data_of_the_right_types_then_they_are_read() -> None:
    data = {
        "name": "n", "parts": {"c": {"value": 1}, "k": {"value": None, "unit": "N"}}, "rows": [[1, None]],
        "kind": "b", "note": None, "anything": [{}],
    }  # fmt: skip
    read = read_as(Outer, data)
    assert read.parts["c"] == Inner(1.0)
    assert isinstance(read.parts["c"].value, float)
    assert math.isnan(read.parts["k"].value)
    assert math.isnan(read.rows[0][1])
    assert (read.kind, read.note, read.anything) == ("b", None, [{}])


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"name": 3}, "name is not a text"),
        ({"parts": []}, "parts is not a table"),
        ({"parts": {"c": 1}}, "parts.c is not a table"),
        ({"parts": {"c": {"value": "1"}}}, "parts.c.value is not a number"),
        ({"parts": {"c": {"value": True}}}, "parts.c.value is not a number"),
        ({"parts": {"c": {}}}, "'value' is missing in parts.c"),
        ({"count": 1.5}, "count is not a whole number"),
        ({"count": True}, "count is not a whole number"),
        ({"kind": "z"}, "kind is not one of a, b"),
        ({"kind": ["a"]}, "kind is not one of a, b"),
        ({"rows": [1]}, r"rows\[0\] is not a list"),
        ({"rows": {}}, "rows is not a list"),
        ({"more": 1}, "'more' is not known"),
    ],
)
def test_given_a_wrong_type_then_its_place_is_named(change: dict[str, Any], place: str) -> None:
    with pytest.raises(ValueError, match=place):
        read_as(Outer, {"name": "n", "parts": {}, **change})


def test_given_integers_beyond_64_bits_then_real_numbers_as_in_json() -> None:
    """Compiled code and arrays hold 64 bits: such a gain of a shaker ended in an error of the compiler."""
    digits = "9" * 22
    text = f"a = {digits}\nb = [-{digits}, 7]\n[c]\nd = {'1' + 400 * '0'}"
    assert parse_toml(text) == {"a": 1e22, "b": [-1e22, 7], "c": {"d": math.inf}}
    assert parse_json(f"[{digits}]") == [1e22]
    kept = parse_toml("a = 999999999999999999")["a"]
    assert kept == 10**18 - 1 and type(kept) is int
