"""The command reproduce over its registry."""

import json

import pytest

from analysis.base.progress import SILENT
from app.cli import main
from app.reproduce import TABLES, Table, make_table, runner
from app.reproduce.liu2019 import STILL
from app.reproduce.rows import VERDICTS
from app.reproduce.runner import compute, one


def test_given_no_name_when_reproduced_then_the_tables_are_listed(capsys):
    assert main(["reproduce"]) == 0
    assert capsys.readouterr().out.split() == list(TABLES)


def test_given_a_table_when_reproduced_then_rows_notes_json_and_page_agree(tmp_path, capsys):
    page, data = tmp_path / "page.html", tmp_path / "table.json"
    assert main(["reproduce", "liu2019-examples", "--json", str(data), "--out", str(page)]) == 0
    (made,) = json.loads(data.read_text())["tables"]
    shown, html = capsys.readouterr().out, page.read_text(encoding="utf-8")
    assert made["name"] == "liu2019-examples"
    assert len(made["rows"]) == 12
    assert {row["verdict"] for row in made["rows"]} == {"better than print", STILL}
    assert made["title"] in shown
    assert "better than print 6, not attainable 6" in shown
    assert html.count("<tr>") == 1 + 2 + 1 + 12  # a summary with its total, then the table
    assert html.count("data:image/png") == -(-len(made["figures"]) // 2)


@pytest.mark.parametrize("name", ["liu1066", "liu2019-"])
def test_given_an_unknown_table_when_reproduced_then_the_known_ones_are_named(name, capsys):
    assert main(["reproduce", name]) == 1
    assert "liu2019-examples" in capsys.readouterr().err


def test_given_two_tables_and_a_faulty_one_when_run_in_parallel_then_the_others_are_made_and_kept(tmp_path):
    lines: list[str] = []
    names = ["liu2019-table1", "liu2019-examples", "no-such-table"]
    done: dict[str, Table | str] = {}
    assert compute(names, lines.append, lambda made: done.update({made[0]: made[1]}), None, tmp_path) == 0
    assert isinstance(done["no-such-table"], str)
    assert "no-such-table" in done["no-such-table"]
    assert [len(done[name].rows) > 0 for name in names[:2]] == [True, True]
    here = make_table("liu2019-table1").rows
    assert done["liu2019-table1"].rows == list(here)  # to the last bit, by another process
    assert lines[-1].startswith("2 of 3 jobs")
    again: dict[str, Table | str] = {}
    lines.clear()
    assert (
        compute(names[:2], lines.append, lambda made: again.update({made[0]: made[1]}), None, tmp_path) == 2
    )
    assert again == {name: done[name] for name in names[:2]} and not lines  # no process was started


@pytest.mark.parametrize("name", ["yuan1995-11", "yuan1995-15", "liu2018-tank"])
def test_given_a_table_of_each_document_then_every_row_has_a_number_and_a_verdict_in_words(name):
    made = make_table(name)
    assert made.name == name
    for row in made.rows:
        assert row.verdict.startswith(VERDICTS)
        assert row.ours is not None or row.plain is not None
    assert all(len(x) == len(y) for figure in made.figures for x, y in figure.curves.values())


def test_given_a_fault_of_ours_when_a_table_is_made_then_a_sentence_names_it(monkeypatch):
    monkeypatch.setitem(TABLES, "faulty", "app.reproduce.liu2019:no_such_function")
    name, result, _ = one("faulty", SILENT)
    assert name == "faulty"
    assert "no_such_function" in result


def test_given_slow_tables_when_ordered_then_they_come_first(monkeypatch):
    monkeypatch.setattr(runner, "SLOW", ("c", "x", "a"))
    assert runner.in_order(["a", "b", "c"]) == ["c", "a", "b"]
