"""`shakedown report`: a session or a single result as self-contained HTML and PDF."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.output import add_json_option, terminal_progress, write_json


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", metavar="SESSION", help="a session folder, or a result of `identify --json`"
    )
    parser.add_argument(
        "--recording", action="append", default=[], metavar="FILE", help="what a single result was found from"
    )
    parser.add_argument("--out", metavar="FILE", help="name ending in .html or .pdf; without an ending both")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from app.overwriting import check_target
    from app.report import report_files, write_report
    from app.report.findings import session_of

    source = Path(args.source)
    session = session_of(source, [Path(r) for r in args.recording])
    beside = source / "report" if source.is_dir() else source.with_name(source.stem + "-report")
    target = Path(args.out) if args.out else beside
    for path in report_files(target):
        check_target(str(path), path.suffix.lower(), [source], args.force)
    written = write_report(session, target, terminal_progress())
    if not write_json(args.json, {"files": [str(p) for p in written]}):
        for path in written:
            print(path)
    return 0
