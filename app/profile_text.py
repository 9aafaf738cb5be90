"""Other values in the text of a profile, its comments and order kept where it is written line by line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from analysis import ShakedownError


def edited(
    text: str, channels: Mapping[str, Mapping[str, Any]], instruments: Mapping[str, Mapping[str, Any]]
) -> str:
    """The profile's text with other values of some channels and instruments."""
    import tomli_w

    wanted = tomllib.loads(text)
    names = [c["name"] for c in wanted["channels"]]
    lines = text.splitlines()
    heads = r"\s*\[\[channels\]\]\s*(#.*)?"
    for channel, values in channels.items():
        if channel not in names:
            raise ShakedownError(f"The profile has no channel '{channel}'.")
        number = names.index(channel)
        wanted["channels"][number].update(values)
        starts = [i for i, line in enumerate(lines) if re.fullmatch(heads, line)]
        if len(starts) == len(names):
            _put(lines, starts[number], values)
    for instrument, values in instruments.items():
        wanted["instruments"][instrument].update(values)
        for head in [i for i, line in enumerate(lines) if line.strip() == f"[instruments.{instrument}]"][:1]:
            _put(lines, head, values)
    by_lines = "\n".join(lines) + "\n"
    return by_lines if tomllib.loads(by_lines) == wanted else tomli_w.dumps(wanted)


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
        entry = tomli_w.dumps({name: value}).strip()
        for i in range(head + 1, end()):
            if re.match(rf"\s*{re.escape(name)}\s*=", lines[i]):
                comment = re.search(r"\s+#[^\"']*$", lines[i])
                lines[i] = entry + (comment[0] if comment else "")
                break
        else:
            lines.insert(end(), entry)
