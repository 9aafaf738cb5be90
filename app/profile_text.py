"""Other values in the text of a profile, its comments and order kept where it is written line by line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from analysis import ShakedownError

_CHANNEL = r"\s*\[\[channels\]\]\s*(#.*)?"  # the line that a channel's table begins with


def edited(
    text: str, channels: Mapping[str, Mapping[str, Any]], instruments: Mapping[str, Mapping[str, Any]]
) -> str:
    """The profile's text with other values of some channels and instruments."""
    import tomli_w

    wanted = tomllib.loads(text)
    names = [c["name"] for c in wanted["channels"]]
    lines = text.splitlines()
    for channel, values in channels.items():
        if channel not in names:
            raise ShakedownError(f"The profile has no channel '{channel}'.")
        number = names.index(channel)
        wanted["channels"][number].update(values)
        starts = [i for i, line in enumerate(lines) if re.fullmatch(_CHANNEL, line)]
        if len(starts) == len(names):
            _put(lines, starts[number], values)
    for instrument, values in instruments.items():
        wanted["instruments"][instrument].update(values)
        for head in [i for i, line in enumerate(lines) if line.strip() == f"[instruments.{instrument}]"][:1]:
            _put(lines, head, values)
    by_lines = "\n".join(lines) + "\n"
    return by_lines if tomllib.loads(by_lines) == wanted else tomli_w.dumps(wanted)


def rearranged(
    text: str, channels: Sequence[tuple[str, Mapping[str, Any]]], wiring: Mapping[str, Any]
) -> str:
    """The profile's text with other channels.

    ``channels``: for each the name of the one that it comes from (empty: a new one) and its whole table. A
    channel takes its own lines with it, and the comments right above it.
    """
    import tomli_w

    wanted = tomllib.loads(text)
    old = {table["name"]: table for table in wanted["channels"]}
    wanted["channels"] = [dict(table) for _, table in channels]
    wanted["instruments"]["source"]["wiring"] = dict(wiring)
    lines = text.splitlines()
    blocks = _channel_blocks(lines)
    if len(blocks) == len(old):
        copies = {name: lines[first:stop] for name, (first, stop) in zip(old, blocks, strict=True)}
        for first, stop in reversed(blocks):
            del lines[first:stop]
        lines[blocks[0][0] : blocks[0][0]] = [
            line
            for name, table in channels
            for line in _channel_lines(copies.get(name, ["[[channels]]", ""]), old.get(name, {}), table)
        ]
        for head in [i for i, line in enumerate(lines) if line.strip() == "[instruments.source]"][:1]:
            _put(lines, head, {"wiring": dict(wiring)})
    by_lines = "\n".join(lines) + "\n"
    try:
        same = tomllib.loads(by_lines) == wanted
    except tomllib.TOMLDecodeError:  # such as a wiring that goes over several lines
        same = False
    return by_lines if same else tomli_w.dumps(wanted)


def _channel_blocks(lines: list[str]) -> list[tuple[int, int]]:
    """First line and end of each channel's table, with the comments right above it."""
    heads = [i for i, line in enumerate(lines) if line.lstrip().startswith("[")]
    firsts = {}
    for head in heads:
        first = head
        while first > 0 and lines[first - 1].lstrip().startswith("#"):
            first -= 1
        firsts[head] = first
    ends = [firsts[head] for head in heads[1:]] + [len(lines)]
    return [
        (firsts[head], end)
        for head, end in zip(heads, ends, strict=True)
        if re.fullmatch(_CHANNEL, lines[head])
    ]


def _channel_lines(lines: list[str], old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The lines of a channel with other values, and a blank one behind them."""
    lines = [
        line
        for line in lines
        if not any(re.match(rf"\s*{re.escape(name)}\s*=", line) for name in old.keys() - new.keys())
    ]
    head = next(i for i, line in enumerate(lines) if re.fullmatch(_CHANNEL, line))
    _put(lines, head, {name: value for name, value in new.items() if old.get(name) != value})
    return lines if not lines[-1].strip() else [*lines, ""]


def _put(lines: list[str], head: int, values: Mapping[str, Any]) -> None:
    """Set values in the table that begins at a line; new ones go behind its last entry."""
    import tomli_w

    def end() -> int:
        following = (i for i in range(head + 1, len(lines)) if lines[i].lstrip().startswith("["))
        stop = next(following, len(lines))
        while not lines[stop - 1].strip():
            stop -= 1
        return stop

    for name, value in values.items():
        entry = (
            f"{name} = {_inline(value)}"
            if isinstance(value, Mapping)
            else tomli_w.dumps({name: value}).strip()
        )
        for i in range(head + 1, end()):
            if re.match(rf"\s*{re.escape(name)}\s*=", lines[i]):
                comment = re.search(r"\s+#[^\"']*$", lines[i])
                lines[i] = entry + (comment[0] if comment else "")
                break
        else:
            lines.insert(end(), entry)


def _inline(table: Mapping[str, Any]) -> str:
    """A table within one line."""
    import tomli_w

    return f"{{ {', '.join(tomli_w.dumps({name: value}).strip() for name, value in table.items())} }}"
