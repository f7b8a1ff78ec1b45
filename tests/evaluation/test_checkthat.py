"""Recorded cases of CheckThat! 2019, task 1; warnings, lenient figures and breakdowns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from searchapp.errors import NotScorable
from searchapp.evaluation.base import GoldFiles, Scored, ScorerOptions
from searchapp.model import Hits, Ranking, Run
from searchapp.tasks.checkthat.debate_files import failures
from searchapp.tasks.checkthat.scorer import CUTOFFS, CheckThatScorer, figures, means, ranking

FOLDER = Path(__file__).parents[1] / "fixtures" / "conformance" / "checkthat"
CASES = {path.parent.name: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*/case.json"))}
SCORED = [name for name, case in CASES.items() if case["options"]["mode"] == "score"]
CHECKED = [
    (name, file, verdict)
    for name, case in CASES.items()
    for file, verdict in case["expected"].get("format_check", {}).items()
]


def close(values: Any) -> Any:
    return pytest.approx(values, rel=0, abs=1e-12)


def scored(predictions: list[Path], gold: list[Path], *, lenient: bool = False) -> Scored:
    scorer = CheckThatScorer()
    return scorer.score(scorer.read(predictions), GoldFiles(gold, ScorerOptions(lenient=lenient)))


def debate(folder: Path, name: str, lines: int, relevant: set[int]) -> tuple[Path, Path]:
    """Write a result file that ranks the lines in their order, and its gold file."""
    numbers = range(1, lines + 1)
    prediction, gold = folder / f"{name}.tsv", folder / f"{name}-gold.tsv"
    prediction.write_text("".join(f"{number}\t{1 / number:.6f}\n" for number in numbers))
    gold.write_text("".join(f"{number}\tA\tText.\t{int(number in relevant)}\n" for number in numbers))
    return prediction, gold


def test_all_recorded_cases_are_read() -> None:
    assert (len(SCORED), len(CHECKED)) == (12, 47)


@pytest.mark.parametrize("name", SCORED)
def test_case(name: str) -> None:
    inputs, expected = CASES[name]["inputs"], CASES[name]["expected"]
    files = {role: [FOLDER / name / file for file in inputs[role]] for role in ("predictions", "gold")}
    try:
        official = scored(files["predictions"], files["gold"]).official
    except NotScorable as error:
        assert error.official == expected.get("error")
        assert error.exit_code == 4
        return
    assert dict(official.values) == close(expected["values"])
    assert list(official.per_topic) == list(expected["per_file"])
    for file, values in expected["per_file"].items():
        assert official.per_topic[file] == close(values)


@pytest.mark.parametrize(("name", "file", "verdict"), CHECKED)
def test_format_check(name: str, file: str, verdict: dict[str, str]) -> None:
    try:
        messages = [failure.official for failure in failures(FOLDER / name / file)]
    except NotScorable as error:
        messages = [error.official]
    assert messages[:1] == ([verdict["message"]] if verdict["verdict"] != "pass" else [])


def test_a_short_debate_stops_the_scorer_and_in_lenient_mode_only_p_at_missing_lines(tmp_path: Path) -> None:
    long, gold_of_long = debate(tmp_path, "long", 60, {1, 5})
    short, gold_of_short = debate(tmp_path, "short", 10, {2})
    with pytest.raises(NotScorable, match=r"short.tsv: 10 lines, too few for P@50; --lenient"):
        scored([long, short], [gold_of_long, gold_of_short])
    for step in (1, -1):
        lenient = scored([long, short][::step], [gold_of_long, gold_of_short][::step], lenient=True)
        values = lenient.official.values
        assert list(values)[:3] == ["MAP", "MRR", "mean R-Precision"]
        assert list(values)[3:] == [f"mean P@{k}" for k in CUTOFFS]
        assert values["MAP"] == close(((1 + 2 / 5) / 2 + 1 / 2) / 2)
        assert values["MRR"] == close((1 + 1 / 2) / 2)
        assert values["mean P@10"] == close((2 / 10 + 1 / 10) / 2)
        assert (values["mean P@20"], values["mean P@50"]) == close((2 / 20, 2 / 50))
        assert lenient.official.of_topics("mean P@50") == {"long.tsv": close(2 / 50), "short.tsv": None}
        assert lenient.official.of_topics() == {"long.tsv": close((1 + 2 / 5) / 2), "short.tsv": 1 / 2}
        assert not lenient.official.honest and lenient.topics == 2
        (warning,) = lenient.official.warnings
        assert "fails at short.tsv (10 lines), too few for P@50: P@20, P@50 are over" in warning
        assert warning.endswith("all other measures over all 2")


def test_a_single_short_debate_has_all_figures_within_its_lines(tmp_path: Path) -> None:
    short, gold_of_short = debate(tmp_path, "short", 44, {2})
    with pytest.raises(NotScorable, match=r"short.tsv: 44 lines, too few for P@50; --lenient"):
        scored([short], [gold_of_short])
    single = scored([short], [gold_of_short], lenient=True).official
    assert (single.measure, single.value) == ("AP", 1 / 2)
    assert list(single.values) == ["AP", "RR", "R-Precision", *(f"P@{k}" for k in CUTOFFS[:-1])]
    assert single.warnings[0].endswith("too few for P@50: no P@50")


def test_only_several_debates_have_means(tmp_path: Path) -> None:
    prediction, gold = debate(tmp_path, "first", 60, {2})
    other, gold_of_other = debate(tmp_path, "other", 60, {1})
    assert scored([prediction], [gold]).official.measure == "AP"
    both = scored([prediction, other], [gold, gold_of_other])
    assert (both.official.measure, both.official.value) == ("MAP", close(0.75))


def test_files_with_equal_names_are_listed_with_their_folders(tmp_path: Path) -> None:
    pairs = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        pairs.append(debate(tmp_path / name, "same", 60, {1}))
    official = scored([pairs[0][0], pairs[1][0]], [pairs[0][1], pairs[1][1]]).official
    assert list(official.per_topic) == [str(pairs[0][0]), str(pairs[1][0])]


def test_a_run_is_scored_like_its_official_files(tmp_path: Path) -> None:
    # Ties are in the order of ids in a run, of lines in a file.
    hits = Hits([f"d:{line}" for line in (10, 9, *range(1, 9), *range(11, 61))], [2.0, 2.0] + [1.0] * 58)
    scorer = CheckThatScorer()
    _prediction, gold = debate(tmp_path, "d", 60, {9})
    of_run = scorer.score(scorer.predictions(Run("t", (Ranking("d", hits),))), GoldFiles([gold])).official
    assert of_run.values["RR"] == 1.0
    assert list(of_run.per_topic) == ["d.tsv"]


def test_misleading_figures_have_warnings(tmp_path: Path) -> None:
    idle, gold_of_idle = debate(tmp_path, "idle", 60, set())
    other, gold_of_other = debate(tmp_path, "other", 60, {1})
    gold_of_other.write_text(gold_of_other.read_text().replace("2\tA\tText.\t0", "2\tA\tText.\t7"))
    warnings = scored([idle, other], [gold_of_idle, gold_of_other]).official.warnings
    assert "1 of 2 debates has no check-worthy line, such as idle.tsv" in warnings[0]
    assert "other.tsv has the labels 7, which count as not check-worthy" in warnings[1]


def test_figures_computed_by_hand() -> None:
    values = figures([3, 1, 2, 4], {1: 1, 2: 0, 3: 0, 4: 1})
    assert values["AP"] == close((1 / 2 + 2 / 4) / 2)
    assert (values["RR"], values["R"], values["R-Precision"]) == (0.5, 2, 0.5)
    assert {name: value for name, value in values.items() if name[0] == "P"} == close(
        {"P@1": 0, "P@3": 1 / 3}
    )
    assert "R" not in means([values]) and means([values, values])["MAP"] == close(values["AP"])


def test_equal_scores_keep_the_order_of_the_lines() -> None:
    gold = dict.fromkeys(range(1, 5), 0)
    assert ranking({1: 0.5, 2: 1.0, 3: 0.5, 4: 1.0}, gold, "d") == [2, 4, 1, 3]


def test_breakdowns(tmp_path: Path) -> None:
    numbers = range(1, 61)
    gold = tmp_path / "d.tsv"
    rows = [
        f"{n}\t{'SYSTEM' if n > 50 else 'ANN' if n % 2 else 'BOB'}\tText.\t{int(n in (1, 4))}\n"
        for n in numbers
    ]
    gold.write_text("".join(rows))
    scorer = CheckThatScorer()
    predictions = scorer.predictions(
        Run("t", (Ranking("d", Hits([f"d:{n}" for n in numbers], [100.0 - n for n in numbers])),))
    )
    breakdowns = scorer.breakdown(predictions, GoldFiles([gold], folder=tmp_path), scorer.breakdowns)
    by = {breakdown.name: breakdown for breakdown in breakdowns}
    (row,) = by["debate"].rows
    assert (row.group, row.count, row.values["AP"]) == ("d", 60, close((1 + 2 / 4) / 2))
    assert [row.group for row in by["event"].rows] == ["several voices"]
    assert {row.group: (row.count, row.values["MAP"]) for row in by["speaker"].rows} == {
        "ANN": (25, 1.0),
        "BOB": (25, 0.5),
    }
