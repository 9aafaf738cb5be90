"""A study file is checked as a whole: one sentence for each mistake, before anything runs."""

import math
from pathlib import Path

import numpy as np
import pytest

from analysis import Estimate, Identification, Progress, ShakedownError
from app.campaign.child import DONE, Outcome
from app.campaign.recordings import look_at_all
from app.campaign.results import write_results
from app.campaign.store import Store
from app.campaign.study import Plan, plan, read_study
from app.campaign.summary import summarise
from app.campaign.table import table
from drivers.formats import write
from tests.ringing import MODEL, STUDY, make, record


def planned(path: Path) -> Plan:
    return plan(read_study(path), path.parent, path.parent / "library", {}, Progress())


def test_every_recording_gets_one_job_for_each_fit_of_the_grid(tmp_path: Path) -> None:
    path = make(
        tmp_path / "a", 3, STUDY + "[vary]\nguess = { k = [2.0, 3.0] }\noptions = { spacing = [3, 4] }"
    )
    jobs = planned(path).jobs
    assert len(jobs) == len({job.key for job in jobs}) == 12
    assert {(job.varied["guess k"], job.varied["spacing"]) for job in jobs} == {
        (2.0, 3),
        (2.0, 4),
        (3.0, 3),
        (3.0, 4),
    }
    assert "guess = 2.0" in jobs[0].model


def test_the_key_follows_the_content_and_not_the_name(tmp_path: Path) -> None:
    first = {job.key for job in planned(make(tmp_path / "a", 2)).jobs}
    path = make(tmp_path / "b", 2)
    (tmp_path / "b" / "runs" / "run000.h5").rename(tmp_path / "b" / "runs" / "moved.h5")
    assert {job.key for job in planned(path).jobs} == first
    path.write_text(STUDY.replace("finish = false", "finish = true"))
    assert not {job.key for job in planned(path).jobs} & first


def test_segments_parts_and_draws_are_jobs_of_their_own(tmp_path: Path) -> None:
    path = make(tmp_path / "a", 1)
    for words, count in (("segments = 4", 4), ("held_out = 5", 6), ("bootstrap = 7", 8)):
        path.write_text(f"{STUDY}[vary]\n{words}")
        assert len({job.key for job in planned(path).jobs}) == count


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ('"runs/*.h5"', '"none/*.h5"', "No recording matches `none/\\*.h5`"),
        ("files =", "fils =", "`recordings.fils` is not known \\(did you mean `files`"),
        ("models =", "model =", "`model` is not known \\(did you mean `models`"),
        ('["weak"]', '["week"]', "No method 'week'"),
        ("finish = false", "finnish = false", "no option `finnish` \\(did you mean `finish`"),
        ("finish = false", 'finish = "maybe"', "Option finish is not true or false"),
        ('"ring.toml"', '"rong.toml"', "rong.toml"),
        ('"ring.toml"', '"ring.toml", "b/ring.toml"', "ring.toml and b/ring.toml have one name"),
        ("[options]", "[guess]\nkk = 1.0\n[options]", "no parameter `kk`"),
        ("[options]", "[vary]\nsegments = 0\n[options]", "`segments` is 1 or more"),
        ("[options]", "[vary]\nsegments = 2\nbootstrap = 5\n[options]", "choose one"),
        ("[options]", "[vary]\nguess = { k = [] }\n[options]", "list of `k` .* is empty"),
        ("[options]", "[run]\nlimit = 0\n[options]", "`limit`"),
        ("[recordings]", "[recordings]\nspecimen = 'serial'", "metadata entry `serial`"),
        ("files =", "tags = ['lot7']\nfiles =", "has the tags lot7"),
        ("files =", "folder = 'nowhere'\nfiles =", "nowhere of the study is not there"),
        ('["runs/*.h5"]', "[", "is not a study"),
        ('"runs/*.h5"', '"~nobody-of-this-name/*.h5"', "No recording matches `~nobody"),
        ('"runs/*.h5"', '"runs"', "It is a folder: `folder` names one"),
        ("[recordings]", 'collect = ["temprature"]\n[recordings]', "did you mean `temperature`"),
        ("[options]", "[set]\nk = 1.0\n[vary]\nguess = { k = [2.0] }\n[options]", "`k` cannot be known"),
        ("[recordings]", 'free = ["k"]\n[set]\nk = 1.0\n[recordings]', "`k` cannot be known"),
    ],
)
def test_a_mistake_in_the_study_is_one_sentence(
    tmp_path: Path, before: str, after: str, sentence: str
) -> None:
    path = make(tmp_path / "a", 1, STUDY.replace(before, after, 1))
    with pytest.raises(ShakedownError, match=sentence) as found:
        planned(path)
    assert "\n" not in str(found.value)


