"""A task of one's own, judgments and runs of it, with hostile text in every field that can hold text."""

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
"""What every document and topic has."""
DOCUMENTS, TOPICS = 5, 3
RANKED = (2, 3, 4, 1, 0)
"""The documents as every topic ranks them: whichever kind comes first in the texts, it is the same for the screens."""
SPICES = [f"s{number}" for number in range(4 * (DOCUMENTS - 1))]
"""What topics ask for, and a document has four fewer of than the one before it."""


@dataclass
class World:
    """The files. Marks of fields that stand in them are in `hostile`."""

    folder: Path
    hostile: Hostile
    task: Path
    home: Path
    run: Path
    """Where the run is to be written."""
    documents: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    people: list[str] = field(default_factory=list)
    model: str = ""
    analyzer: str = ""
    recipe: str = ""
    column: str = ""
    gold: Path = Path()

    @property
    def log(self) -> Path:
        return self.home / "judgments.sqlite"


def build(folder: Path, hostile: Hostile) -> World:
    """Write the task and its files; nothing is indexed, ranked or judged yet."""
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
    world.task.write_text(_described(world, data), encoding="utf-8")
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
            f"{topic} 0 {document} {(place + number) % 3}\n"
            for number, topic in enumerate(world.topics)
            for place, document in enumerate(world.documents[:-1])
        ),
        encoding="utf-8",
    )


def _described(world: World, data: Path) -> str:
    hostile = world.hostile
    # a dot would part the names of settings
    world.analyzer = hostile.text("name of an analyzer").replace(".", "")
    token_filter = hostile.text("name of a token filter").replace(".", "")
    world.recipe = "".join(hostile.text("name of a recipe").split())  # it becomes a run's tag
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
    """Write what people and a model say, in disagreement, with notes and reasons."""
    hostile = world.hostile
    # white space around a name is no part of it: `judge` would not know who has judged
    world.people = [hostile.text(f"{place} annotator").strip() for place in ("first", "second")]
    world.model = hostile.text("model that annotates")
    topic, documents = world.topics[0], world.documents
    run = world.run.name
    with JudgmentLog(world.log) as log:
        for place, name in enumerate(world.people):
            session = Session(log, TASK, Author(name))
            places = [SeenDocument(topic, document, run, 1) for document in documents]
            session.grade(places[:1], place, hostile.text(f"reason of annotator {place}"))
            session.grade(places[1:2], 2 * place)
            session.note(places[1], hostile.text(f"note of annotator {place}"))
            session.cant_tell(places[2], hostile.text(f"why annotator {place} can't tell"))
        Session(log, TASK, Author(world.model, Kind.model)).grade(
            [SeenDocument(topic, documents[0], run, 1)], 2, hostile.text("reason of a model")
        )


def events_file(world: World) -> Path:
    """A file of events that somebody else has written, of an annotator of its own."""
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
    """The file of a bench of the task, with a group of its topics."""
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
    """A TREC run from elsewhere."""
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
    """A TOML string, which can hold everything as escapes."""
    inner = "".join(
        one if one.isascii() and one.isprintable() and one not in '"\\' else f"\\U{ord(one):08x}"
        for one in text
    )
    return f'"{inner}"'


def _write_jsonl(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
