"""Flattening of token graphs, for an index, which stores no lengths in positions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import field

from searchapp.lucene.analysis.token_filters import StreamFilter, TokenRow, TokenStream
from searchapp.lucene.dataclass import dataclass

_NO_NODE = 1 << 31


@dataclass(slots=True)
class _Input:
    """A node of the graph, with the tokens that leave it."""

    rows: list[TokenRow] = field(default_factory=list)
    output: int = -1
    nearest: int = _NO_NODE  # least end of the tokens
    farthest: int = -1  # greatest end of the tokens
    written: int = 0  # number of tokens in the output
    is_known: bool = False


@dataclass(slots=True)
class _Output:
    """A position of the flat stream, with the nodes that it merges."""

    inputs: list[int] = field(default_factory=list)
    start: int = -1  # offset
    end: int = -1
    written: int = 0  # number of nodes in the output
    is_known: bool = False


class _Flattening:
    """The state of the filter for one text.

    A token moves the node at its end to the position after that of its start, unless the node is there or behind it.
    Positions are written as soon as no coming token can change them, because later tokens are read with what is left.
    """

    def __init__(self) -> None:
        self._inputs: defaultdict[int, _Input] = defaultdict(_Input)
        self._outputs: dict[int, _Output] = {}
        self._inputs[0] = _Input(output=0, is_known=True)
        self._outputs[0] = _Output([0], start=0, is_known=True)
        self._last_output = 0
        self._node = -1
        self._next = 0  # position to write
        self._last_start = 0

    def _output(self, position: int) -> _Output:
        self._last_output = max(self._last_output, position)
        return self._outputs.setdefault(position, _Output())

    def read(self, row: TokenRow, increment: int) -> None:
        _term, _position, length, (start, end), _marked = row
        self._node += increment
        target = self._node + length
        source = self._inputs[self._node]
        if not source.is_known:
            self._place_after_gap(source, start, increment)
        else:
            output = self._output(source.output)
            before = self._inputs[self._node - increment] if increment > 1 else source
            if increment > 1 and source.output - before.output <= 1 and before.nearest != self._node:
                # A long token led here before the gap was seen.
                if self._node in output.inputs:
                    output.inputs.remove(self._node)
                source.output = -1
                previous_end = output.end
                output = self._place_after_gap(source, start, increment)
                output.end = previous_end
            output.start = max(output.start, start)
        source.rows.append(row)
        source.nearest, source.farthest = min(source.nearest, target), max(source.farthest, target)
        destination = self._inputs[target]
        destination.is_known = True
        position = source.output + 1
        if position > destination.output:
            if destination.output != -1:
                self._output(destination.output).inputs.remove(target)
            self._output(position).inputs.append(target)
            destination.output = position
        output = self._output(destination.output)
        output.end = end if output.end == -1 else min(output.end, end)

    def _place_after_gap(self, source: _Input, start: int, increment: int) -> _Output:
        """Give a node that no token leads to a position: after the nearest end of the tokens before the gap."""
        source.is_known = True
        previous = self._node - increment
        if previous < 0:
            position = self._last_output + 1
        elif (before := self._inputs[previous]).nearest < self._node:
            position = self._inputs[before.nearest].output + 1
        else:
            position = self._last_output
        output = self._output(position)
        source.output = position
        output.start = max(output.start, start) if output.is_known else start
        output.is_known = True
        output.inputs.append(self._node)
        return output

    def written(self, done: bool = False) -> Iterator[TokenRow]:
        """Yield the tokens of the positions that are complete."""
        while self._next < self._last_output:
            output = self._output(self._next)
            if not output.inputs:
                self._next += 1
                continue
            if not done and max(self._inputs[node].farthest for node in output.inputs) > self._node:
                return
            node = output.inputs[output.written]
            source = self._inputs[node]
            if source.rows:
                yield self._flat(source, node, output)
            if source.written == len(source.rows):
                output.written += 1
                if output.written == len(output.inputs):
                    self._next += 1

    def _flat(self, source: _Input, node: int, output: _Output) -> TokenRow:
        term, _position, length, _span, marked = source.rows[source.written]
        source.written += 1
        target = self._inputs[node + length].output
        start = self._last_start = max(self._last_start, output.start)
        return term, self._next, target - self._next, (start, max(start, self._output(target).end)), marked


class FlattenGraphFilter(StreamFilter):
    """Make all tokens paths between consecutive positions, which loses alternatives of several words.

    Source: org.apache.lucene.analysis.core.FlattenGraphFilter
    """

    def apply(self, tokens: TokenStream) -> TokenStream:
        flattening = _Flattening()
        rows: list[TokenRow] = []
        previous = -1
        for row in tokens.rows():
            rows += flattening.written()
            flattening.read(row, row[1] - previous)
            previous = row[1]
        rows += flattening.written()
        rows += flattening.written(done=True)
        return tokens.with_rows(rows)
