"""Pictures of every page for the documentation: `python -m docs.screenshots [FOLDER] [--size 1280x720]`.

Runs the real window through the whole journey on the virtual two-well beam, so the pictures cannot show what
the program does not do. Each page is taken light and dark. The record is made faster than real time.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from PyQt6.QtWidgets import QApplication

SIZE = (1440, 860)
SECONDS = 60.0  # of the record
PATIENCE = 600.0  # s for one step of the journey: the machine may be busy
PICTURES = 5.0  # s for the jobs of one page to end


def make_record(folder: Path) -> Path:
    """A minute of the two-well beam, recorded as fast as the model can be integrated."""
    from drivers.acquisition.capture import recording_to
    from drivers.acquisition.engine import Engine
    from drivers.base.clock import InstantClock
    from drivers.rig.profile import load_rig, open_rig

    profile = load_rig("two_well_beam_modern")
    rig = open_rig(profile, InstantClock())
    engine = Engine(rig.source, rig.exciter)
    folder.mkdir(parents=True, exist_ok=True)
    rig.play()
    engine.start()
    engine.advance(profile.settle)
    metadata = {
        "rig": profile.key,
        "model": profile.model,
        "tags": ["chaos", "7.5 Hz"],
    }
    capture = engine.record(
        recording_to(folder / "two-well-chaos", engine.source, metadata),
        round(SECONDS * profile.rate),
    )
    engine.advance(SECONDS)
    capture.wait(PATIENCE)
    engine.stop()
    rig.close()
    return Path(capture.finished[0].path)


class Journey:
    """Drives the window and takes the pictures."""

    def __init__(self, folder: Path, size: tuple[int, int]) -> None:
        from app.desktop.main import build
        from app.settings import Settings

        self.folder = folder
        self.window = build(
            Settings(theme="light", tour_done=True, new_specimens=False)
        )
        self.window.resize(*size)
        self.window.show_page("acquire")
        self.window.show()

    def wait(self, until: Callable[[], object], after: float = 0.6) -> None:
        deadline = time.monotonic() + PATIENCE
        while not until():
            if time.monotonic() > deadline:
                raise SystemExit("The window did not get there in time.")
            self._breathe()
        rest = time.monotonic() + after
        while time.monotonic() < rest:
            self._breathe()

    def shoot(self, name: str) -> None:
        """The page as it is, light and dark."""
        for theme in ("light", "dark"):
            self.window.theme.choose(theme)
            self.shake()
            self.window.notice.hide()
            self.wait(lambda: True, after=0.8)
            self._rest()
            self.window.grab().save(str(self.folder / f"{name}-{theme}.png"))
        self.window.theme.choose("light")

    def _rest(self) -> None:
        """Until formulas are drawn in the other colour; a live fit always has a job."""
        latest = time.monotonic() + PICTURES
        self.wait(
            lambda: not self.window.bench.workers.jobs or time.monotonic() > latest,
            after=0.3,
        )

    def shake(self) -> None:
        """Start the drive if it stands still: a window that a busy machine keeps waiting stops it."""
        bench = self.window.bench
        if bench.rig.drive_status().latched:
            bench.rig.arm()
            self.wait(lambda: not bench.rig.drive_status().latched)
        if not bench.rig.drive().playing:
            bench.start_drive()
            self.wait(lambda: bench.rig.drive().steady)

    def shaking(self) -> bool:
        self.shake()
        return True

    def page(self, key: str) -> object:
        self.window.show_page(key)
        self.wait(lambda: True, after=0.3)
        return self.window.page

    def run(self, record: Path) -> None:
        bench = self.window.bench
        self.window.begin([])
        self.wait(lambda: bench.rig.running)
        self.shake()
        self.wait(lambda: self.shaking() and bench.feed.section.shape[1] > 80)
        self.shoot("acquire")
        panel = self.window.pages["acquire"].live_panel  # type: ignore[attr-defined]
        self.window.pages["acquire"].tabs.setCurrentIndex(2)  # type: ignore[attr-defined]
        self.shake()
        panel.start()
        self.wait(lambda: self.shaking() and panel.enough, after=8.0)
        self.shoot("live-fit")
        panel.stop()
        self.page("rig")
        self.shoot("rig")
        recordings = self.page("recordings")
        self.wait(lambda: recordings.current() is not None)  # type: ignore[attr-defined]
        self.shoot("recordings")
        bench.take_file(record)
        self.wait(lambda: bench.record is not None)
        for key in ("response", "embed", "orbits", "identify", "validate", "report"):
            page = self.page(key)
            if key == "identify":
                self.wait(lambda: bench.model is not None)
            if page.job is None:  # type: ignore[attr-defined]
                page.run()  # type: ignore[attr-defined]
            self.wait(lambda page=page: page.job is None)  # type: ignore[misc]
            self.shoot(key)
        self.window.close()

    def _breathe(self) -> None:
        QApplication.processEvents()
        time.sleep(0.005)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path(__file__).parent / "images"
    )
    parser.add_argument(
        "--size", default="x".join(map(str, SIZE)), help="of the window, in pixels"
    )
    args = parser.parse_args()
    width, height = (int(part) for part in args.size.split("x"))
    args.folder.mkdir(parents=True, exist_ok=True)
    app = QApplication(["screenshots"])
    with tempfile.TemporaryDirectory() as own:
        os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_DATA_HOME"] = own
        record = make_record(Path(own) / "shakedown" / "recordings")
        Journey(args.folder, (width, height)).run(record)
    app.quit()


if __name__ == "__main__":
    main()
