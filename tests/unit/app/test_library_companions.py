"""What belongs to a recording alone and goes where it goes."""

from __future__ import annotations

import json
from pathlib import Path

from app import library


def test_given_files_beside_a_recording_then_only_those_of_it_belong_to_it(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    for name in ("run.h5", "run.h5.notes.toml", "run-2.h5", "run-2.h5.notes.toml"):
        (tmp_path / name).touch()
    own = [path, tmp_path / "run.h5.notes.toml"]
    assert sorted(library.companions(path)) == own
    result = tmp_path / "run.json"
    for of_another in ("", "[1]", "3", '{"files": []}', '{"files": ["run-2.h5", "run.h5"]}', '{"files": 2}'):
        result.write_text(of_another)
        assert sorted(library.companions(path)) == own
    result.write_text(json.dumps({"files": [str(path), "run-2.h5"]}))
    assert sorted(library.companions(path)) == [*own, result]