def test_two_recordings_of_one_name_are_refused(tmp_path: Path, rng: np.random.Generator) -> None:
    path = make(tmp_path / "a", 1, STUDY.replace('"runs/*.h5"', '"*/*.h5"'))
    (tmp_path / "a" / "more").mkdir()
    write(record(4.0, rng), tmp_path / "a" / "more" / "run000.h5")
    with pytest.raises(ShakedownError, match="Two recordings are named run000"):
        planned(path)


def test_a_model_that_does_not_fit_some_files_is_said_or_they_are_left_out(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    path = make(tmp_path / "a", 2)
    strange = record(4.0, rng)
    write(type(strange)(20.0, {"laser": strange.channels["x"]}), tmp_path / "a" / "runs" / "strange.h5")
    with pytest.raises(ShakedownError, match=r"strange\.h5: it has none of the outputs x of model ring"):
        planned(path)
    path.write_text(STUDY.replace("[options]", 'unsuitable = "skip"\n[options]'))
    found = planned(path)
    assert len(found.jobs) == 2 and list(found.unsuitable) == [str(tmp_path / "a" / "runs" / "strange.h5")]


def test_recordings_are_found_by_the_tags_of_the_library(tmp_path: Path, rng: np.random.Generator) -> None:
    from app.library import write_notes

    path = make(tmp_path / "a", 1, STUDY.replace('files = ["runs/*.h5"]', 'tags = ["lot7", "cold"]'))
    library = tmp_path / "a" / "library"
    library.mkdir()
    for name, tags in (("one", ["lot7", "cold"]), ("two", ["lot7"])):
        write(record(4.0, rng), library / f"{name}.h5")
        write_notes(library / f"{name}.h5", "", tags)
    assert [Path(job.recording).stem for job in planned(path).jobs] == ["one"]


def test_a_copy_of_a_recording_does_not_count_twice(tmp_path: Path) -> None:
    path = make(tmp_path / "a", 2)
    runs = tmp_path / "a" / "runs"
    (runs / "copy.h5").write_bytes((runs / "run001.h5").read_bytes())
    with pytest.raises(ShakedownError, match=r"run001\.h5: it holds the same recording as copy\.h5"):
        planned(path)


def test_one_channel_in_two_units_is_refused(tmp_path: Path, rng: np.random.Generator) -> None:
    path = make(tmp_path / "a", 1)
    for name, unit in (("a", "mm"), ("b", "\u00b5m")):
        made = record(4.0, rng)
        channels = {n: (made[n], unit if n == "x" else "") for n in made.names}
        given = {n: u for n, (_, u) in channels.items()}
        written = type(made).from_arrays(20.0, {n: v for n, (v, _) in channels.items()}, units=given)
        write(written, tmp_path / "a" / "runs" / f"{name}.h5")
    with pytest.raises(ShakedownError, match="Channel x is in mm in a and in \u00b5m in b"):
        planned(path)


def test_series_run_in_the_order_of_time_and_of_numbers_in_names() -> None:
    from app.campaign.summary import ordered

    starts = {"b": "2026-10-25T02:30:00+02:00", "c": "2026-10-25T02:10:00+01:00", "a": "2026-10-25T00:00:00Z"}
    rows = [{"recording": name, "start": start, "number": 0} for name, start in starts.items()]
    assert [row["recording"] for row in ordered(rows, "start")] == ["a", "b", "c"]
    rows = [{"recording": f"run{i}", "start": None, "number": 0} for i in (10, 9, 2)]
    assert [row["recording"] for row in ordered(rows, "start")] == ["run2", "run9", "run10"]


def test_failures_of_one_cause_are_told_together_whatever_the_recording_is_named() -> None:
    words = "vm cannot see /data/lot A/beam {}.h5: the folder must be there."
    blank = {"model": "m", "method": "auto", "specimen": "", "part": "whole", "status": "failed", "number": 0}
    table = [
        {**blank, "recording": f"beam {i}", "failure": words.format(i), "verdict": None, "converged": None}
        for i in range(12)
    ]
    (cause,) = summarise(table).causes.items()
    assert cause == (words.replace("beam {}", "…"), [f"beam {i}" for i in range(12)])


def test_models_are_compared_over_the_recordings_that_both_were_fitted_to() -> None:
    blank = {"method": "auto", "part": "whole", "number": 0, "verdict": "fits", "converged": True}
    scores = {("a", "1"): 5.0, ("a", "2"): 7.0, ("a", "3"): 9.0, ("b", "1"): 4.0, ("b", "2"): 6.0}
    table = [
        {**blank, "model": m, "recording": r, "specimen": r, "status": "done", "BIC": b, "failure": None}
        for (m, r), b in scores.items()
    ]
    table.append({**table[-1], "recording": "3", "specimen": "3", "status": "failed", "BIC": None})
    assert [fit.bic for fit in summarise(table).fits] == [12.0, 10.0]


def test_a_parameter_that_some_recordings_do_not_determine_is_told_and_left_out() -> None:
    blank = {"model": "m", "method": "auto", "part": "whole", "verdict": "fits", "converged": True}
    told = {"a": (4.0, 0.1), "b": (4.1, None), "c": (4.2, 0.1), "d": (4.1, math.inf), "e": (4.05, 0.1)}
    table = [
        {**blank, "recording": r, "specimen": r, "status": "done", "number": 0, "k": k, "k stderr": e}
        | {"failure": None, "T": math.nan if r == "a" else 20.0}
        for r, (k, e) in told.items()
    ]
    summary = summarise(table, "T")
    (p,) = summary.fits[0].parameters
    assert [point.recording for point in p.points] == ["c", "e", "a"]  # a does not say where it belongs
    assert p.undetermined == ("b", "d") and p.effects is not None and p.effects.specimens == 3
    assert "k is not determined by 2 of 5 fits, which are left out (b, d)." in summary.sentences()
    assert summarise(table[:1]).sentences() == ["k = 4.00 \u00b1 0.10 (a)."]


def test_brackets_in_the_name_of_a_folder_are_no_pattern(tmp_path: Path) -> None:
    path = make(
        tmp_path / "lot 7 [neu]", 2, STUDY.replace('"runs/*.h5"', '"../lot 7 [neu]/runs/run*[01].h5"')
    )
    assert [Path(s.path).name for s in planned(path).seen] == ["run000.h5", "run001.h5"]


def test_two_models_of_one_text_are_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "a", 1, STUDY.replace('"ring.toml"', '"ring.toml", "copy.toml"'))
    (tmp_path / "a" / "copy.toml").write_text(MODEL)
    with pytest.raises(ShakedownError, match="Models ring and copy are the same"):
        planned(path)


