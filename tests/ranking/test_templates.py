"""Query templates and their placeholders."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.errors import DataError
from searchapp.ranking.templates import Template

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=10,
)


def test_a_placeholder_is_replaced_by_its_value() -> None:
    template = Template({"query": {"match": {"text": "{{topic.text}}"}}})
    assert template.render({"topic.text": "normal subgroup"}) == {
        "query": {"match": {"text": "normal subgroup"}}
    }


@given(JSON_VALUES)
def test_a_value_keeps_its_type(value: object) -> None:
    rendered = Template({"list": [{"key": "{{topic.x}}"}]}).render({"topic.x": value})
    assert rendered == {"list": [{"key": value}]}
    assert type(rendered["list"][0]["key"]) is type(value)


@given(st.text())
def test_no_text_can_change_the_structure_of_the_query(text: str) -> None:
    template = Template({"match": {"text": "{{topic.text}}"}, "size": "{{depth}}"})
    body = template.render({"topic.text": text, "depth": 3})
    assert json.loads(json.dumps(body)) == {"match": {"text": text}, "size": 3}


def test_values_that_look_like_placeholders_are_not_replaced() -> None:
    template = Template({"match": {"text": "{{topic.text}}"}})
    assert template.render({"topic.text": "{{depth}}", "depth": 5}) == {"match": {"text": "{{depth}}"}}


def test_rendering_does_not_change_the_template() -> None:
    body = {"ids": ["{{topic.id}}"]}
    template = Template(body)
    template.render({"topic.id": "a"})
    assert body == {"ids": ["{{topic.id}}"]}
    assert template.render({"topic.id": "b"}) == {"ids": ["b"]}


def test_the_error_for_a_missing_variable_lists_the_variables() -> None:
    template = Template({"match": {"text": "{{topic.answer}}"}}, "nlps/mine")
    with pytest.raises(
        DataError, match=r"nlps/mine: match.text: there is no variable \{\{topic.answer\}\}.*topic.text"
    ):
        template.render({"topic.text": "x"})
    with pytest.raises(DataError, match=r"topic.answer\}\} \(did you mean topic.answers\?\): this task"):
        template.render({"topic.text": "x", "topic.answers": "y"})


@pytest.mark.parametrize(
    "leaf",
    ["prefix {{topic.text}}", "{{topic.text}} {{topic.id}}", "{{ }}", "{{Topic}}", "{{topic.text", "{{a b}}"],
)
def test_a_placeholder_with_other_text_is_rejected(leaf: str) -> None:
    with pytest.raises(DataError, match="is not a placeholder"):
        Template({"match": {"text": leaf}})


@pytest.mark.parametrize(
    ("leaf", "tag"),
    [
        ("{{#lang}}{{text}}{{/lang}}", "{{#lang}}"),
        ("{{^lang}}en{{/lang}}", "{{^lang}}"),
        ("{{> part}}", "{{> part}}"),
        ("{{{topic.text}}}", "{{{topic.text}}}"),
        ("{{&topic.text}}", "{{&topic.text}}"),
        ("{{#join}}words{{/join}}", "{{#join}}"),
        ("{{! a remark}}", "{{! a}}"),
    ],
)
def test_other_parts_of_search_templates_are_rejected_by_name(leaf: str, tag: str) -> None:
    with pytest.raises(DataError) as caught:
        Template({"match": {"text": leaf}}, "mine/t")
    assert str(caught.value).startswith(f"mine/t: match.text: {tag} of a search template is not supported")


def test_a_placeholder_as_a_key_is_rejected() -> None:
    with pytest.raises(DataError, match="a placeholder can't be a key"):
        Template({"match": {"{{topic.field}}": "x"}})


def test_all_problems_are_reported_with_their_paths() -> None:
    body = {"a": ["{{topic.text}} x", {"{{b}}": 1}], "c": "{{ D }}"}
    with pytest.raises(DataError) as caught:
        Template(body, "mine/t")
    assert [line[: line.index(": ", len("mine/t: "))] for line in caught.value.lines] == [
        "mine/t: a[0]",
        "mine/t: a[1]",
        "mine/t: c",
    ]
    template = Template({"a": "{{topic.x}}", "b": ["{{topic.y}}", "{{topic.text}}"]}, "mine/t")
    with pytest.raises(DataError, match=r"mine/t: a: .*\n?.*\nmine/t: b\[0\]: there is no variable"):
        template.render({"topic.text": "x"})
