"""Recordings that travel: as an xarray Dataset, and as NXdata inside our own HDF5."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from analysis import Channel, Excitation, Record
from drivers.formats import open_dataset, read, write


@pytest.fixture
def path(tmp_path: Path, rng: np.random.Generator) -> Path:
    channels = {
        "x": Channel(rng.standard_normal(500), "mm", gaps=((10, 20),)),
        "f": Channel(rng.standard_normal(500), "N"),
    }
    drive = Excitation(7.0, 1.5, 0.25)
    record = Record(
        100.0, channels, "2026-05-01T12:00:00+02:00", drive, metadata={"rig": "bench 2", "tags": ["cold"]}
    )
    write(record, tmp_path / "run.h5")
    return tmp_path / "run.h5"


def test_a_recording_is_a_dataset_in_one_call(path: Path) -> None:
    found, record = open_dataset(path), read(path)
    assert np.array_equal(found["x"].values, record["x"], equal_nan=True)
    assert found["time"].values[100] == 1.0 and found["time"].attrs["units"] == "s"
    assert found["x"].attrs["units"] == "mm" and found["x"].attrs["gaps"] == [10, 20]
    assert found.attrs["drive_frequency"] == 7.0 and found.attrs["rig"] == "bench 2"
    assert found.attrs["start"] == "2026-05-01T12:00:00+02:00" and found.attrs["tags"] == '["cold"]'
    assert float(found["f"].sel(time=1.23, method="nearest")) == record["f"][123]


def test_a_viewer_of_nexus_finds_what_to_draw_by_following_the_defaults(path: Path) -> None:
    record = read(path)
    with h5py.File(path) as file:
        entry = file[file.attrs["default"]]
        data = entry[entry.attrs["default"]]
        assert (entry.attrs["NX_class"], data.attrs["NX_class"]) == ("NXentry", "NXdata")
        signal, (axis,) = data[data.attrs["signal"]], data.attrs["axes"]
        assert signal == file["channels"]["x"]  # a link, no copy
        assert list(data.attrs["auxiliary_signals"]) == ["f"]
        assert data[axis].shape == signal.shape and data[axis].attrs["units"] == "s"
        assert np.allclose(data[axis][:], record.times)
        assert data["f"].attrs["units"] == "N"


def test_names_of_channels_are_such_as_nexus_allows(tmp_path: Path) -> None:
    arrays = dict.fromkeys(("laser head", "laser_head", "µ-strain"), np.arange(4.0))
    write(Record.from_arrays(100.0, arrays), tmp_path / "run.h5")
    with h5py.File(tmp_path / "run.h5") as file:
        data = file["entry/recording"]
        names = [data.attrs["signal"], *data.attrs["auxiliary_signals"]]
        assert names == ["laser_head", "laser_head_", "__strain"]
        assert data["laser_head"].attrs["long_name"] == "laser head"
        assert data["laser_head"] == file["channels"]["laser head"]
    assert read(tmp_path / "run.h5").names == ("laser head", "laser_head", "µ-strain")


def test_a_channel_named_time_stands_beside_the_time(tmp_path: Path) -> None:
    arrays = {"time": np.arange(4.0), "x": np.ones(4)}
    write(Record.from_arrays(100.0, arrays, metadata={"checked": True}), tmp_path / "run.h5")
    found = open_dataset(tmp_path / "run.h5")
    assert list(found["time_"].values) == [0, 1, 2, 3] and found["time"].values[3] == 0.03
    found.to_netcdf(tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.h5") as file:
        data = file["entry/recording"]
        assert data.attrs["signal"] == "time_" and data["time"][3] == 0.03
