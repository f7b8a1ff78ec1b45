"""Which documents of runs to judge, in which order, and samples of them."""

from __future__ import annotations

from collections import Counter

import pytest

from searchapp.app.pooling import (
    PoolDesign,
    PoolOrder,
    StratumDesign,
    draw_sample,
    judging_progress,
    parse_strata,
    pool,
    sampled_documents,
)
from searchapp.errors import DataError, UsageError
from searchapp.model import Hit, Hits, Ranking, Run


def run(**rankings: str) -> Run:
    """Return a run whose documents are letters."""
    hits = {
        topic: Hits.of(*(Hit(document, 1.0) for document in documents))
        for topic, documents in rankings.items()
    }
    return Run("r", tuple(Ranking(topic, of_topic) for topic, of_topic in hits.items()))


def order(by: PoolOrder, *runs: str, depth: int = 10, **judged: int) -> str:
    (documents,) = pool([run(t=given) for given in runs], PoolDesign(by, depth), {"t": judged}).values()
    return "".join(documents)


def test_a_pool_has_the_top_of_every_run_by_the_best_rank() -> None:
    runs = [run(t="abc", u="x"), run(t="dcb")]
    assert pool(runs, PoolDesign(depth=2)) == {"t": ["a", "d", "b", "c"], "u": ["x"]}
    assert pool(runs, PoolDesign(depth=2, size=3)) == {"t": ["a", "d", "b"], "u": ["x"]}
    design = PoolDesign(depth=2, size=3, unjudged=True)
    assert pool(runs, design, {"t": {"a": 0, "d": 2}}) == {"t": ["b", "c"], "u": ["x"]}


def test_fused_order_uses_the_whole_rankings_but_only_documents_to_the_depth() -> None:
    # b: 1/62 + 1/62, a: 1/61 + 1/64, d: 1/61, c: 1/63 + 1/63, of which depth 2 has no c.
    assert order(PoolOrder.rrf, "abc", "dbca", depth=2) == "bad"


def test_disagreement_puts_documents_first_that_decide_differences() -> None:
    # Equal ranks do not differ; a document that a run lacks has the discount 0 there.
    assert order(PoolOrder.disagreement, "abx", "bax") == "abx"
    assert order(PoolOrder.disagreement, "xab", "xbc") == "acbx"
    assert order(PoolOrder.disagreement, "ab") == "ab"


def test_move_to_front_follows_the_run_that_found_relevant_documents() -> None:
    # Without judgments the runs take turns. Then the second run goes on until a document is not relevant.
    assert order(PoolOrder.mtf, "abcd", "wxyz") == "awbxcydz"
    assert order(PoolOrder.mtf, "abcd", "wxyz", a=0, w=1, x=1) == "ybzcd"
    # A document that a run repeats after another does not count for it.
    assert order(PoolOrder.mtf, "ab", "ac", a=1) == "bc"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "use the form"),
        ("10", "use the form"),
        ("10=all", "use the form"),
        ("10=1,10=0.5", "must be at least 1 and increase, unlike 10=0.5"),
        ("0=1", "at least 1"),
        ("10=0", "the share of 10=0 must be above 0"),
        ("10=1.5", "at most 1"),
        ("10=nan", "at most 1"),
    ],
)
def test_invalid_strata_are_rejected(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_strata(text)


def test_strata_are_samples_by_best_rank_with_known_probabilities() -> None:
    first, second = "".join(map(chr, range(0x100, 0x128))), "".join(map(chr, range(0x127, 0x0FF, -1)))
    runs = [run(t=first), run(t=second)]
    strata = parse_strata("3=1, 20=0.1")
    assert strata == (StratumDesign(3, 1.0), StratumDesign(20, 0.1))
    sample = draw_sample(runs, strata, seed=4)
    top, rest = sample["t"]
    assert set(top.sampled) == {*first[:3], *second[:3]} and not top.unsampled and top.probability == 1
    assert set(rest.documents) == {*first[3:20], *second[3:20]} and len(rest.sampled) == 4  # 3.4, rounded up
    assert rest.probability == 4 / 34
    assert draw_sample(reversed(runs), strata, seed=4) == sample != draw_sample(runs, strata, seed=5)
    assert sorted(sampled_documents(sample, 4)["t"]) == sorted(top.sampled + rest.sampled)
    counts = Counter(
        document for seed in range(500) for document in draw_sample(runs, strata, seed)["t"][1].sampled
    )
    assert all(
        abs(counts[document] / 500 - 4 / 34) < 0.06 for document in rest.documents
    )  # 4 standard errors


def test_strata_draw_two_documents_at_least() -> None:
    ((tens,),) = draw_sample([run(t="abcdefghij")], parse_strata("10=0.01"), 0).values()
    assert len(tens.sampled) == 2
    ((alone,),) = draw_sample([run(t="a")], parse_strata("10=0.01"), 0).values()
    assert alone.sampled == ("a",) and alone.probability == 1


def test_progress_counts_relevant_documents_that_are_not_found() -> None:
    sample = draw_sample([run(t="abcdefghij", u="klm")], parse_strata("2=1,10=0.5"), 0)
    with pytest.raises(DataError, match="judge the pool"):
        judging_progress(sample, {"t": {"a": 1}})
    rest = sample["t"][1]
    grades = dict.fromkeys((*sample["t"][0].sampled, *rest.sampled[:2]), 1) | dict.fromkeys(
        rest.sampled[2:], 0
    )
    progress = judging_progress(sample, {"t": grades})
    # Four sampled documents of eight, two of them relevant, stand for four.
    assert (progress.topics, progress.of_topics, progress.found, progress.unjudged) == (1, 2, 4, 4)
    assert progress.missing.value == pytest.approx(2) and progress.recall(2) == pytest.approx(4 / 6)
    everything = judging_progress(sample, {"t": grades | dict.fromkeys(rest.unsampled, 0)})
    assert (everything.missing.low, everything.missing.high) == (0, 0) and everything.recall(0) == 1
