"""The linear model of lines of transcripts: what it sees of a line, and what it makes of it."""

from __future__ import annotations

import math

import pytest

from searchapp.errors import DataError
from searchapp.ranking.signals.lines import MEASURES, LineModel, TranscriptLine, line_features

SPEECH = [
    TranscriptLine("ANN", "Taxes rose by 40 percent in 2016, and we paid $3 million more."),
    TranscriptLine("ANN", "Thank you!"),
    TranscriptLine("BOB", "Will you let New York City pay?"),
    TranscriptLine("ANN", "You didn’t ask Senator Kane."),
] * 3
WANTED = [True, False, False, False] * 3


LOG_ODDS: dict[str | None, float] = {"ANN": 0.5, "BOB": -2.0, None: -1.0}


def measured(text: str, speaker: str = "ANN") -> dict[str, float]:
    (line,) = line_features([TranscriptLine(speaker, text)])
    return dict(zip(MEASURES, line.measures, strict=True))


def fitted(seed: int = 1) -> LineModel:
    counts = [1.0] * len(WANTED)
    return LineModel.train(
        line_features(SPEECH), WANTED, counts, LOG_ODDS, cost=1.0, min_df=2, style_weight=0.1, seed=seed
    )


def test_numbers_are_one_word_and_pairs_are_words_too() -> None:
    (line,) = line_features([TranscriptLine("", "He’s paid $1,200.50, and 30% of 5.")])
    assert line.words["0"] == 3 and line.words["% of"] == 1
    assert {"he's", "he's paid", "paid 0", "0 and"} <= line.words.keys()


def test_what_is_measured_of_a_line() -> None:
    found = measured(SPEECH[0].text)
    assert (found["percent"], found["money"], found["year"], found["question"]) == (1, 1, 1, 0)
    assert found["digits"] == math.log1p(3) and found["magnitude"] == math.log1p(2)
    assert found["past"] == math.log1p(2) and found["future"] == 0
    assert found["first"] == math.log1p(1)
    asked = measured(SPEECH[2].text)
    assert (asked["question"], asked["names"], asked["second"]) == (1, math.log1p(1), math.log1p(1))
    assert asked["capitals"] == 3 / 8  # the question mark is a word of its own
    assert asked["future"] == math.log1p(2)
    assert measured("I did, I'm sure: I need it.")["names"] == 0


def test_place_and_speaker_are_measured_in_the_transcript() -> None:
    places = [dict(zip(MEASURES, line.measures, strict=True)) for line in line_features(SPEECH[:4])]
    assert [one["position"] for one in places] == [0.25, 0.5, 0.75, 1.0]
    assert [one["change"] for one in places] == [1, 0, 1, 1]


def test_nothing_to_see_is_seen() -> None:
    assert line_features([]) == []
    assert measured("…")["length"] == 0 and measured("…")["capitals"] == 0


def test_a_model_tells_lines_apart_and_its_parts_are_the_margin() -> None:
    model, seen = fitted(), line_features(SPEECH)
    margins = model.margins(seen, 0.0)
    assert min(margins[[0, 4, 8]]) > 0 > max(margins[[1, 2, 3]])
    for weight in (0.0, 0.5):
        for line, margin in zip(seen, model.margins(seen, weight), strict=True):
            parts = model.parts(line, weight)
            assert model.intercept + sum(part.value for part in parts) == pytest.approx(margin)
    parts = model.parts(seen[0], 0.0)
    assert parts[0].value > 0 and [abs(part.value) for part in parts] == sorted(
        (abs(part.value) for part in parts), reverse=True
    )
    assert any(part.feature.startswith("measure “digits” 1.39, ") for part in parts)
    assert any(part.feature == "words “percent”" for part in parts)


def test_lines_that_count_more_weigh_more() -> None:
    seen, wanted = line_features(SPEECH[:4]), [True, False, True, False]

    def margins(counts: list[float]) -> list[float]:
        model = LineModel.train(seen, wanted, counts, LOG_ODDS, cost=1.0, min_df=1, style_weight=0.1, seed=1)
        return list(model.margins(seen, 0.0))

    first, third = margins([5.0, 1.0, 0.2, 1.0]), margins([0.2, 1.0, 5.0, 1.0])
    assert first[0] > third[0] and first[2] < third[2]


def test_a_model_is_kept_as_it_is() -> None:
    model, seen = fitted(), line_features(SPEECH)
    again = LineModel.read(model.header(), model.arrays())
    assert again.words == model.words and again.log_odds == LOG_ODDS
    for weight in (0.0, 0.5):
        assert list(again.margins(seen, weight)) == list(model.margins(seen, weight))
    assert list(fitted(seed=2).margins(seen, 0.0)) == list(model.margins(seen, 0.0))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("features", ["b", "a"]),
        ("features", "a"),
        ("measures", ["length"]),
        ("measures", None),
        ("speakers", ["BOB", "ANN"]),
        ("speakers", ["ANN", "ANN"]),
        ("speakers", "ANN"),
    ],
)
def test_a_header_that_says_something_else_is_refused(key: str, value: object) -> None:
    model = fitted()
    with pytest.raises(DataError, match=f"the model's {key} are invalid"):
        LineModel.read({**model.header(), key: value}, model.arrays())
    with pytest.raises(DataError, match="the model's means are invalid"):
        LineModel.read(model.header(), {**model.arrays(), "means": model.arrays()["idf"]})
    with pytest.raises(DataError, match="the model's log_odds are invalid"):
        LineModel.read({**model.header(), "speakers": ["ANN"]}, model.arrays())
