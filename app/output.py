"""What a command prints: tables, progress on a terminal, and JSON with stable keys.

Everything goes through :class:`PrintableStream`: what a file says, a terminal shows and never obeys.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

from analysis import Progress, ShakedownError, Step

# Control characters, marks that turn or hide text, and what is no character: all that a terminal would obey
# or a reader could be misled by. Line feed and tab are left to those who print tables.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
LONGEST_SENTENCE = 1000  # characters of an error that are shown


def visible(text: str) -> str:
    """The text with every unprintable character as an escape such as ``\\x1b``."""
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def printable(value: object) -> str:
    """What a file or an argument said, in one line."""
    return visible(" ".join(str(value).split()))


def sentence(error: object) -> str:
    """An error as one line of bearable length."""
    text = printable(error)
    return text if len(text) <= LONGEST_SENTENCE else text[: LONGEST_SENTENCE - 4] + " ..."


class PrintableStream:
    """A stream to a terminal or file that shows unprintable characters instead of sending them."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        shown = visible(text)
        coding = getattr(self.stream, "encoding", None)
        if coding and not coding.lower().startswith("utf"):
            shown = shown.encode(coding, "backslashreplace").decode(coding)
        return self.stream.write(shown)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def printable_streams() -> Iterator[None]:
    """Standard output and error that send no control characters, for as long as a command runs."""
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = PrintableStream(out), PrintableStream(err)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err


def rewrite_line(stream: TextIO, text: str) -> None:
    """Put the text in place of the terminal's last line."""
    terminal = stream.stream if isinstance(stream, PrintableStream) else stream
    terminal.write(f"\r\x1b[K{printable(text)}")
    terminal.flush()


FORCE = "write also over recordings, models and what the command reads"
FORCE_BUT_RECORDINGS = "write also over an older result; what a rig records never replaces a file"


def add_json_option(parser: argparse.ArgumentParser, force: str = FORCE) -> None:
    """Options of every command that gives a result."""
    parser.add_argument(
        "--json", metavar="FILE", help="write the result as JSON; - for standard output alone"
    )
    parser.add_argument("--force", action="store_true", help=force)


def write_json(target: str | None, payload: Any) -> bool:
    """Write the payload where --json asks; True if standard output now belongs to it."""
    if target is None:
        return False
    text = payload if isinstance(payload, str) else json.dumps(plain(payload), indent=1, allow_nan=False)
    if target == "-":
        sys.stdout.write(text + "\n")
        return True
    from drivers.base.files import replaced

    with replaced(target) as partial:
        partial.write_text(text + "\n", encoding="utf-8")
    return False


def tried(work: Callable[[], object], problems: list[str]) -> object:
    """What the work gives; where it fails its sentence joins ``problems``, and None.

    For the end of an experiment: one file that cannot be written must not cost what was measured.
    """
    try:
        return work()
    except ShakedownError as error:
        problems.append(str(error))
        return None


def show_problems(problems: Sequence[str]) -> None:
    """Each on a line of its own, where errors go."""
    for words in problems:
        sys.stderr.write(f"shakedown: {words}\n")


def plain(value: Any) -> Any:
    """Arrays, tuples and numbers of NumPy as JSON values; what is not a finite number becomes null."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def as_words(value: Any) -> str:
    """A cell of a table for people: yes or no, numbers short, a dash for what is not known."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return "; ".join(as_words(v) for v in value) or "–"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else printable(value)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns aligned for a terminal: numbers to the right, words to the left, a dash where there is none."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(c), *(len(r[i]) for r in cells)) if cells else len(c) for i, c in enumerate(columns)]
    numeric = [
        bool(rows) and all(isinstance(r[i], int | float | None) for r in rows) for i in range(len(columns))
    ]

    def line(values: Sequence[str]) -> str:
        parts = [v.rjust(w) if n else v.ljust(w) for v, w, n in zip(values, widths, numeric, strict=True)]
        return "  ".join(parts).rstrip()

    return "\n".join([line(list(columns)), line(["-" * w for w in widths]), *map(line, cells)])


def terminal_progress() -> Progress:
    """Progress as one line that rewrites itself, on a terminal only; standard output stays clean."""
    if not sys.stderr.isatty():
        return Progress()

    def show(step: Step) -> None:
        values = "  ".join(f"{k} {v:.4g}" for k, v in list(step.values.items())[:4])
        rewrite_line(sys.stderr, f"{100 * step.fraction:3.0f} %  {step.message}  {values}"[:160])
        if step.fraction >= 1:
            rewrite_line(sys.stderr, "")

    return Progress(on_step=show)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else printable(value)
