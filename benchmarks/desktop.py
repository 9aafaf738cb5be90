"""Does the window ever make its user wait? `python -m benchmarks desktop`, on a display of 1920 x 1080.

The real window streams 8 channels of 102.4 kS/s from the virtual rig's own process into the Acquire page and
records them, while identifications run one after the other in a worker. Meanwhile a thread knocks at the
event loop every 10 ms as a click would, and every stage is visited. Besides: the start, and 1e8 recorded
samples that are opened and zoomed into.

The times are wall clock: other work on the machine counts. The processor time of the window's thread does not
mind it and is told beside.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Measurement

RATE, CHANNELS = 102_400.0, 8
ANSWER, FRAME, FRAMES = 0.1, 0.017, 30.0  # s, processor s, a second: what is wanted
COLD, WARM, OPENING, ZOOM = 3.0, 1.5, 2.0, 0.1  # s
WIRES = ("x", "v", "f", "drive", "x", "v", "f", "drive")
RIG = """
name = "Eight fast channels"
rate = {rate}
settle = 0.0
model = "beam_on_shaker"
[drive]
kind = "sine"
amplitude = 1.5
frequency = 7.5
[limits]
amplitude = 4.0
slew = 2000.0
{channels}
[instruments.source]
driver = "virtual"
wiring = {{ {wiring} }}
[instruments.source.shaker]
gain = 0.16667
lag = 0.0005
travel = 2.0
[instruments.source.specimen]
model = "beam_on_shaker"
inputs = {{ f = "table" }}
[instruments.exciter]
driver = "virtual"
"""
START = """
import time, sys
begun = float(sys.argv[1])
from PyQt6.QtCore import QTimer
from PyQt6.QtWidgets import QApplication
from app.desktop import main
from app.desktop.window import MainWindow
def shown(window):
    def look():
        print(time.monotonic() - begun, time.process_time(), flush=True)
        import os
        os._exit(0)
    QTimer.singleShot(0, look)
MainWindow.begin = lambda self, files: shown(self)  # what comes after the first paint
main.start()
"""


def measure(quick: bool = False) -> list[Measurement]:
    """Starts, streaming, and a very long recording."""
    if not os.environ.get("DISPLAY"):
        raise RuntimeError("there is no display, and no Xvfb to make one.")
    with _own_folders() as folder:
        rows = _starts(3 if quick else 5)
        rows += _streaming(folder, 10.0 if quick else 60.0)
        rows += _long_recording(folder, 10**7 if quick else 10**8)
    return rows


def _row(work: str, seconds: float, wanted: float, note: str = "") -> Measurement:
    """A time beside the longest that is allowed."""
    return Measurement(work, "wanted at most", wanted, seconds, seconds <= wanted, note=note)


@contextlib.contextmanager
def _own_folders() -> Iterator[Path]:
    """Settings and recordings of the benchmark's own."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_DATA_HOME"] = folder
        yield Path(folder)


# -- the start


