"""`searchapp report` on the samples: figures are those of `evaluate` and `compare`, and errors write nothing."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from searchapp.evaluation.measures import measures_of_curves
from searchapp.evaluation.significance import bootstrap_interval
from searchapp.judging.events import Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from searchapp.runs import directory
from tests.cli.conftest import EMBEDDED, SAMPLES, Cli, change_manifest, run_command

pytestmark = pytest.mark.shared_indexes

CUTOFF = ("--cutoff", 50)


@pytest.fixture(scope="module")
def prepared(indexed_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs of the sample of nlps, A and B, and their home directory."""
    folder = tmp_path_factory.mktemp("prepared")
    shutil.copytree(indexed_home, folder / "home")
    for name, recipe in (("A", "bm25"), ("B", "neighbours")):
        words = ["rank", "nlps", "--split", "dev", "--recipe", recipe, "--out", folder / name]
        result = run_command(*words, "--home", folder / "home", environment=EMBEDDED)
        assert result.code == 0, result.stderr
    return folder


@pytest.fixture
def ranked(offline: Cli, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Commands in a copy of the folder with the two runs."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return offline


def make_report(cli: Cli, *arguments: object, out: str = "out.html") -> tuple[dict[str, Any], str]:
    """Return the output of `report --json` and the page."""
    result = cli("report", *arguments, "--out", out, "--overwrite", "--json")
    assert result.code == 0, result.stderr
    return result.json, Path(out).read_text(encoding="utf-8")


def figures(report: Mapping[str, Any], run: str) -> dict[str, float]:
    return {figure["name"]: figure["values"][run] for figure in report["figures"]}


def test_figures_are_those_of_the_commands_that_the_report_names(ranked: Cli) -> None:
    report, page = make_report(ranked, "A", "B", *CUTOFF)
    commands = [shlex.split(line) for line in report["reproduction"]["commands"].values()]
    assert all(words[0] == "searchapp" for words in commands)
    by_figures, by_curves, by_tests = (ranked(*words[1:]) for words in commands)
    assert by_figures.code == by_curves.code == by_tests.code == 0
    for name, run in zip("AB", by_figures.json["runs"], strict=True):
        assert figures(report, name) == {**run["measures"], **run["official"]["values"]}
    for name, run in zip("AB", by_curves.json["runs"], strict=True):
        curves = report["curves"][name]
        assert list(run["measures"]) == list(measures_of_curves(500))
        assert [*curves["interpolated_precision"].values(), *curves["recall"].values()] == list(
            run["measures"].values()
        )
    assert {name: report[name] for name in by_tests.json} == by_tests.json
    for line in report["reproduction"]["commands"].values():
        assert line in page
    for value in figures(report, "B").values():
        assert f"{value:.4f}" in page


def test_the_interval_of_a_run_is_the_bootstrap_interval_of_its_values(ranked: Cli) -> None:
    report, page = make_report(ranked, "A", "B", *CUTOFF)
    per_topic = report["measures"][0]["per_topic"]["A"]
    expected = bootstrap_interval(list(per_topic.values()))
    first = report["figures"][0]
    assert first["official"] and first["intervals"]["A"]["low"] == expected.low
    assert first["intervals"]["A"]["high"] == expected.high
    assert f"{expected.low:.4f} to {expected.high:.4f}" in page
    tested = {measure["measure"] for measure in report["measures"]}
    untested = [figure for figure in report["figures"] if figure["name"] not in tested]
    assert untested and all(figure["intervals"] == {"A": None, "B": None} for figure in untested)


def test_every_topic_has_a_row_and_a_labelled_bar(ranked: Cli) -> None:
    report, page = make_report(ranked, "A", "B", *CUTOFF)
    topics = report["topics"]["pairs"][0]["topics"]
    table = page.partition("All topics")[2].partition("</table>")[0]
    assert re.findall(r'<th scope="row"><bdi>(\d+)</bdi>', table) == [topic["id"] for topic in topics]
    for topic in topics:
        values = f"{topic['difference']:+.4f} ({topic['first']:.4f} → {topic['second']:.4f})"
        assert f"<title>{topic['id']}: {values}</title>" in page
    assert "Every subgroup of an abelian group is normal." in page


def test_the_report_of_a_single_run_has_no_tests(ranked: Cli) -> None:
    report, page = make_report(ranked, "A", *CUTOFF)
    evaluated = ranked("evaluate", "A", *CUTOFF, "--json").json
    assert figures(report, "A") == {**evaluated["measures"], **evaluated["official"]["values"]}
    assert report["measures"][0]["pairs"] == [] and len(report["curves"]) == 1
    assert 'id="topics"' in page and 'id="tests"' not in page and 'id="alike"' not in page
    assert "tests" not in " ".join(report["reproduction"]["commands"])
    refused = ranked("compare", "A", *CUTOFF)
    assert refused.code == 2 and "at least two runs are needed" in refused.stderr


def test_three_runs_have_a_chart_for_each_pair_and_corrected_tests(ranked: Cli) -> None:
    assert ranked("rank", "nlps", "--split", "dev", "--recipe", "tfidf", "--out", "C").code == 0
    _, page = make_report(ranked, "A", "B", "C", *CUTOFF)
    assert len(re.findall('largest gain first"', page)) == 3 and "Holm-corrected" in page
    _, page = make_report(ranked, "A", "B", "C", *CUTOFF, "--baseline", "B")
    assert len(re.findall('largest gain first"', page)) == 2
    assert "Tukey" in page and "corrected for 2 comparisons with the baseline" in page


def test_a_report_has_all_breakdowns_or_the_chosen_ones(offline: Cli, tmp_path: Path) -> None:
    task, out = "smart-types-dbpedia", tmp_path / "out.html"
    data = shutil.copytree(SAMPLES / task, tmp_path / "data")
    assert offline("index", task, "--data", data).code == 0
    run = tmp_path / "run"
    assert offline("rank", task, "--split", "fold0", "--out", run).code == 0
    evaluated = offline("evaluate", run, "--by", "all", "--json").json["breakdowns"]
    report, page = make_report(offline, run, out=str(out))
    assert list(report["breakdowns"]) == list(evaluated) and len(evaluated) > 1
    for name, breakdown in evaluated.items():
        assert breakdown["title"] in page
        groups = [row["group"] for row in report["breakdowns"][name]["rows"]]
        assert groups == [row["group"] for row in breakdown["rows"]]
    name = next(iter(evaluated))
    report, _ = make_report(offline, run, "--by", name, out=str(out))
    assert list(report["breakdowns"]) == [name]


def test_the_same_runs_give_the_same_bytes(ranked: Cli) -> None:
    first, second = (make_report(ranked, "A", "B", *CUTOFF, out=name)[1] for name in ("1.html", "2.html"))
    assert first == second


def test_an_existing_file_is_replaced_only_with_overwrite(ranked: Cli) -> None:
    out = Path("out.html")
    out.write_text("mine")
    refused = ranked("report", "A", "B", *CUTOFF, "--out", out)
    assert (
        refused.code == 2 and "out.html exists already" in refused.stderr and "--overwrite" in refused.stderr
    )
    assert out.read_text() == "mine"
    assert ranked("report", "A", "B", *CUTOFF, "--out", out, "--overwrite").code == 0
    assert out.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("A", "B", "--out", "no/where.html"), 2, "there is no folder"),
        (("A", "B", "--out", "home"), 2, "is a folder"),
        (("A", "A", "--out", "x.html"), 2, "is given twice"),
        (("A", "nothing", "--out", "x.html"), 2, "is not a run directory"),
        (("A", "B", "--out", "x.html"), 4, "premises without repeats, not 500"),
        (("A", "B", "--out", "x.html", "--cutoff", "50", "--by", "nothing"), 2, "has no breakdown"),
        (("A", "B", "--out", "x.html", "--measure", "nDCX"), 2, "there is no measure 'nDCX'"),
        (("A", "--out", "x.html", "--held-out"), 2, "--held-out requires --judgments"),
        (("A", "--out", "x.html", "--judgments", "--by", "all"), 2, "need the official gold"),
        (("A", "--out", "x.html", "--qrels", "no.qrels"), 4, "no.qrels"),
    ],
)
def test_usage_errors_write_nothing(ranked: Cli, arguments: tuple[str, ...], code: int, message: str) -> None:
    before = sorted(Path().iterdir())
    result = ranked("report", *arguments)
    assert (result.code, result.stdout) == (code, "") and message in result.stderr
    assert "Traceback" not in result.stderr and sorted(Path().iterdir()) == before


