from __future__ import annotations

from searchapp.judging.events import Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import JudgingSession, SeenDocument, Session, own_seed

RANKINGS = {"t1": ["a", "b", "c", "d"], "t2": ["b", "a"], "t3": []}


def open_session(
    log: JudgmentLog, name: str = "ann", depth: int | None = None, seed: int | None = None
) -> JudgingSession:
    session = Session(log, "nlps", Author(name))
    return JudgingSession(
        session,
        list(RANKINGS),
        RANKINGS.__getitem__,
        lambda topic: len(RANKINGS[topic]),
        "run@1",
        depth,
        seed,
    )


def test_progress_counts_documents_of_this_run_that_this_annotator_judged(log: JudgmentLog) -> None:
    judging = open_session(log, depth=3)
    judging.grade("t1", ["a"], 1)
    judging.cant_tell("t1", "b")
    judging.skip("t1", "c")
    judging.session.grade([SeenDocument("t1", "not in the run"), SeenDocument("t1", "d")], 1)
    other = open_session(log, "ben", depth=3)
    assert (open_session(log, depth=3).judged("t1"), judging.length("t1"), other.judged("t1")) == (2, 3, 0)
    assert open_session(log).judged("t1") == 3  # without a depth, d counts too


def test_undone_documents_are_unjudged_again(log: JudgmentLog) -> None:
    judging = open_session(log)
    judging.grade("t1", ["a", "b"], 1)
    assert judging.next_unjudged("t1") == 2
    judging.undo()
    assert (judging.next_unjudged("t1"), judging.judged("t1"), judging.scores("t1")) == (0, 0, None)
    judging.redo()
    assert judging.next_unjudged("t1", after=3) == 2


def test_topics_without_unjudged_documents_are_skipped(log: JudgmentLog) -> None:
    judging = open_session(log)
    assert judging.next_unjudged_topic(after=1) == 0  # t3 is empty
    judging.grade("t1", RANKINGS["t1"], 0)
    judging.grade("t2", RANKINGS["t2"], 0)
    assert judging.next_unjudged_topic() is None


def test_scores_are_of_the_full_ranking_at_any_depth(log: JudgmentLog) -> None:
    judging = open_session(log, depth=1)
    judging.session.grade([SeenDocument("t1", "d")], 1)
    judging.refresh()
    scores = open_session(log, depth=1).scores("t1")
    assert scores is not None and scores.ap == 1 / 4


def test_the_mean_is_over_topics_with_grades(log: JudgmentLog) -> None:
    judging = open_session(log)
    judging.grade("t1", ["a"], 1)
    judging.grade("t2", ["a"], 1)
    assert judging.unscored() == ["t1", "t2"]
    for topic in judging.unscored():
        judging.scores(topic)
    overall, topics = judging.mean_scores()
    assert topics == 2 and overall is not None and overall.ap == (1 + 1 / 2) / 2


def test_a_seed_shuffles_the_same_way_each_time_and_is_recorded(log: JudgmentLog) -> None:
    orders = {open_session(log, depth=3, seed=seed).order("t1").documents for seed in range(20)}
    assert len(orders) > 1 and all(set(order) == {"a", "b", "c"} for order in orders)
    judging = open_session(log, seed=5)
    assert judging.order("t1").documents == open_session(log, seed=5).order("t1").documents
    (event,) = judging.grade("t1", ["c"], 1).events
    assert event.run == "run@1 shuffled with seed 5" and event.rank == 3
    assert own_seed("ann") == own_seed("ann") != own_seed("ben")


def test_notes_and_reasons_belong_to_the_document(log: JudgmentLog) -> None:
    judging = open_session(log)
    judging.note("t1", "a", "odd")
    judging.grade("t1", ["b"], 1, "why")
    assert (judging.words("t1", "a"), judging.words("t1", "b")) == ("odd", "why")
    judging.undo()
    judging.undo()
    assert (judging.words("t1", "a"), judging.words("t1", "b")) == ("", "")


def test_a_refresh_reads_events_of_another_session(log: JudgmentLog) -> None:
    judging = open_session(log)
    open_session(log, "ann").grade("t1", ["a"], 1)  # the same annotator in another session
    assert judging.judged("t1") == 0
    assert judging.refresh() and not judging.refresh()
    assert judging.judged("t1") == 1


def test_skipped_documents_come_again_and_those_marked_cant_tell_do_not(log: JudgmentLog) -> None:
    judging = open_session(log)
    judging.skip("t2", "b")
    assert judging.next_unjudged("t2") == 0
    assert judging.next_unjudged("t2", after=0) == 1
    judging.cant_tell("t2", "b", "the page is cut off")
    judging.note("t2", "a", "nice")
    assert judging.next_unjudged("t2", after=1) == 1
    assert judging.judged("t2") == 1
    judging.grade("t2", ["a"], 0)
    assert judging.next_unjudged("t2") is None
