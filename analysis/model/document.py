"""A model file as TOML, with the line and column of every key and value for the error messages."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from typing import Any

from analysis.base.errors import ModelError
from analysis.base.parsing import parse_toml

MAX_CHARACTERS = 400_000
MAX_LINE = 20_000

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_VALUE = re.compile(r"[^,\]}#\n]*")


@dataclass
class Document:
    """What a model file says, and where it says it. Positions are character offsets by path of keys."""

    source: str
    text: str
    data: dict[str, Any]
    keys: dict[tuple[str, ...], int] = field(default_factory=dict)
    values: dict[tuple[str, ...], int] = field(default_factory=dict)
    verbatim: set[tuple[str, ...]] = field(default_factory=set)  # strings whose characters stand as they are
    spans: dict[tuple[str, ...], tuple[int, int]] = field(default_factory=dict)  # whole values, quotes too

    def error(self, message: str, path: tuple[str, ...] = (), offset: int | None = None) -> ModelError:
        """An error at a key, or at a character of the string value of that key."""
        place = self.source
        position = self.keys.get(path)
        if offset is not None and path in self.values:
            position = self.values[path] + (offset if path in self.verbatim else 0)
        if position is not None:
            line, column = self.line_and_column(position)
            place = f"{place}, line {line}, column {column}"
        elif path:
            place = f"{place}, {'.'.join(path)}"
        return ModelError(f"{place}: {message}" + ("" if message.endswith("?") else "."))

    def line_and_column(self, position: int) -> tuple[int, int]:
        before = self.text[:position]
        return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def read(text: str, source: str) -> Document:
    """Parse the text of a model file; ModelError names the line and column of what is not TOML."""
    if len(text) > MAX_CHARACTERS:
        raise ModelError(f"{source}: the text is too long for a model ({len(text)} characters).")
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_LINE:
            raise ModelError(
                f"{source}, line {number}: the line is too long for a model ({len(line)} characters)."
            )
    try:
        data = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(source, str(error)) from None
    document = Document(source, text, data)
    _Scanner(document).scan()
    return document


def _not_toml(source: str, message: str) -> ModelError:
    place = re.search(r" \((?:at line (\d+), column (\d+)|at end of document)\)$", message)
    where, what = source, message
    if place:
        what = message[: place.start()]
        where = f"{source}, line {place[1]}, column {place[2]}" if place[1] else f"{source}, at the end"
    hints = {
        "Cannot overwrite a value": "the same key is given twice",
        "Cannot declare": "the same table is opened twice: " + what,
        "Invalid value": 'the value is not understood; write expressions in quotes, as in x = "v"',
        "Invalid statement": "expected `name = value` or `[table]`",
        "Expected '=' after a key": "expected `name = value`; names hold letters, digits and `_` only",
    }
    for beginning, hint in hints.items():
        if what.startswith(beginning):
            what = hint
    return ModelError(f"{where}: {what.rstrip('.')}.")


class _Scanner:
    """Finds where keys and values stand in a text that is known to be valid TOML."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.text = document.text
        self.at = 0

    def scan(self) -> None:
        table: tuple[str, ...] = ()
        while True:
            self.skip(_BLANK)
            if self.at >= len(self.text):
                return
            start = self.at
            if self.text[self.at] == "[":
                double = self.text.startswith("[[", self.at)
                self.at += 2 if double else 1
                table = self.key()
                self.at += 2 if double else 1
                self.document.keys.setdefault(table, start)
            else:
                self.pair(table)

    def skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match.group()

    def key(self) -> tuple[str, ...]:
        parts: list[str] = []
        while True:
            self.skip(_SPACE)
            if self.text[self.at] in "\"'":
                start = self.at
                self.string()
                parts.append(self.text[start + 1 : self.at - 1])
            else:
                parts.append(self.skip(_BARE_KEY))
            self.skip(_SPACE)
            if not self.text.startswith(".", self.at):
                return tuple(parts)
            self.at += 1

    def pair(self, table: tuple[str, ...]) -> None:
        self.skip(_SPACE)
        start = self.at
        path = table + self.key()
        self.document.keys[path] = start
        self.at += 1  # the equals sign
        self.skip(_SPACE)
        self.value(path)

    def value(self, path: tuple[str, ...]) -> None:
        start = self.at
        self.document.values[path] = start
        first = self.text[start : start + 1]
        if first in ('"', "'"):
            inner = self.string()
            self.document.values[path] = inner
            if "\\" not in self.text[inner : self.at] or first == "'":
                self.document.verbatim.add(path)
        elif first == "{":
            self.at += 1
            while True:
                self.skip(_SPACE)
                if self.text[self.at] == "}":
                    break
                self.pair(path)
                self.skip(_SPACE)
                if self.text[self.at] == ",":
                    self.at += 1
            self.at += 1
        elif first == "[":
            self.array()
        else:
            self.skip(_BARE_VALUE)
        self.document.spans[path] = (start, start + len(self.text[start : self.at].rstrip()))

    def string(self) -> int:
        """Step over a string; gives the position of its first character."""
        quote = self.text[self.at]
        triple = self.text.startswith(quote * 3, self.at)
        ending = quote * (3 if triple else 1)
        start = self.at + len(ending)
        if triple and self.text.startswith("\n", start):
            start += 1
        self.at = start
        while not self.text.startswith(ending, self.at):
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += len(ending)
        while triple and self.text.startswith(
            quote, self.at
        ):  # up to two quotes may stand before the last three
            self.at += 1
        return start

    def array(self) -> None:
        """Step over an array; models have none, so nothing inside is remembered."""
        depth = 0
        while True:
            self.skip(_BLANK)
            character = self.text[self.at]
            if character in "\"'":
                self.string()
                continue
            depth += (character in "[{") - (character in "]}")
            self.at += 1
            if depth == 0:
                return
