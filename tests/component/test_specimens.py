"""Specimens of a virtual rig by their number: other parameters, the same each time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from analysis import ShakedownError
from app.cli import main
from drivers.base.clock import InstantClock
from drivers.formats import read
from drivers.rig.profile import RigError, RigProfile, load_rig, open_rig
from drivers.virtual.specimens import new_number, number_of, scatters, true_parameters, with_specimen

PUBLISHED = {"c": 0.035, "k1": -0.28, "k2": 0.178, "k3": 0.336, "k4": -0.064}  # Yuan 1995, eq. (4.11)


def rig_with(**specimen: object) -> RigProfile:
    profile = load_rig("two_well_beam")
    source = dict(profile.instruments["source"])
    source["specimen"] = {**source["specimen"], **specimen}
    return replace(profile, instruments={**profile.instruments, "source": source})


def test_given_a_number_then_every_parameter_differs_within_its_scatter_and_always_in_the_same_way() -> None:
    plain = load_rig("two_well_beam")
    drawn = [with_specimen(plain, number) for number in range(1, 41)]
    assert with_specimen(plain, 7) == drawn[6]
    shares = scatters(plain)
    assert set(shares) == set(PUBLISHED)
    for name, value in PUBLISHED.items():
        off = [true_parameters(profile)[name] / value - 1 for profile in drawn]
        assert len({round(o, 9) for o in off}) == 40
        assert max(map(abs, off)) <= shares[name]
        assert max(off) > 0.8 * shares[name] and min(off) < -0.8 * shares[name]  # both ways, the whole of it
    assert [number_of(profile) for profile in drawn] == list(range(1, 41))


def test_given_no_number_then_the_specimen_is_the_published_one() -> None:
    plain = with_specimen(load_rig("two_well_beam"), 0)
    assert plain == load_rig("two_well_beam") and number_of(plain) == 0
    truth = true_parameters(plain)
    assert {name: truth[name] for name in PUBLISHED} == PUBLISHED
    assert 1 <= new_number() <= 9999


def test_given_a_specimen_then_its_own_parameters_move_the_rig() -> None:
    """The parameters told are those that the plant integrates."""
    profile = with_specimen(load_rig("two_well_beam"), 11)
    plant = open_rig(profile, InstantClock()).source._plant  # type: ignore[attr-defined]
    names = list(plant.specimen.model.parameters)
    values = dict(zip(names, plant._values.tolist(), strict=True))
    assert values == true_parameters(profile)
    assert values["k3"] != PUBLISHED["k3"]


@pytest.mark.parametrize("scatter", [0.1, {"c": "much"}, {"c": 1.0}, {"c": True}, {"c": -0.1}, {"k9": 0.1}])
def test_given_a_scatter_that_makes_no_sense_then_one_sentence_says_so(scatter: object) -> None:
    with pytest.raises(RigError, match=r"\[instruments.source.specimen\] scatter"):
        with_specimen(rig_with(scatter=scatter), 3)


@pytest.mark.parametrize("model", ["", 7, None])
def test_given_a_specimen_without_a_model_then_one_sentence_says_so(model: object) -> None:
    rig = rig_with(model=model)
    if model is None:
        del rig.instruments["source"]["specimen"]["model"]  # type: ignore[attr-defined]
    with pytest.raises(ShakedownError):
        with_specimen(rig, 3)


def test_given_a_rig_whose_specimens_are_alike_or_a_number_that_is_none_then_it_is_refused() -> None:
    with pytest.raises(RigError, match="all alike"):
        with_specimen(rig_with(scatter={}), 3)
    with pytest.raises(RigError, match="0 or more"):
        with_specimen(load_rig("two_well_beam"), -1)
    assert (
        true_parameters(replace(load_rig("two_well_beam"), instruments={"source": {"driver": "nidaq"}})) == {}
    )


def test_given_acquire_with_a_number_then_the_recording_keeps_it_and_rigs_reveals_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "beam.h5"
    common = ["acquire", "two_well_beam", "--fast", "--settle", "0", "--seconds", "0.2", "--specimen"]
    assert main([*common, "42", "--out", str(out)]) == 0
    assert read(out).metadata["specimen"] == 42
    capsys.readouterr()
    assert main(["rigs", "two_well_beam", "--specimen", "42", "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)[0]["specimen"]
    assert told == true_parameters(with_specimen(load_rig("two_well_beam"), 42))
    alike = ["acquire", "cantilever", *common[2:], "3", "--out", str(tmp_path / "no.h5")]
    assert main(alike) == 1 and not (tmp_path / "no.h5").exists()
    assert "all alike" in capsys.readouterr().err
