"""Files of an own task, its judgments and runs, with hostile text in every text field."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from searchapp.judging.events import Action, Author, Channel, Event, Kind
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from tests.hostile.payload import Hostile

TASK = "hostile"
WORD = "lentils"
"""A word of every document and topic."""
DOCUMENTS, TOPICS = 5, 3
RANKED = (2, 3, 4, 1, 0)
"""The ranking of every topic, as positions of documents; it does not depend on the hostile text."""
SPICES = [f"s{number}" for number in range(4 * (DOCUMENTS - 1))]
"""Words of every topic. Each document has four fewer of them than the document ranked before it."""


@dataclass
class World:
    """The files and names of a hostile task; `hostile` maps marks to fields."""

    folder: Path
    hostile: Hostile
    task: Path
    home: Path
    run: Path
    """The directory into which the run is written."""
    documents: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    annotators: list[str] = field(default_factory=list)
    model: str = ""
    analyzer: str = ""
    recipe: str = ""
    column: str = ""
    gold: Path = Path()

    @property
    def log(self) -> Path:
        return self.home / "judgments.sqlite"


def build(folder: Path, hostile: Hostile) -> World:
    """Write the task and its files, without index, run or judgments."""
    data = folder / hostile.name("folder of the task")
    data.mkdir()
    home = folder / hostile.name("home folder")
    home.mkdir()
    world = World(
        folder=folder,
        hostile=hostile,
        task=data / (hostile.name("task file") + ".toml"),
        home=home,
        run=folder / hostile.name("run directory"),
    )
    _documents_and_topics(world, data)
    world.task.write_text(_task_toml(world, data), encoding="utf-8")
    return world


def _documents_and_topics(world: World, data: Path) -> None:
    hostile = world.hostile
    world.documents = [hostile.id(f"id of document {number}") for number in range(DOCUMENTS)]
    world.topics = [hostile.id(f"id of topic {number}") for number in range(TOPICS)]
    texts = [
        hostile.long("long text of a document"),
        *(hostile.text(f"text of document {number}", nul=True) for number in range(1, DOCUMENTS)),
    ]
    title, group = hostile.text("title of a document"), hostile.text("group of documents")
    world.column = hostile.text("name of a column")
    _write_jsonl(
        data / "documents.jsonl",
        (
            {
                "id": id_,
                "text": f"{text} {WORD} {' '.join(SPICES[4 * RANKED.index(number) :])}",
                "title": title,
                "group": group,
                "part": number,
                world.column: hostile.text(f"further field of document {number}") if number == 0 else "plain",
            }
            for number, (id_, text) in enumerate(zip(world.documents, texts, strict=True))
        ),
    )
    with (data / "documents.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"id": world.documents[0], "text": "twice"}) + "\n")
    level = hostile.text("further field of a topic")
    words = " ".join([WORD, *SPICES])
    _write_jsonl(
        data / "topics.jsonl",
        (
            {"id": id_, "text": f"{hostile.text(f'text of topic {number}')} {words}", "level": level}
            for number, id_ in enumerate(world.topics)
        ),
    )
    world.gold = data / (hostile.name("gold file") + ".txt")
    world.gold.write_text(
        "".join(
            f"{topic} 0 {document} {(position + number) % 3}\n"
            for number, topic in enumerate(world.topics)
            for position, document in enumerate(world.documents[:-1])
        ),
        encoding="utf-8",
    )


def _task_toml(world: World, data: Path) -> str:
    hostile = world.hostile
    # dots separate the names of settings
    world.analyzer = hostile.text("name of an analyzer").replace(".", "")
    token_filter = hostile.text("name of a token filter").replace(".", "")
    world.recipe = "".join(
        hostile.text("name of a recipe").split()
    )  # it becomes a run's tag, which has no white space
    analyzer = {"type": "custom", "tokenizer": "whitespace", "filter": [token_filter]}
    mapping = {
        "settings": {
            "analysis": {
                "analyzer": {world.analyzer: analyzer},
                "filter": {token_filter: {"type": "lowercase"}},
            }
        },
        "mappings": {
            "properties": {
                "id": {"type": "keyword"},
                "text": {"type": "text", "analyzer": world.analyzer},
                "group": {"type": "keyword"},
            }
        },
    }
    mapping_file = data / (hostile.name("mapping file") + ".json")
    mapping_file.write_text(json.dumps(mapping), encoding="utf-8")
    grades = [hostile.text(f"label of grade {grade}") for grade in range(3)]
    return f"""name = "{TASK}"
