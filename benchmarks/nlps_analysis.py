"""Measure what each part of the premise mapping and its query template contributes.

Each variant changes one part of the shipped `index_mappings/premises.json` or `query_templates/nlps/bm25.json`. It is
indexed into a temporary index, which ranks the training topics of a split; their gold is used for scoring only. Prints
the table as Markdown.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elasticsearch import Elasticsearch, helpers

JSON = dict[str, Any]
ROOT = Path(__file__).resolve().parent.parent
DEPTH = 500
BATCH = 50


@dataclass(frozen=True)
class Topic:
    """A statement with the ids of its gold premises."""

    id: str
    text: str
    premises: frozenset[str]


@dataclass
class Setup:
    """A mapping with its query template; a variant changes one of them in place."""

    mapping: JSON
    template: JSON

    @property
    def analysis(self) -> JSON:
        """The `analysis` part of the index settings."""
        analysis: JSON = self.mapping["settings"]["analysis"]
        return analysis

    @property
    def matches(self) -> list[JSON]:
        """The scored clauses of the query."""
        clauses: list[JSON] = self.template["query"]["bool"]["should"]
        return clauses

    def keep_fields(self, *names: str) -> None:
        """Keep only the clauses on these fields."""
        self.matches[:] = [c for c in self.matches if field_of(c) in names]

    def drop_field(self, name: str) -> None:
        """Remove the clause on a field."""
        self.matches[:] = [c for c in self.matches if field_of(c) != name]

    def drop_steps(self, *steps: str) -> None:
        """Remove character filters and token filters from all analyzers."""
        for analyzer in self.analysis["analyzer"].values():
            for kind in ("char_filter", "filter"):
                analyzer[kind] = [step for step in analyzer[kind] if step not in steps]


def field_of(clause: JSON) -> str:
    """Return the field of a `match` clause."""
    return str(next(iter(clause["match"])))


def unchanged(_: Setup) -> None:
    """The shipped mapping and template."""


def statement_only(setup: Setup) -> None:
    """Rank only with the field that contains words and symbols."""
    setup.matches[:] = [{"match": {"text": {"query": "{{topic.text}}"}}}]


def english_analyzer(setup: Setup) -> None:
    """Rank one field with Elasticsearch's own English analyzer and default BM25."""
    setup.mapping["mappings"]["properties"]["text"] = {"type": "text", "analyzer": "english"}
    statement_only(setup)


def repeated_terms(setup: Setup) -> None:
    """Count repeated terms of a statement repeatedly."""
    setup.drop_steps("unique_terms")


def stemmer(language: str) -> Callable[[Setup], None]:
    """Fold inflection with another stemmer."""

    def change(setup: Setup) -> None:
        setup.analysis["filter"]["inflection"]["language"] = language

    return change


def function_words_kept(setup: Setup) -> None:
    """Keep function words, also in pairs of words."""
    setup.drop_steps("function_words")
    for analyzer in setup.analysis["analyzer"].values():
        if analyzer["tokenizer"] == "content_words":
            analyzer["tokenizer"] = "words"


def steps_removed(*steps: str) -> Callable[[Setup], None]:
    """Remove analysis steps from all analyzers."""
    return lambda setup: setup.drop_steps(*steps)


def field_removed(name: str) -> Callable[[Setup], None]:
    """Remove a field from the query."""
    return lambda setup: setup.drop_field(name)


def only_fields(*names: str) -> Callable[[Setup], None]:
    """Query only these fields."""
    return lambda setup: setup.keep_fields(*names)


def default_bm25(setup: Setup) -> None:
    """Use k1 1.2 and b 0.75 in all fields."""
    for similarity in setup.mapping["settings"]["similarity"].values():
        similarity.update(k1=1.2, b=0.75)


def equal_boosts(setup: Setup) -> None:
    """Give all fields the boost 1."""
    for clause in setup.matches:
        clause["match"][field_of(clause)]["boost"] = 1.0


def lowercase_symbols(setup: Setup) -> None:
    """Ignore case in formulae."""
    for name, analyzer in setup.analysis["analyzer"].items():
        if name.startswith("formula"):
            analyzer["filter"].insert(1, "lowercase")