def test_runs_of_different_documents_are_refused_or_reported_with_a_warning(ranked: Cli) -> None:
    change_manifest(Path("B"), index_digest="0" * 64)
    refused = ranked("report", "A", "B", *CUTOFF, "--out", "x.html")
    assert refused.code == 4 and "their indexed documents differ" in refused.stderr
    assert not Path("x.html").exists()
    report, page = make_report(ranked, "A", "B", *CUTOFF, "--force")
    assert report["comparable"] is False
    warnings = page.partition('id="warnings-heading"')[2].partition("</section>")[0]
    assert "the runs are compared although their indexed documents differ" in warnings
    assert page.index("although their indexed documents") < page.index('id="figures-heading"')
    assert (
        "--force" in report["reproduction"]["commands"]["tests, topics, difficulty, similarity of rankings"]
    )


def test_commands_of_runs_are_named_without_folders_of_the_machine(
    ranked: Cli, tmp_path: Path, prepared: Path
) -> None:
    report, page = make_report(ranked, "A", "B", *CUTOFF)
    words = shlex.split(report["reproduction"]["runs"][0]["command"])
    assert words[:5] == ["searchapp", "rank", "nlps", "--data", "DATA"]
    assert str(SAMPLES) not in page and str(tmp_path) not in page and str(prepared) not in page
    words[words.index("DATA")], words[words.index("DIR")] = str(SAMPLES / "nlps"), "again"
    assert ranked(*words[1:]).code == 0
    again, first = (directory.read_manifest(Path(name)) for name in ("again", "A"))
    assert again.files == first.files
    for digest in (first.digest, first.index_digest, first.mapping_digest, *first.data_digests.values()):
        assert digest in page


