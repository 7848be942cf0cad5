"""The formatter on documents with a damaged layout: it keeps their meaning and is idempotent."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.nodes import compiled_text, worked_nodes
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.format.formatter import format_source, same_tree
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Tree

LOAN = """\
node_id: loan_offer_v1
type: function
intent: Say whether a loan is offered, and at what rate   # kept short

inputs:
  sum:      {type: decimal, constraints: [positive, {max: 75000}]}
  income:   decimal
  years:    {type: integer, constraints: [{min: 1}]}
  purpose:  enum[car, house, other]
  # asked since spring
  employed: {type: boolean, default: true}

outputs:
  success:
    answer: enum[yes, ask, no]
    rate:   decimal

constants:
  short_terms: {type: set<integer>, value: [1, 2, 3]}

contracts:
  preconditions:
    - income > 0
    - "years < 40 AND (purpose != 'other' OR years < 10)"
  postconditions:
    - rate >= 0

# the work itself
flow:
  - step: strain
    operation: compute
    value: >-
      (IF employed THEN 0 ELSE 25)
      + (IF sum > income * 3 THEN 40 ELSE 0)
      + (IF years IN short_terms
           THEN 10 ELSE 0)

  - step: rate
    operation: decision_table
    rows:
      - {when: strain < 10,    then: 0.0290}   # the best one
      - {when: purpose == car, then: 0.0410}
      - {otherwise: 0.05}

  - step: answer
    operation: decision_table
    rows: [
      {when: strain >= 60, then: no},
      {when: strain >= 30, then: ask},
      {otherwise: yes},
      ]

  - operation: return
    success: [answer, rate]

testing:
  test_cases:
    - name: a small one
      inputs: {sum: 1000.00, income: 3000.00, years: 5, purpose: car}
      expect: {answer: yes, rate: 0.0290}
"""

PARCEL = """\
node_id: parcel_price_v2
type: function
intent: >
  Price the parcels of a shipment,
  with what the customs want

types:
  Parcel:
    fields:
      grams: integer
      value: decimal
      kind: string
    constraints: [grams > 0, value >= 0]

inputs:
  parcels: array<Parcel>

constants:
  duty: {type: "map<string, decimal>", value: {paper: 0, cloth: 0.12, glass: 0.08}}

contracts:
  preconditions:
    - FORALL parcel IN parcels SATISFIES parcel.kind IN duty

flow:
  - operation: compute                 # names, one after the other
    compute:
      weight: SUM(parcel.grams FOR parcel IN parcels)
      duties: SUM(parcel.value * duty[parcel.kind] FOR parcel IN parcels)
      postage_at_least: 3.50

  - step: postage
    operation: decision_table
    rows:
      - {when: weight >= 20000, then: 24.90}
      - {when: weight >= 2000,  then: 9.90}
      - {otherwise: postage_at_least}

  - operation: return
    success: {total: postage + duties}
"""

BOOKING = """\
node_id: seat_booking_v1
type: http_handler
intent: Hold a seat once, and give it back when nobody pays

metadata:
  author: someone
  tags: [seats, effects]

inputs:
  seat:  {type: string, constraints: [{pattern: "^[A-Z][0-9]{1,3}$"}]}
  token: optional<string>

state_machines:
  seat_state:
    initial: free
    transitions:
      free: [held]
      held: [sold, free]

