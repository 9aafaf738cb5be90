"""shakedown convert: change a recording's format, or cut a part out of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from analysis import DataError
from app import project_names as names
from app.output import add_json_option, terminal_progress, write_json
from app.reading import add_reading_options, pairs, reading_options
from drivers.formats import format_for_writing, not_kept, open_lazily, write
from drivers.recording import Part, Recording
from drivers.recording.lazy import MemoryRecording


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", type=names.recording, help="a recording in any format")
    parser.add_argument("output", help="the new file; its ending names the format")
    add_reading_options(parser)
    parser.add_argument(
        "--resample",
        type=float,
        metavar="HZ",
        help="interpolate onto uniform times at this rate (not lower), but not across holes",
    )
    parser.add_argument("--rename", action="append", default=[], metavar="OLD=NEW", help="a channel's name")
    parser.add_argument("--unit", action="append", default=[], metavar="NAME=UNIT", help="of a channel")
    parser.add_argument("--join", action="append", default=[], type=names.recording, metavar="FILE",
                        help="a further block of the same measurement, put behind the input")  # fmt: skip
    parser.add_argument("--channels", metavar="NAMES", help="only these, with commas between")
    parser.add_argument(
        "--from", dest="begin", type=float, metavar="S", default=0.0, help="seconds from the start"
    )
    parser.add_argument("--to", dest="end", type=float, metavar="S", help="seconds from the start")
    add_json_option(parser)


def run(args: argparse.Namespace) -> None:
    source, target = Path(args.input), Path(args.output)
    form = format_for_writing(target)
    if target.exists() and source.exists() and target.samefile(source):
        raise DataError(f"{target} is the input itself: it is never replaced.")
    with _whole(source, args) as whole:
        part = _part(whole, args)
        write(part, target)
        lost = not_kept(part, target)
        payload = {
            "file": str(target),
            "format": form.title,
            "rate": part.rate,
            "samples": len(part),
            "channels": list(part.names),
            "not_kept": lost or None,
        }
    if not write_json(args.json, payload):
        what = f"{len(part)} samples of {len(part.names)} channels at {part.rate:.10g} Hz"
        print(f"{target}: {form.title}, {what}")
    if lost:
        print(f"shakedown: {lost}", file=sys.stderr)


def _whole(source: Path, args: argparse.Namespace) -> Recording:
    """The input, piece by piece where nothing but its format changes; joined and relabelled in memory."""
    options = reading_options(args)
    if not (args.rename or args.unit or args.join):
        return open_lazily(source, options=options)
    from drivers.formats.relabelling import joined, relabelled

    records = []
    for path in (source, *map(Path, args.join)):
        with open_lazily(path, options=options) as recording:
            records.append(recording.read())
    return MemoryRecording(relabelled(joined(records), pairs(args.rename), pairs(args.unit)))


def _part(whole: Recording, args: argparse.Namespace) -> Recording:
    names: Sequence[str] = whole.names
    if args.channels is not None:
        names = [name.strip() for name in args.channels.split(",") if name.strip()]
    end = whole.duration if args.end is None else args.end
    if not 0 <= args.begin < end or args.begin >= whole.duration:
        raise DataError(
            f"There is nothing from {args.begin:g} to {end:g} s: the recording lasts {whole.duration:.6g} s."
        )
    start = round(args.begin * whole.rate)
    stop = min(round(min(end, whole.duration) * whole.rate), len(whole))
    return Part(whole, start, stop, names, terminal_progress())