# A bench

PLAN = """
baseline = "bm25"
permutations = 1000
[recipes.bm25]
[recipes.near]
recipe = "neighbours"
[tasks.nlps]
splits = ["dev"]
cutoff = 50
"""


def test_the_report_of_a_bench_has_its_figures_and_tests(ranked: Cli) -> None:
    Path("plan.toml").write_text(PLAN)
    bench = ranked("bench", "plan.toml", "--json")
    assert bench.code == 0, bench.stderr
    report, page = make_report(ranked, "plan")
    assert report["columns"] == bench.json["columns"] and report["systems"] == bench.json["systems"]
    (column,) = report["columns"]
    heatmap = page.partition('class="heat"')[2].partition("</table>")[0]
    official = column["measures"][0]
    for value, difference in zip(official["figures"], official["differences"], strict=True):
        assert f"{value:.4f}" in heatmap
        assert difference is None or f"{difference['mean']:+.4f}" in heatmap
    assert 'class="n worse-4"' in heatmap and "better-" not in heatmap.partition("<tbody>")[2]
    for measure in column["measures"]:
        assert all(f">{value:.4f}<" in page for value in measure["figures"])
    assert all(cell["digest"] in page for cell in column["cells"])
    refused = ranked("report", "plan", "A", "--out", "x.html")
    assert refused.code == 2 and "give it alone" in refused.stderr and not Path("x.html").exists()


# Judgments


def write_judgments(log: Path, run: str) -> None:
    """Let two annotators grade the first documents of some topics, with one disagreement."""
    stored = directory.read(Path(run)).run
    with JudgmentLog(log) as events:
        for annotator, name in enumerate(("Ann <b>", "Bob")):
            session = Session(events, "nlps", Author(name))
            for number, ranking in enumerate(list(stored)[:4]):
                for rank, document in enumerate(ranking.document_ids()[:3], 1):
                    grade = annotator if (number, rank) == (0, 1) else rank % 2
                    session.grade([SeenDocument(ranking.topic_id, document, run, rank)], grade, "")


def test_a_report_on_judgments_has_agreement_and_judged_shares(ranked: Cli, tmp_path: Path) -> None:
    log = tmp_path / "log.sqlite"
    write_judgments(log, "A")
    options = ("--judgments", "--log", log, *CUTOFF)
    report, page = make_report(ranked, "A", "B", *options)
    agreement = ranked("judgments", "agreement", "nlps", "--log", log, "--json").json
    assert report["agreement"]["alpha"] == agreement["alpha"] and agreement["documents"] == 12
    assert f"is {agreement['alpha']:.4f} over 12 documents" in page
    assert f"{agreement['pairs'][0]['kappa']:.4f}" in page and "Ann &lt;b&gt;" in page
    evaluated = ranked("evaluate", "A", *options, "--json").json
    assert f"{evaluated['measures']['Judged@10']:.4f}" in page
    assert report["runs"][0]["judged"]["Judged@10"] == evaluated["measures"]["Judged@10"]
    assert "influence of unjudged documents on these differences" in page
    commands = list(report["reproduction"]["commands"].values())
    assert commands[-1] == shlex.join(
        ["searchapp", "judgments", "agreement", "nlps", "--log", str(log), "--json"]
    )
    for line in commands:
        assert ranked(*shlex.split(line)[1:]).code == 0, line


def test_qrels_have_a_digest_and_no_agreement(ranked: Cli) -> None:
    stored = directory.read(Path("A")).run
    lines = [f"{ranking.topic_id} 0 {ranking.document_ids()[0]} 1\n" for ranking in stored]
    Path("some.qrels").write_text("".join(lines))
    report, page = make_report(ranked, "A", "B", "--qrels", "some.qrels", *CUTOFF)
    assert list(report["reproduction"]["gold"]) == ["some.qrels"] and report["agreement"] is None
    assert 'id="judged"' in page and "Annotators" not in page
    assert "--qrels some.qrels" in page
