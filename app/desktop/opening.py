"""Opening a rig or a recording to be replayed; may take seconds, so never in the window's thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.desktop.settings import config_folder
from drivers.protocols import Exciter, SensorController, Source
from drivers.rig import RigProfile
from drivers.waveform import Waveform


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
    controllers: dict[str, SensorController] | None = None

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
    from drivers.rig import rig_files

    own = sorted(rigs_folder().glob("*.toml")) if rigs_folder().is_dir() else []
    return {**rig_files(), **{path.stem: path for path in own}}


def open_rig(name: str) -> OpenedRig:
    """A rig by its name, or by the path of its profile."""
    from drivers import rig as rigs

    rig = rigs.open_rig(rigs.load_rig(rig_paths().get(name, name)))
    tap = rig.specimen.tap if rig.specimen is not None else None
    return OpenedRig(
        name, rig.profile.name, rig.source, rig.exciter, rig.close, tap, rig.profile, rig.controllers
    )


def open_replay(path: Path) -> OpenedRig:
    """A recording as a rig that replays it at its own pace."""
    from drivers.formats import open_lazily
    from drivers.replay import ReplaySource

    recording = open_lazily(path)
    source = ReplaySource(recording, path.stem)

    def close() -> None:
        source.close()
        recording.close()

    return OpenedRig(path.stem, f"Replay of {path.stem}", source, None, close)