PLURALS = ("irregular_plurals", "plurals_in_es")
FORMULAE = ("text.formulae", "text.formula_pairs")
DEFINED = ("text.defined", "text.defined_pairs")

VARIANTS: dict[str, tuple[str, Callable[[Setup], None]]] = {
    "shipped": ("shipped", unchanged),
    "english": ("one field, Elasticsearch's `english` analyzer, default BM25", english_analyzer),
    "statement": ("one field with words and symbols (`text`)", statement_only),
    "prose-only": ("`text.prose` only", only_fields("text.prose")),
    "formulae-only": ("`text.formulae` and `text.formula_pairs` only", only_fields(*FORMULAE)),
    "defined-only": ("`text.defined` and `text.defined_pairs` only", only_fields(*DEFINED)),
    "no-defined": ("without both fields of defined terms", only_fields("text.prose", *FORMULAE)),
    "no-prose": ("without `text.prose`", field_removed("text.prose")),
    "no-formulae": ("without `text.formulae`", field_removed("text.formulae")),
    "no-formula-pairs": ("without `text.formula_pairs`", field_removed("text.formula_pairs")),
    "no-defined-words": ("without `text.defined`", field_removed("text.defined")),
    "no-defined-pairs": ("without `text.defined_pairs`", field_removed("text.defined_pairs")),
    "default-bm25": ("k1 1.2 and b 0.75 everywhere", default_bm25),
    "equal-boosts": ("every boost 1", equal_boosts),
    "repeated-terms": ("with repeated query terms counted", repeated_terms),
    "no-stemming": (
        "without merging of plural forms",
        steps_removed("possessives", "not_plural", "inflection", *PLURALS),
    ),
    "regular-plurals": ("`minimal_english` without rules for other plurals", steps_removed(*PLURALS)),
    "porter2": ("`porter2` in place of `minimal_english`", stemmer("porter2")),
    "no-stop-words": ("with function words", function_words_kept),
    "no-notation": ("without merging of notation", steps_removed("notation", "latex_letters")),
    "layout-kept": ("with layout and bracket commands", steps_removed("latex_layout")),
    "markup-kept": ("with wiki markup", steps_removed("wiki_markup")),
    "lowercase-symbols": ("with lowercase formulae", lowercase_symbols),
}


def load_topics(data: Path, split: str, sample: int | None) -> list[Topic]:
    """Read the statements of a split, or a fixed random sample of them."""
    raw = json.loads((data / f"{split}_set.json").read_text(encoding="utf-8"))
    names = sorted(raw)
    if sample is not None and sample < len(names):
        names = sorted(random.Random(7).sample(names, sample))
    return [Topic(n, raw[n]["text"], frozenset(map(str, raw[n]["premises"]))) for n in names]


def fill(node: Any, values: JSON) -> Any:
    """Replace leaves that are placeholders by their values."""
    if isinstance(node, dict):
        return {key: fill(value, values) for key, value in node.items()}
    if isinstance(node, list):
        return [fill(value, values) for value in node]
    return values.get(node, node) if isinstance(node, str) else node


def search_bodies(template: JSON, index: str, topics: Sequence[Topic]) -> list[JSON]:
    """Return the header and body lines of a multi-search."""
    lines: list[JSON] = []
    for topic in topics:
        values = {"{{topic.text}}": topic.text, "{{topic.id}}": topic.id, "{{depth}}": DEPTH}
        lines += [{"index": index}, fill(template, values)]
    return lines


def rankings(
    client: Elasticsearch, index: str, template: JSON, topics: Sequence[Topic]
) -> Iterator[tuple[Topic, list[str]]]:
    """Rank the documents for all topics, best first, to the official depth.

    Raises RuntimeError when the server refuses a search or returns fewer than `DEPTH` documents.
    """
    for start in range(0, len(topics), BATCH):
        batch = topics[start : start + BATCH]
        answer = client.msearch(
            searches=search_bodies(template, index, batch),
            filter_path=["responses.hits.hits.sort", "responses.error"],
        )
        for topic, response in zip(batch, answer["responses"], strict=True):
            if "error" in response:
                raise RuntimeError(f"topic {topic.id}: {response['error']['reason']}")
            ranked = [hit["sort"][1] for hit in response["hits"]["hits"]]
            if len(ranked) != DEPTH:
                raise RuntimeError(f"topic {topic.id}: {len(ranked)} documents, not {DEPTH}")
            yield topic, ranked