flow:
  - step: seen_before                      # step 1: the same request again
    operation: database_query
    when: token IS NOT NULL
    query: SELECT seat, state
           FROM bookings
           WHERE token = :token
    bind:
      token: token

  - step: ask_bank                         # step 2
    operation: external_api_call
    body:                                  # a template
      cents: "{to_integer(price * 100)}"
      note: 'it''s for {seat}'
    retry: {attempts: 4, on: [timeout, busy], backoff: {base: 100ms, factor: 3}}
    on_error:
      timeout, busy:
        transition: {machine: seat_state, entity: seat, to: free}
        return_error: {error_code: no_answer, message: "the bank did not \\
          answer"}
      any:
        compensate:
          - operation: external_api_call
            endpoint: /v2/give_back
            script: |
              first line
                indented line

              last line
            key: ask_bank.id

security:
  capabilities_required:
    - database.read.bookings
    - network.http_client.bank
  audit_level: detailed
"""

SAMPLES = {"loan": LOAN, "parcel": PARCEL, "booking": BOOKING}


@lru_cache(64)  # each example parses its damaged document again
def tree_of(text: str) -> Tree:
    tree = read_yaml(DiagnosticBag(SourceFile("test.vsp", text)))
    assert tree is not None, text
    return tree


def format_text(text: str) -> str:
    bag = DiagnosticBag(SourceFile("test.vsp", text))
    result = format_source(bag)
    assert result is not None, [each.headline for each in bag.sorted()]
    return result


WAYS = ("indentation", "spaces", "blank lines", "notes", "line breaks")


class SloppyWriter:
    """Writes a document again with another layout and additional comments.

    Its choices come from a seed: a document takes thousands, more than Hypothesis can shrink. Hypothesis shrinks the
    kinds of damage instead; the first of several choices is always the plain one.
    """

    def __init__(self, text: str, seed: int, ways: set[str]) -> None:
        self._text = text
        self._random = Random(seed)
        self._ways = ways
        self._notes = 0
        self._margin = 0
        """Indentation that lines inside brackets need."""

    def document(self) -> str:
        text = self._noise(0) + self._block(tree_of(self._text), self._number("indentation", 0, 0, 0, 3))
        text = text.rstrip("\n ") + "\n" * self._number("blank lines", 1, 3)
        return text + (f"{self._note()}" if self._number("notes", 0, 1) else "")

    def _number(self, way: str, *choices: int) -> int:
        return self._random.choice(choices) if way in self._ways else choices[0]

    def _spaces(self) -> str:
        return " " * self._number("spaces", 1, 1, 1, 2, 4)

    def _note(self) -> str:
        self._notes += 1
        return f"#{' ' * self._number('spaces', 1, 0)}note {self._notes}"

    def _end(self) -> str:
        """Return the end of a line: white space, and maybe a comment."""
        if self._number("notes", 0, 0, 0, 0, 1):
            return f"{self._spaces()}{self._note()}\n"
        return " " * self._number("spaces", 0, 0, 0, 2) + "\n"

    def _noise(self, indent: int) -> str:
        """Return whole lines without meaning."""
        text = "\n" * self._number("blank lines", 0, 0, 0, 0, 1, 2, 4)
        if self._number("notes", 0, 0, 0, 0, 1):
            text += " " * max(0, indent + self._number("indentation", 0, 0, -2, -1)) + self._note() + "\n"
        return text + "\n" * self._number("blank lines", 0, 0, 0, 0, 1, 3)

    def _raw(self, scalar: Scalar) -> str:
        return self._text[scalar.span.start : scalar.span.end]

    def _block(self, tree: Tree, indent: int) -> str:
        """Return the lines of a block collection, each from the margin on."""
        if isinstance(tree, Mapping):
            entries = []
            for key, value in tree.entries:
                name = " " * indent + self._raw(key) + " " * self._number("spaces", 0, 0, 0, 1) + ":"
                entries.append(self._noise(indent) + name + self._value(value, indent, in_mapping=True))
            return "".join(entries)
        assert not isinstance(tree, Scalar)
        items = []
        for item in tree.items:
            items.append(self._noise(indent) + " " * indent + "-")
            gap = self._number("spaces", 1, 1, 2, 4)
            if isinstance(item, Mapping) and self._text[item.span.start] != "{":
                (key, value), *rest = item.entries
                inner = indent + 1 + gap
                items.append(" " * gap + self._raw(key) + ":" + self._value(value, inner, in_mapping=True))
                if rest:
                    items.append(self._block(Mapping(tuple(rest), item.span), inner))
            else:
                items.append(self._value(item, indent, in_mapping=False))
        return "".join(items)

    def _value(self, tree: Tree, indent: int, in_mapping: bool) -> str:
        """Return the text after a key or a dash, to the end of its last line."""
        if isinstance(tree, Scalar):
            return self._scalar(tree, indent)
        if self._text[tree.span.start] in "{[":
            self._margin = indent
            return self._spaces() + self._flow(tree, breaks=self._number("line breaks", 0, 0, 1) == 1) + self._end()
        least = 0 if in_mapping and not isinstance(tree, Mapping) else 1
        return self._end() + self._block(tree, indent + self._number("indentation", 2, least, 2, 3, 4))

    def _scalar(self, scalar: Scalar, indent: int) -> str:
        raw = self._raw(scalar)
        width = self._number("indentation", 2, 1, 3, 6)
        if scalar.style in ("|", ">"):
            header, *lines = raw.rstrip("\n").split("\n")
            least = min(len(line) - len(line.lstrip(" ")) for line in lines if line.strip())
            margin = " " * (indent + width)
            body = "".join(margin + line[least:] + "\n" if line.strip() else "\n" for line in lines)
            return self._spaces() + header + self._end() + body + "\n" * self._number("blank lines", 0, 0, 1, 3)
        first, *rest = raw.split("\n")
        margin = " " * (indent + width)
        text = first + "".join("\n" + margin + line.strip() for line in rest)
        below = not rest and self._number("line breaks", 0, 0, 0, 0, 0, 1) == 1
        return (self._end() + margin if below else self._spaces()) + text + self._end()

    def _flow(self, tree: Tree, breaks: bool) -> str:
        if isinstance(tree, Scalar):
            return re.sub(r"\n\s*", "\n" + " " * self._margin + self._spaces(), self._raw(tree))
        if isinstance(tree, Mapping):
            parts = [f"{self._raw(key)}:{self._spaces()}{self._flow(value, breaks)}" for key, value in tree.entries]
            return "{" + self._gap(breaks) + self._join(parts, breaks) + "}"
        return "[" + self._gap(breaks) + self._join([self._flow(item, breaks) for item in tree.items], breaks) + "]"

    def _join(self, parts: list[str], breaks: bool) -> str:
        return "".join(
            part + ("," if number < len(parts) - 1 else "") + self._gap(breaks) for number, part in enumerate(parts)
        )

    def _gap(self, breaks: bool) -> str:
        if breaks and self._number("line breaks", 0, 0, 1) == 1:
            return self._end() + " " * self._margin + self._spaces()
        return " " * self._number("spaces", 0, 1, 3)


def damage(text: str) -> st.SearchStrategy[str]:
    return st.builds(
        lambda seed, ways: SloppyWriter(text, seed, ways).document(),
        st.integers(0, 2**32),
        st.sets(st.sampled_from(WAYS)),
    )


def notes_of(text: str) -> list[str]:
    return re.findall(r"# ?note (\d+)", text)


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
def test_standard_layout_is_unchanged(text: str) -> None:
    assert format_text(text) == text


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
@settings(max_examples=25)
@given(data=st.data())
def test_damaged_layout_is_repaired(text: str, data: st.DataObject) -> None:
    before = data.draw(damage(text))
    assert same_tree(tree_of(before), tree_of(text)), "the writer itself went wrong"
    after = format_text(before)
    assert format_text(after) == after
    assert same_tree(tree_of(after), tree_of(text))
    assert notes_of(after) == notes_of(before)
    assert "#note" not in after
    assert "\n\n\n" not in after
    assert after.endswith("\n")
    assert not re.search(r"[ \t\r]$", after, re.MULTILINE)
    for line in after.split("\n"):
        assert not re.search(r"\S #", line), "two spaces stand before a comment"


@cache
def hash_as_written(name: str) -> str:
    return compiled_text(NODES[name], path_of(name)).semantic_hash


def path_of(name: str) -> str:
    """Return a path in the folder of the node, where its files are."""
    return str(FOLDERS.get(name, Path()) / "test.vsp")


NODES = {"loan": LOAN} | {path.stem: path.read_text(encoding="utf-8") for path in worked_nodes()}
FOLDERS = {path.stem: path.parent for path in worked_nodes()}


@pytest.mark.parametrize("name", list(NODES)[::2])
@settings(max_examples=1)
@given(data=st.data())
def test_formatting_keeps_the_semantic_hash(name: str, data: st.DataObject) -> None:
    wanted = hash_as_written(name)
    before = data.draw(damage(NODES[name]))
    assert compiled_text(before, path_of(name)).semantic_hash == wanted
    assert compiled_text(format_text(before), path_of(name)).semantic_hash == wanted


def _other_line_ends(text: str) -> str:
    """Return the text with CRLF line ends, and space before them outside of texts."""
    return text.replace("\n", "\r\n").replace(":\r\n", ":  \r\n")


def _wide_commas(text: str) -> str:
    """Return the text with more space around commas, except in SQL and quoted texts."""
    lines = text.split("\n")
    return "\n".join(each if _IS_TEXT.search(each) else each.replace(", ", " ,   ") for each in lines)


_IS_TEXT = re.compile(r"['\"`]|SELECT |INSERT |UPDATE |GROUP BY |VALUES ")


SPOILERS = [_other_line_ends, _wide_commas]


@pytest.mark.parametrize("number, path", list(enumerate(worked_nodes())), ids=list(FOLDERS))
def test_formatting_keeps_the_hash_of_worked_nodes(number: int, path: Path) -> None:
    # Hash of the damaged text: a comma or line end in SQL or a template is part of the node's meaning.
    spoilt_text = SPOILERS[number % 2](path.read_text(encoding="utf-8"))
    wanted = compiled_text(spoilt_text, path.as_posix()).semantic_hash
    assert compiled_text(format_text(spoilt_text), path.as_posix()).semantic_hash == wanted


PARTS = [
    "a",
    "b: ",
    "- ",
    "? ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    "'x'",
    '"y\n  z"',
    "|+\n",
    ">-\n",
    "|2\n",
    "#c",
    " # d",
]
LINES = ["\n", "\n\n", "\n  ", "\n    ", " ", "   ", "\t", "---\n", "... ", "x\n   y", "\\", "\r\n", "k: v", "- i: 1\n"]


@given(st.lists(st.sampled_from(PARTS + LINES), min_size=1, max_size=14).map("".join))
def test_any_text_is_formatted_or_rejected(text: str) -> None:
    bag = DiagnosticBag(SourceFile("test.vsp", text))
    after = format_source(bag)
    assert (after is None) == bag.has_errors
    if after is not None:
        assert format_text(after) == after
