"""Opening a rig or a recording to be replayed; may take seconds, so never in the window's thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from analysis import DataError
from app.project import Project
from app.settings import config_folder
from drivers.base.files import read_text
from drivers.base.protocols import Exciter, Source
from drivers.base.waveform import Waveform
from drivers.rig.profile import Rig, RigProfile

PATIENCE = 3.0  # s without a sign of life of the window after which the drive ramps down


@dataclass(frozen=True)
class OpenedRig:
    """Instruments that are ready to run."""

    name: str
    title: str
    source: Source
    exciter: Exciter | None
    close: Callable[[], object]
    tap: Callable[[float], object] | None = None
    profile: RigProfile | None = None
    rig: Rig | None = None  # as the drivers know it
    beat: Callable[[], object] | None = None  # sign of life of the window
    emergency: Callable[[], object] | None = None  # stops the drive without waiting for anything

    @property
    def virtual(self) -> bool:
        return self.profile is not None and self.profile.virtual

    @property
    def drive(self) -> Waveform | None:
        """The drive that the rig's own profile suggests."""
        return self.profile.drive if self.profile is not None else None


def rigs_folder() -> Path:
    """Where rig profiles made by the user live."""
    return config_folder() / "rigs"


def rig_paths() -> dict[str, Path]:
    """Every profile that can be chosen, by name: those that come with the program and the user's own."""
    from drivers.rig.profile import rig_files

    own = sorted(rigs_folder().glob("*.toml")) if rigs_folder().is_dir() else []
    return {**rig_files(), **{path.stem: path for path in own}}


def rig_of(project: Project) -> str:
    """The rig of a project: its own profile, or the known one of that name if it is the same."""
    own, known = project.rig_path, rig_paths().get(project.rig)
    if not own.is_file():
        return project.rig
    try:
        same = known is not None and read_text(known, "a rig profile") == read_text(own, "a rig profile")
    except DataError:  # said when it is opened
        same = False
    return project.rig if same else str(own)


def open_rig(
    name: str,
    specimen: int = 0,
    loop: bool = False,
    waiting: Callable[[str], object] = lambda what: None,
) -> OpenedRig:
    """A rig by its name, or by the path of its profile; its instruments live in a process of their own.

    ``specimen``: number of the one on a virtual rig, where these differ. ``loop``: with target, correction
    and state of its control loop among the channels. ``waiting`` hears what takes long; what it raises
    ends the opening.
    """
    from drivers.acquisition.guarded import open_guarded
    from drivers.rig.profile import load_rig
    from drivers.virtual.specimens import scatters, with_specimen

    profile = load_rig(rig_paths().get(name, name))
    if scatters(profile):
        profile = with_specimen(profile, specimen)
    if loop:
        from app.loop_rig import with_loop_channels

        profile = with_loop_channels(profile)
    rig = open_guarded(profile, patience=PATIENCE, waiting=waiting)
    return OpenedRig(
        name,
        rig.profile.name,
        rig.source,
        rig.exciter,
        rig.close,
        rig.specimen.tap if rig.specimen is not None else None,
        rig.profile,
        rig,
        rig.beat,
        rig.emergency_stop,
    )


def open_replay(path: Path) -> OpenedRig:
    """A recording as a rig that replays it at its own pace."""
    from drivers.formats import open_lazily
    from drivers.instruments.replay import ReplaySource

    recording = open_lazily(path)
    source = ReplaySource(recording, path.stem)

    def close() -> None:
        source.close()
        recording.close()

    return OpenedRig(path.stem, f"Replay of {path.stem}", source, None, close)