def test_results_of_a_campaign_are_no_recordings(tmp_path: Path) -> None:
    path = make(
        tmp_path / "a", 1, STUDY.replace('files = ["runs/*.h5"]', 'files = ["runs/**/*.*"]\nfolder = "runs"')
    )
    runs = tmp_path / "a" / "runs"
    with Store(runs) as store:
        store.keep_seen([])
        (runs / "fits" / "ab").mkdir()
        for name in ("table.csv", "table.parquet", "summary.json", "fits/ab/abc.json"):
            (runs / name).write_text("")
    assert [Path(s.path).name for s in planned(path).seen] == ["run000.h5"]


def test_a_rate_that_the_study_no_longer_gives_is_not_remembered(tmp_path: Path) -> None:
    file = tmp_path / "plain.csv"
    file.write_text("x,f\n" + "1.0,2.0\n" * 20)
    seen, _ = look_at_all([str(file)], {}, 50.0, Progress())
    known = {s.path: s for s in seen}
    assert look_at_all([str(file)], known, 50.0, Progress())[0][0] is seen[0]
    assert look_at_all([str(file)], known, 100.0, Progress())[0][0].rate == 100.0
    assert list(look_at_all([str(file)], known, None, Progress())[1]) == [str(file)]


def test_a_recording_that_is_renamed_has_its_new_name_in_the_table(tmp_path: Path) -> None:
    path = make(tmp_path / "a", 3)
    out = tmp_path / "out"
    found = Identification("weak", "ring", True, {"k": Estimate.normal(4.0, 0.1)}, verdict="fits")
    with Store(out) as store:
        for job in planned(path).jobs:
            store.keep(Outcome(job.key, DONE, found.to_json()))
    assert "run000" in write_results(planned(path), out, {}).files[0].read_text()
    (tmp_path / "a" / "runs" / "run000.h5").rename(tmp_path / "a" / "runs" / "run00ä.h5")
    text = write_results(planned(path), out, {}).files[0].read_text(encoding="utf-8")
    assert "run000" not in text and "run00ä" in text


