"""`shakedown report`: a session or a single result as self-contained HTML and PDF."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from app import project_names as names
from app.output import add_json_option, terminal_progress, write_json
from app.report.findings import PARTS, Findings


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="SESSION",
        nargs="?",
        type=names.fit,
        help="a session folder, a project, or a result of `identify --json` (default: the project we are in)",
    )
    parser.add_argument(
        "--recording",
        action="append",
        default=[],
        type=names.recording,
        metavar="FILE",
        help="what a single result was found from",
    )
    parser.add_argument("--out", metavar="FILE", help="name ending in .html or .pdf; without an ending both")
    parser.add_argument("--title", help="of the report, instead of the session's own")
    parser.add_argument("--author", help="who did it")
    parser.add_argument(
        "--template",
        metavar="NAME",
        help="parts, title, logo and words of a template: its name, or its file; other options go before it",
    )
    parser.add_argument("--logo", metavar="FILE", help="a PNG or JPEG picture above the title")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=list(PARTS),
        help="leave a part out, which the report then says; may be given several times",
    )
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from app.commands.project import project_at
    from app.overwriting import check_target
    from app.report import report_files, write_report
    from app.report.findings import gather, session_of
    from app.report.logo import read_logo
    from app.report.templates import Template, load

    source = Path(args.source) if args.source else project_at(None).folder
    session = session_of(source, [Path(r) for r in args.recording])
    target = Path(args.out) if args.out else _beside(source)
    for path in report_files(target):
        check_target(str(path), path.suffix.lower(), [source], args.force)
    common = load(args.template) if args.template else Template()
    logo_file = args.logo or common.logo
    logo = read_logo(logo_file) if logo_file else b""
    progress = terminal_progress()
    findings = gather(session, progress.part(0.0, 0.7))
    findings = replace(
        findings,
        title=args.title or common.title_for(_recording(findings), project_name(source)) or findings.title,
        author=common.author if args.author is None else args.author,
        notes="\n".join(filter(None, (common.notes, findings.notes))),
        logo=logo,
        left_out=frozenset((*args.without, *common.without)),
    )
    written = write_report(findings, target, progress.part(0.7, 1.0))
    if not write_json(args.json, {"files": [str(p) for p in written]}):
        for path in written:
            print(path)
    return 0


def _recording(findings: Findings) -> str:
    """What a title calls the recording: the name of the first one."""
    return Path(findings.recordings[0].name).stem if findings.recordings else ""


def project_name(source: Path) -> str:
    """The title of the project that is reported of; empty where it is none."""
    from app import project as projects

    return projects.load(source).name if (source / projects.NAME).is_file() else ""


def _beside(source: Path) -> Path:
    """Where a report goes that nobody gave a name."""
    from app.project import NAME

    if (source / NAME).is_file():
        return source / "reports" / source.name
    if (folder := source.resolve().parent.parent) and (folder / NAME).is_file() and source.is_file():
        return folder / "reports" / source.stem
    return source / "report" if source.is_dir() else source.with_name(source.stem + "-report")