def _starts(repeats: int) -> list[Measurement]:
    cold = _start(forget=True)
    warm = sorted(_start() for _ in range(repeats))[repeats // 2]
    return [
        _row("start to the first window, cold", cold[0], COLD, f"{cold[1]:.2f} s of processor"),
        _row("start to the first window, warm", warm[0], WARM, f"{warm[1]:.2f} s of processor; median"),
    ]


def _start(forget: bool = False) -> tuple[float, float]:
    """Wall and processor seconds from the start of the process to the first paint."""
    if forget:
        _forget_files()
    command = [sys.executable, "-c", START, str(time.monotonic())]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(out[0]), float(out[1])


def _forget_files() -> None:
    """Ask the system to drop the program's files from its cache, as after switching on."""
    for root in {Path(sys.prefix) / "lib", Path(__file__).parents[1] / "app", Path(sys.base_prefix) / "lib"}:
        for path in root.rglob("*"):
            with contextlib.suppress(OSError):
                if path.is_file():
                    handle = os.open(path, os.O_RDONLY)
                    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
                    os.close(handle)


# -- streaming


def keep_identifying(path: Path, seconds: float, progress: Any) -> int:
    """Runs in a worker: one identification after the other until the time is over; how many."""
    from app.desktop.tasks import identify_record
    from drivers.formats import read
    from drivers.library import load_model

    record, text = read(path), load_model("beam_on_shaker").text
    mapping = {"x": "x", "v": "v", "f": "f"}
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        identify_record(text, record, mapping, "auto", {}, progress)
        count += 1
    return count


class Probe:
    """Knocks at the event loop from a thread, as a click would, and keeps how long each answer took."""

    def __init__(self) -> None:
        from PyQt6.QtCore import QObject, pyqtSignal

        class Bell(QObject):
            rung = pyqtSignal(float)

        self.answers: list[float] = []
        self.doing = "streaming"  # what the user does meanwhile
        self.work: list[tuple[float, str]] = []  # processor s of the window's thread between two answers
        self._last = time.thread_time()
        self._bell, self._over = Bell(), threading.Event()
        self._bell.rung.connect(self._open)
        self._thread = threading.Thread(target=self._knock, daemon=True)
        self._thread.start()

    def _open(self, moment: float) -> None:
        self.answers.append(time.monotonic() - moment)
        now = time.thread_time()
        self.work.append((now - self._last, self.doing))
        self._last = now

    def _knock(self) -> None:
        while not self._over.wait(0.01):
            self._bell.rung.emit(time.monotonic())

    def end(self) -> None:
        self._over.set()
        self._thread.join()


def _streaming(folder: Path, seconds: float) -> list[Measurement]:
    from PyQt6.QtWidgets import QApplication

    from app.desktop.main import build
    from app.desktop.pages import STAGES
    from app.desktop.pages.recordings import example_files
    from app.settings import Settings

    app = QApplication.instance() or QApplication(["benchmark"])
    rig = folder / "shakedown" / "rigs" / "fast.toml"
    rig.parent.mkdir(parents=True)
    rig.write_text(_profile(), encoding="utf-8")
    window = build(Settings(rig="fast", tour_done=True, theme="light"))
    window.resize(1920, 1080)
    window.show_page("acquire")
    window.show()
    window.begin([])
    bench = window.bench
    _until(lambda: bench.rig.running and bench.rig.drive().steady, 120)
    job = bench.workers.run("identifying", keep_identifying, example_files()[0], seconds + 30)
    _until(lambda: job.fraction > 0, 120)
    bench.rig.record("streamed")
    frames = 0

    def count() -> None:
        nonlocal frames
        frames += 1

    bench.feed.advanced.connect(count)
    _until(lambda: False, 1.0)  # what the start of the recording costs is over
    probe = Probe()
    frames, begin, work, whole = 0, time.monotonic(), time.thread_time(), time.process_time()
    _until(lambda: False, seconds)
    taken = time.monotonic() - begin
    cpu, all_cpu = (time.thread_time() - work) / max(frames, 1), (time.process_time() - whole) / taken
    rate = frames / taken
    clicks = {}
    for stage in [*STAGES, *STAGES]:  # the first visit builds the page
        before = time.monotonic()
        probe.doing = f"{'later' if stage.key in clicks else 'first'} visit of {stage.key}"
        window.show_page(stage.key)
        app.processEvents()
        clicks.setdefault(stage.key, []).append(time.monotonic() - before)
        _until(lambda: False, 0.5)
    probe.end()
    status = bench.rig.status()
    running = job.running
    bench.rig.stop_recording()
    _until(lambda: not bench.rig.recording, 120)
    window.close()
    answers = np.sort(probe.answers)
    first = max(clicks, key=lambda key: clicks[key][0])
    longest, doing = max(probe.work[1:])
    load = f"{CHANNELS} x {RATE / 1e3:g} kS/s streamed, drawn and recorded beside an identification"
    state = f"{status.gaps} gaps, {status.dropped} blocks not drawn, recorder {status.lag:.2f} s behind"
    return [
        _row(f"{load}: answer to a click, 99 of 100", float(np.quantile(answers, 0.99)), ANSWER, state),
        _row(f"{load}: slowest answer", float(answers[-1]), ANSWER, f"of {len(answers)}"),
        _row(f"{load}: longest work of the window's thread, processor", longest, ANSWER, doing),
        _row(f"{load}: processor time of a frame", cpu, FRAME, f"window's process {all_cpu:.2f} cores"),
        _row(
            f"{load}: time between frames",
            1 / max(rate, 1e-9),
            1.02 / FRAMES,
            f"{rate:.1f} frames a second" + ("" if running else "; the identification had ended"),
        ),
        _row("first visit of a stage, slowest", clicks[first][0], ANSWER, first),
        _row("later visit of a stage, slowest", max(c[1] for c in clicks.values()), ANSWER),
    ]


def _profile() -> str:
    names = [f"{wire}{'' if i < len(WIRES) // 2 else 2}" for i, wire in enumerate(WIRES)]
    channels = "\n".join(f'[[channels]]\nname = "{n}"\nrange = 5.0\nnoise = 0.0005' for n in names)
    wiring = ", ".join(f'{n} = "{w}"' for n, w in zip(names, WIRES, strict=True))
    return RIG.format(rate=RATE, channels=channels, wiring=wiring)


def _until(done: Callable[[], object], seconds: float) -> None:
    """Run the event loop until something is so, or the time is over."""
    from PyQt6.QtCore import QEventLoop, QTimer

    loop, end = QEventLoop(), time.monotonic() + seconds
    watch = QTimer()
    watch.timeout.connect(lambda: loop.quit() if done() or time.monotonic() > end else None)
    watch.start(50)
    loop.exec()
    watch.stop()


# -- a very long recording


def _long_recording(folder: Path, samples: int) -> list[Measurement]:
    from PyQt6.QtWidgets import QApplication

    from app.desktop.main import build
    from app.settings import Settings
    from benchmarks.recordings import Synthetic
    from drivers.recording.container import write_container

    app = QApplication.instance() or QApplication(["benchmark"])
    library = folder / "shakedown" / "recordings"
    library.mkdir(parents=True, exist_ok=True)
    path = library / "long.h5"
    write_container(Synthetic(samples, 1), path)
    window = build(Settings(tour_done=True, theme="light"))
    window.resize(1920, 1080)
    window.show_page("recordings")
    window.show()
    page: Any = window.page
    begin = time.monotonic()
    page.refresh(path)
    _until(lambda: page.recording is not None and page.current().path == path, 60)
    app.processEvents()
    opened = time.monotonic() - begin
    view, zooms = page.view, []
    middle, span = 0.37 * page.recording.duration, page.recording.duration
    while span > 100 / RATE:
        span *= 0.8
        before = time.monotonic()
        view.items[0].setXRange(max(0.0, middle - span / 2), middle + span / 2, padding=0)
        view.refine()
        app.processEvents()
        zooms.append(time.monotonic() - before)
    window.close()
    size = f"{samples:.0e} samples"
    return [
        _row(f"overview of {size}", opened, OPENING, "from the library's list to the picture"),
        _row(
            f"zoom in {size}, slowest of {len(zooms)}", max(zooms), ZOOM, f"median {np.median(zooms):.3f} s"
        ),
    ]