def test_a_step_between_segments_is_said_and_drawn_where_it_is() -> None:
    blank = {"model": "m", "method": "auto", "part": "segment", "verdict": "fits", "converged": True}
    table = [
        {**blank, "recording": "run", "specimen": "run", "status": "done", "number": i, "failure": None}
        | {"k": 4.0 - 0.2 * (i >= 7) + 0.001 * (i % 3), "k stderr": 0.001}
        for i in range(12)
    ]
    summary = summarise(table)
    (p,) = summary.fits[0].parameters
    assert [p.points.index(change.last) for change in p.changes] == [6]
    assert any(" after segment 7 (run, segment 7; " in text for text in summary.sentences())


def test_what_differs_between_recordings_is_no_step_between_their_segments(rng: np.random.Generator) -> None:
    blank = {"model": "m", "method": "auto", "part": "segment", "verdict": "fits", "converged": True}
    level = 4.0 + 0.1 * rng.standard_normal(4)
    table = [
        {**blank, "recording": f"run{r}", "specimen": "S", "status": "done", "number": i, "failure": None}
        | {"k": level[r] + 0.001 * rng.standard_normal(), "k stderr": 0.001}
        for r in range(4)
        for i in range(6)
    ]
    assert summarise(table).fits[0].parameters[0].changes == ()


def test_each_model_has_its_own_unit_of_a_parameter_of_one_name() -> None:
    blank = {"method": "auto", "part": "whole", "number": 0, "verdict": "fits", "converged": True}
    table = [
        {**blank, "model": m, "recording": "r", "specimen": "r", "status": "done", "failure": None}
        | {"k": 4.0, "k stderr": 0.1}
        for m in "ab"
    ]
    summary = summarise(table, units={("a", "k"): "N/mm", ("b", "k"): "1/s^2"})
    assert [fit.parameters[0].label for fit in summary.fits] == ["k [N/mm]", "k [1/s^2]"]


def test_a_metadata_entry_named_like_an_entry_of_the_grid_keeps_its_own_column(tmp_path: Path) -> None:
    path = make(tmp_path / "a", 2, STUDY + "[vary]\noptions = { spacing = [3, 4] }")
    found = planned(path)
    seen = [s._replace(metadata={"spacing": 7.0 + i}) for i, s in enumerate(found.seen)]
    rows = table(tmp_path, found.jobs, seen)
    assert [(row["spacing"], row["spacing (recording)"]) for row in rows] == [(3, 7), (4, 7), (3, 8), (4, 8)]
