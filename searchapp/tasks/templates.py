"""The query templates that need nothing of a task but text, for tasks that have none of the same name."""

from __future__ import annotations

from typing import Any

from searchapp import resources
from searchapp.tasks.base import TaskInfo


def general_names() -> list[str]:
    """Their names."""
    return sorted(
        file.stem for file in (resources.folder("query_templates") / resources.GENERAL).glob("*.json")
    )


def general(info: TaskInfo, name: str) -> dict[str, Any]:
    """One of them, which leaves the topic itself out where topics are documents."""
    body = resources.query_template(resources.GENERAL, name)
    if info.topics_are_documents:
        itself = {"term": {"id": "{{topic.id}}"}}
        body["query"] = {"bool": {"must": [body["query"]], "must_not": [itself]}}
    return body