title = {quoted(hostile.text("title of the task"))}
about = {quoted(hostile.text("about the task"))}
grades = [{", ".join(map(quoted, grades))}]
mapping = {quoted(mapping_file.name)}
judging_depth = {DOCUMENTS}
[documents]
file = "documents.jsonl"
text = "text"
fields = {{ title = "title", group = "group", part = "part", further = {quoted(world.column)} }}
context = ["group", "part"]
[topics.dev]
file = "topics.jsonl"
fields = ["level"]
gold = {quoted(world.gold.name)}
[recipes.{quoted(world.recipe)}]
about = {quoted(hostile.text("about a recipe"))}
template = "bm25"
[recipes.fused]
template = "bm25"
signals = [
  {{ signal = "direct", name = {quoted(hostile.text("name of a signal"))}, template = "bm25" }},
  {{ signal = "direct", name = "other", template = "words", weight = 0.5 }},
]
"""


def judge(world: World) -> None:
    """Write grades of two people and a model that disagree, with notes and reasons."""
    hostile = world.hostile
    # the log strips names, and `judge --annotator` must find them
    world.annotators = [hostile.text(f"{ordinal} annotator").strip() for ordinal in ("first", "second")]
    world.model = hostile.text("model that annotates")
    topic, documents = world.topics[0], world.documents
    run = world.run.name
    with JudgmentLog(world.log) as log:
        for number, name in enumerate(world.annotators):
            session = Session(log, TASK, Author(name))
            shown = [SeenDocument(topic, document, run, 1) for document in documents]
            session.grade(shown[:1], number, hostile.text(f"reason of annotator {number}"))
            session.grade(shown[1:2], 2 * number)
            session.note(shown[1], hostile.text(f"note of annotator {number}"))
            session.cant_tell(shown[2], hostile.text(f"why annotator {number} can't tell"))
        Session(log, TASK, Author(world.model, Kind.model)).grade(
            [SeenDocument(topic, documents[0], run, 1)], 2, hostile.text("reason of a model")
        )


def events_file(world: World) -> Path:
    """Write a file of events of a further annotator."""
    path = world.folder / (world.hostile.name("file of events") + ".jsonl")
    author = Author(world.hostile.text("imported annotator"), Kind.person, Channel.imported)
    event: Event = author.event(
        TASK,
        world.topics[1],
        world.documents[0],
        Action.grade,
        grade=1,
        text=world.hostile.text("imported reason"),
        run=world.hostile.text("run of an imported event"),
    )
    _write_jsonl(path, [event.to_json()])
    return path


def bench(world: World) -> Path:
    """Write the file of a bench of the task, with a group of its topics."""
    path = world.folder / (world.hostile.name("file of a bench") + ".toml")
    path.write_text(
        f"""out = {quoted(world.hostile.name("folder of a bench"))}
permutations = 100
[recipes.bm25]
[recipes.own]
recipe = {quoted(world.recipe)}
[tasks.hostile]
task = {quoted(str(world.task.relative_to(world.folder)))}
splits = "dev"
lenient = true
[tasks.hostile.groups.some]
topics = [{", ".join(map(quoted, world.topics))}]
""",
        encoding="utf-8",
    )
    return path


def trec_run(world: World) -> Path:
    """Write a TREC run that searchapp did not make."""
    path = world.folder / (world.hostile.name("TREC run") + ".trec")
    tag = world.hostile.id("tag of a TREC run")
    lines = [
        f"{topic} Q0 {document} {rank} {9 - rank} {tag}\n"
        for topic in world.topics
        for rank, document in enumerate(world.documents, 1)
    ]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def quoted(text: str) -> str:
    """Return a TOML string with every special character escaped."""
    inner = "".join(
        character
        if character.isascii() and character.isprintable() and character not in '"\\'
        else f"\\U{ord(character):08x}"
        for character in text
    )
    return f'"{inner}"'


def _write_jsonl(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
