"""The command reproduce over its registry."""

import json

import pytest

from app.cli import main
from app.reproduce import TABLES


def test_given_no_name_when_reproduced_then_the_tables_are_listed(capsys):
    assert main(["reproduce"]) == 0
    assert capsys.readouterr().out.split() == list(TABLES)


def test_given_a_table_when_reproduced_then_rows_notes_json_and_page_agree(tmp_path, capsys):
    page, data = tmp_path / "page.html", tmp_path / "table.json"
    assert main(["reproduce", "liu2019-examples", "--json", str(data), "--out", str(page)]) == 0
    (made,) = json.loads(data.read_text())["tables"]
    shown, html = capsys.readouterr().out, page.read_text(encoding="utf-8")
    assert made["name"] == "liu2019-examples"
    assert len(made["rows"]) == 6
    assert all(len(row) == len(made["columns"]) for row in made["rows"])
    assert made["title"] in shown
    assert html.count("<tr>") == 7
    assert html.count("data:image/png") == -(-len(made["figures"]) // 2)


@pytest.mark.parametrize("name", ["liu1066", "liu2019-"])
def test_given_an_unknown_table_when_reproduced_then_the_known_ones_are_named(name, capsys):
    assert main(["reproduce", name]) == 1
    assert "liu2019-examples" in capsys.readouterr().err
