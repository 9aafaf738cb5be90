"""Reports: what was recorded and found, as self-contained HTML or PDF, with all it takes to repeat it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from analysis import SILENT, Progress
from drivers.base.files import replaced

if TYPE_CHECKING:
    from app.report.blocks import Document
    from app.report.findings import Findings
    from app.session import Session

__all__ = ["report_files", "write_document", "write_report"]

ENDINGS = (".html", ".pdf")


def write_report(
    source: Findings | Session | Path | str, path: Path | str, progress: Progress = SILENT
) -> list[Path]:
    """Write a report of findings, a session, a session folder or a single result.

    The name's ending chooses html or pdf; without one both are written. Gives the files.
    """
    from app.report.content import document
    from app.report.findings import Findings, gather, session_of

    if isinstance(source, Path | str):
        source = session_of(Path(source))
    if not isinstance(source, Findings):
        source = gather(source, progress.part(0.0, 0.7))
    progress.report(0.75, "Writing the report")
    written = write_document(document(source), path)
    progress.report(1.0, "Report written")
    return written


def write_document(document: Document, path: Path | str) -> list[Path]:
    """Write a document as html or pdf; if the name has no such ending, as both."""
    from app.report.html import write_html
    from app.report.pdf import write_pdf

    writers = {".html": write_html, ".pdf": write_pdf}
    targets = report_files(path)
    for target in targets:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replaced(target) as partial:
            writers[target.suffix.lower()](document, partial)
    return targets


def report_files(path: Path | str) -> list[Path]:
    """The files that a report of that name consists of."""
    path = Path(path)
    if path.suffix.lower() in ENDINGS:
        return [path]
    return [path.with_name(path.name + ending) for ending in ENDINGS]
