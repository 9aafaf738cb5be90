"""A thousand hostile inputs, as the soak script makes them by the ten thousand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.hostile import KINDS, attempt

# How many of each kind: what takes long (reports, orbits, compiling) has its share in the soak script.
COUNTS = {
    "file": 340, "foreign": 60, "table": 110, "model": 110, "rig": 70, "sequence": 50, "result": 6,
    "session": 0, "drive": 10, "study": 40, "archive": 60, "project": 4, "sensors": 50, "template": 0,
    "used fit": 10, "transfer": 0, "store": 30, "opened rig": 0, "plugin": 0, "option": 0, "usage": 80,
}  # fmt: skip


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_given_the_kinds_of_hostile_input_then_all_are_tried() -> None:
    assert set(COUNTS) == set(KINDS)
    assert sum(COUNTS.values()) >= 1000


@pytest.mark.parametrize("kind", [kind for kind, count in COUNTS.items() if count])
def test_given_hostile_input_then_data_or_one_sentence(kind: str) -> None:
    faults = [o for n in range(COUNTS[kind]) if (o := attempt(1_000_000 + n, kind)).fault]
    assert not faults, faults[:3]