def precisions(ranked: Sequence[str], premises: frozenset[str]) -> list[float]:
    """Return the precision at the rank of each retrieved premise."""
    result: list[float] = []
    for rank, document in enumerate(ranked, start=1):
        if document in premises:
            result.append((len(result) + 1) / rank)
    return result


def build(client: Elasticsearch, index: str, mapping: JSON, documents: JSON) -> None:
    """Index the documents into a new index with one shard and one segment."""
    client.options(ignore_status=404).indices.delete(index=index)
    settings = {**mapping["settings"], "number_of_shards": 1, "number_of_replicas": 0}
    client.indices.create(index=index, settings=settings, mappings=mapping["mappings"])
    actions = ({"_index": index, "id": k, "text": documents[k]} for k in sorted(documents))
    helpers.bulk(client, actions, refresh=True)
    client.indices.forcemerge(index=index, max_num_segments=1)


def score(client: Elasticsearch, index: str, template: JSON, topics: Sequence[Topic]) -> tuple[float, float]:
    """Rank and score the topics; return the official MAP@500 and the true one.

    The official average precision divides by the retrieved premises, the true one by all premises of the topic.
    """
    official = true = 0.0
    for topic, ranked in rankings(client, index, template, topics):
        values = precisions(ranked, topic.premises)
        official += sum(values) / len(values) if values else 0.0
        true += sum(values) / len(topic.premises)
    return official / len(topics), true / len(topics)


def measure(
    client: Elasticsearch, shipped: Setup, names: Sequence[str], documents: JSON, topics: Sequence[Topic]
) -> Iterator[tuple[str, float, float]]:
    """Yield the two figures of each variant; variants of the query share the shipped index."""
    shared = "searchapp-bench-shipped"
    try:
        build(client, shared, shipped.mapping, documents)
        for name in names:
            setup = copy.deepcopy(shipped)
            VARIANTS[name][1](setup)
            index = shared
            try:
                if setup.mapping != shipped.mapping:
                    index = f"searchapp-bench-{name}"
                    build(client, index, setup.mapping, documents)
                yield name, *score(client, index, setup.template, topics)
            finally:
                if index != shared:
                    client.options(ignore_status=404).indices.delete(index=index)
    finally:
        client.options(ignore_status=404).indices.delete(index=shared)


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--url", default="http://localhost:9200", help="the Elasticsearch server")
    parser.add_argument("--data", type=Path, required=True, help="folder with the task's files")
    parser.add_argument("--split", choices=("train", "dev"), default="train")
    parser.add_argument("--sample", type=int, help="score a fixed sample of N topics")
    parser.add_argument(
        "--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS), metavar="NAME"
    )
    return parser.parse_args()


def main() -> None:
    """Print a row of the table for each selected variant, the shipped one first."""
    arguments = parse_arguments()
    documents = json.loads((arguments.data / "knowledge_base.json").read_text(encoding="utf-8"))
    topics = load_topics(arguments.data, arguments.split, arguments.sample)
    shipped = Setup(
        json.loads((ROOT / "index_mappings/premises.json").read_text(encoding="utf-8")),
        json.loads((ROOT / "query_templates/nlps/bm25.json").read_text(encoding="utf-8")),
    )
    client = Elasticsearch(arguments.url, request_timeout=300)
    print(f"{len(topics)} topics of {arguments.split}, {len(documents)} documents.\n")
    print("| variant | MAP@500 | true AP | difference to shipped |")
    print("|---|---:|---:|---:|")
    names = ["shipped", *(name for name in arguments.variants if name != "shipped")]
    base = (0.0, 0.0)
    for name, official, true in measure(client, shipped, names, documents, topics):
        if name == "shipped":
            base, difference = (official, true), ""
        else:
            difference = f"{100 * (official - base[0]):+.2f} / {100 * (true - base[1]):+.2f}"
        row = f"| {VARIANTS[name][0]} | {100 * official:.2f} | {100 * true:.2f} | {difference} |"
        print(row, flush=True)


if __name__ == "__main__":
    main()
