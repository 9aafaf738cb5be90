"""`shakedown replay`: play a recording as if it were a rig, and perhaps record it again."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from analysis import DataError
from app import project_names as names
from app.output import FORCE_BUT_RECORDINGS, add_json_option, sentence, terminal_progress, write_json


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=names.recording, help="a recording in any format that can be read")
    parser.add_argument("--speed", type=float, default=1.0, help="1 is real time")
    parser.add_argument("--fast", action="store_true", help="as fast as it can be read")
    parser.add_argument("--start", type=float, default=0.0, help="seconds to skip")
    parser.add_argument("--out", metavar="FILE", help="record what is played")
    add_json_option(parser, FORCE_BUT_RECORDINGS)


def run(args: argparse.Namespace) -> int:
    from drivers.acquisition.capture import recording_to
    from drivers.acquisition.engine import Engine
    from drivers.base.clock import InstantClock, RealClock
    from drivers.formats import open_lazily
    from drivers.instruments.replay import ReplaySource
    from drivers.recording.finishing import with_suffix

    if not args.speed > 0:
        raise DataError("The speed must be positive.")
    if args.out and (target := with_suffix(Path(args.out))).exists():
        raise DataError(
            f"{target} is already there: recordings are never overwritten, not even with --force."
        )
    recording = open_lazily(args.file)
    clock = InstantClock() if args.fast else RealClock(args.speed)
    source = ReplaySource(recording, Path(args.file).name, clock)
    engine = Engine(source)
    about = recording.about
    progress = terminal_progress()
    capture = None
    if args.out:
        capture = engine.record(recording_to(args.out, source, about.metadata, about.start))
    engine.start(held=True)
    if args.start > 0:
        source.seek(round(args.start * source.rate))
    try:
        left = (source.samples - source.position) / source.rate
        if left > 0:
            engine.advance(
                left, lambda part: progress.report(0.999 * part, f"{left * (1 - part):.1f} s left")
            )
    except KeyboardInterrupt:
        pass
    finally:
        progress.report(1.0, "done")
        engine.stop()
        source.close()
    status = engine.status
    result = {
        "file": args.file,
        "samples": status.samples,
        "seconds": status.samples / source.rate,
        "gaps": status.gaps,
        "overloads": status.overloads,
        "out": None if capture is None or not capture.finished else str(capture.finished[0].path),
        "problem": status.failure or None,
    }
    if not write_json(args.json, result):
        print(f"{result['samples']} samples, {result['seconds']:.2f} s, {result['gaps']} gaps"
              + (f", recorded to {result['out']}" if result["out"] else ""))  # fmt: skip
        if status.failure:
            print(f"shakedown: {sentence(status.failure)}", file=sys.stderr)
    return 1 if status.failure else 0
