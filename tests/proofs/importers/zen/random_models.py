"""Random JSON decision models: imported, evaluated on both engines, and compared with the reference evaluator.

Where the reference has a result, the node returns the same one or ends with a failure; a node never returns outputs
where the reference ends with an error. At most one node in a hundred may have errors of `vesper check`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[4]
sys.path.insert(0, str(ROOT))

import vesper  # noqa: E402  # after the path is set
from tests.proofs.importers.zen.compare import ENGINES, differences_of, inside_of, outside_of  # noqa: E402
from tests.proofs.importers.zen.reference import ZenError, evaluate  # noqa: E402
from vesper.importers.zen.importer import import_model  # noqa: E402
from vesper.importers.zen.types import Slot  # noqa: E402

CASES = 6
_WORDS = ["red", "green", "New York", "it's", "", "null", "x, y"]
_RECORD = {"amount": "number", "note": "string", "isOpen": "boolean"}
_FIELDS = {
    "age": "number", "totalDue": "number", "rate": "number?", "country": "string", "code": "string?",
    "isMember": "boolean", "isVip": "boolean?", "scores": "numbers", "tags": "strings", "person": "record",
    "maybe": "record?", "lines": "records",
}  # fmt: skip


class Drawn:
    """Draws a model over the fields above."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.known: dict[str, str] = {}
        """Kinds of the paths that an expression may read; `?` marks those that may be null."""

    def model(self) -> dict[str, Any]:
        nodes: list[dict[str, Any]] = [{"id": "in", "type": "inputNode", "name": "request"}]
        edges: list[dict[str, Any]] = []
        self.known = self._paths()
        last, handle = "in", None
        for at in range(self.random.randint(1, 4)):
            kind = self.random.choice(["table", "table", "expressions", "switch"])
            if kind == "switch":
                last, handle = self._switch(nodes, edges, last, handle, at), None
                continue
            content = self._table(at) if kind == "table" else self._expressions(at)
            self._add(nodes, edges, f"n{at}", kind, content, last, handle)
            last, handle = f"n{at}", None
        tests = [{"input": self._input(), "output": {}} for _ in range(CASES)]
        return {"nodes": nodes, "edges": edges, "tests": tests}

    def _add(
        self, nodes: list[Any], edges: list[Any], id_: str, kind: str, content: Any, last: str, handle: Any
    ) -> None:
        types = {"table": "decisionTableNode", "expressions": "expressionNode", "switch": "switchNode"}
        nodes.append({"id": id_, "type": types[kind], "name": f"step {id_}", "content": content})
        edge = {"sourceId": last, "targetId": id_}
        edges.append({**edge, "sourceHandle": handle} if handle else edge)

    def _switch(self, nodes: list[Any], edges: list[Any], last: str, handle: Any, at: int) -> str:
        """Add a switch whose branches meet again."""
        policy = self.random.choice(["first", "collect"])
        statements = [{"id": f"s{at}{n}", "condition": self.expression("boolean", 2)} for n in range(2)]
        if self.random.random() < 0.7:
            statements.append({"id": f"s{at}9", "condition": ""})
        self._add(nodes, edges, f"n{at}", "switch", {"hitPolicy": policy, "statements": statements}, last, handle)
        before = dict(self.known)
        ends = []
        for statement in statements:
            self.known = dict(before)
            inner = f"n{at}{statement['id'][-1]}"
            content = self._table(at) if self.random.random() < 0.5 else self._expressions(at)
            kind = "table" if "rules" in content else "expressions"
            self._add(nodes, edges, inner, kind, content, f"n{at}", statement["id"])
            ends.append((inner, self.known))
        self.known = {
            path: kind if all(known.get(path) == kind for _, known in ends) else f"{kind.rstrip('?')}?"
            for path, kind in {path: kind for _, known in ends for path, kind in known.items()}.items()
        }
        joined = f"n{at}j"
        keep = {"expressions": [{"key": f"joined{at}", "value": "1"}], "passThrough": True}
        nodes.append({"id": joined, "type": "expressionNode", "name": f"join {at}", "content": keep})
        edges += [{"sourceId": inner, "targetId": joined} for inner, _ in ends]
        return joined

    def _transform(self) -> dict[str, Any]:
        return {"passThrough": self.random.random() < 0.8, "executionMode": "single"}

    def _forget(self, transform: dict[str, Any]) -> None:
        if not transform["passThrough"]:
            self.known = {}

    def _expressions(self, at: int) -> dict[str, Any]:
        entries, made = [], {}
        for number in range(self.random.randint(1, 3)):
            kind = self.random.choice(["number", "string", "boolean", "numbers"])
            key = (
                self.random.choice([f"out{at}{number}", f"group.part{number}", "age"])
                if kind == "number"
                else f"e{at}{number}"
            )
            entries.append({"id": str(number), "key": key, "value": self.expression(kind, 3)})
            made[key] = kind
        transform = self._transform()
        self._forget(transform)
        self.known |= made
        return {"expressions": entries, **transform}

    def _table(self, at: int) -> dict[str, Any]:
        inputs = []
        for number in range(self.random.randint(1, 3)):
            kind = self.random.choice(["number", "string", "boolean", "any"])
            field = self.expression(kind, 1) if kind != "any" else None
            inputs.append({"id": f"i{number}", "name": f"column {number}", "field": field, "kind": kind})
        outputs = []
        for number in range(self.random.randint(1, 3)):
            kind = self.random.choice(["number", "string", "boolean"])
            key = self.random.choice([f"t{at}{number}", f"group.{kind}{number}"])
            outputs.append({"id": f"o{number}", "name": key, "field": key, "kind": kind})
        rules = []
        for _ in range(self.random.randint(1, 4)):
            rule = {each["id"]: self._cell(each["kind"]) for each in inputs}  # type: ignore[arg-type]
            rule |= {
                each["id"]: self.expression(each["kind"], 1) if self.random.random() < 0.8 else "" for each in outputs
            }
            rules.append(rule)
        if self.random.random() < 0.5:
            rules.append({each["id"]: self.expression(each["kind"], 0) for each in outputs})
        transform = self._transform()
        is_collect = self.random.random() < 0.2
        if is_collect:
            transform["outputPath"] = f"list{at}"
        self._forget(transform)
        if not is_collect:
            self.known |= {each["field"]: f"{each['kind']}?" for each in outputs}
        return {
            "hitPolicy": "collect" if is_collect else "first",
            "inputs": inputs,
            "outputs": outputs,
            "rules": rules,
            **transform,
        }

    def _cell(self, kind: str) -> str:
        if self.random.random() < 0.25:
            return ""
        number, word = self._number(), self._word()
        low, high = sorted(self.random.sample(range(-5, 60), 2))
        choices = {
            "number": [
                f"> {number}", f"<= {number}", number, f"{number}, {self._number()}", f"[{low}..{high})",
                f"!= {number}", f"> {low} and < {high}", f"not in [{number}]", f"$ * 2 > {number}",
            ],
            "string": [
                word, f"{word}, {self._word()}", f"!= {word}", f"contains($, {word})", f"in [{word}]",
                "len($) > 3", "null",
            ],
            "boolean": ["true", "false", self.expression("boolean", 1)],
            "any": [self.expression("boolean", 2)],
        }  # fmt: skip
        return self.random.choice(choices[kind])

    def _number(self) -> str:
        return self.random.choice(["0", "1", "2.5", "10", "17", "-3", "42", "0.1"])

    def _word(self) -> str:
        word = self.random.choice(_WORDS)
        return f'"{word}"'

    def expression(self, kind: str, depth: int) -> str:
        """Return an expression that is mostly of this kind, and null for some inputs."""
        if depth == 0 or self.random.random() < 0.25:
            return self._leaf(kind)
        a, b = self.expression(kind, depth - 1), self.expression(kind, depth - 1)
        n, m = self.expression("number", depth - 1), self.expression("number", depth - 1)
        s, t = self.expression("string", depth - 1), self.expression("boolean", depth - 1)
        numbers = self.expression("numbers", depth - 1)
        always = [f"({t} ? {a} : {b})", f"({a} ?? {b})"]
        choices = {
            "number": [
                f"({n} + {m})", f"({n} - {m})", f"({n} * {m})", f"abs({n})", f"floor({n})", f"round({n})",
                f"len({s})", f"sum({numbers})", f"max([{n}, {m}])", f"count({numbers}, # > {m})", f"({n} / 4)",
                f"-{n}", f"{numbers}[0]",
            ],
            "string": [
                f"({s} + {a})", f"upper({s})", f"`v ${{{n}}} {{}}${{{s}}}`", f"string({n})", f"trim({s})",
                f"type({n})",
            ],
            "boolean": [
                f"({n} > {m})", f"({n} <= {m})", f"({n} == {m})", f"({s} == {a if kind == 'string' else s})",
                f"({a} and {b})", f"({a} or {b})", f"not ({t})", f"({n} in [{m}, 5])", f"({n} in [0..{m}])",
                f"contains({s}, {self._word()})", f"({self._leaf('any')} == null)",
                f"({self._leaf('any')} != null)", f"some({numbers}, # == {m})", f"all({numbers}, # < {m})",
                f"({s} not in ['red', \"x, y\"])", f"startsWith({s}, 're')",
            ],
            "numbers": [f"map({numbers}, # * {m})", f"filter({numbers}, # > {m})", f"[{n}, {m}]"],
        }  # fmt: skip
        return self.random.choice([*always, *choices[kind], *choices[kind]])

    def _leaf(self, kind: str) -> str:
        paths = [
            path
            for path, each in self.known.items()
            if kind in ("any", each.rstrip("?")) and not each.startswith("record")
        ]
        if paths and self.random.random() < 0.75:
            return self.random.choice(paths)
        if kind == "number" and "lines" in self.known and self.random.random() < 0.1:
            return "len(filter(lines, #.isOpen))"
        literals = {"number": self._number(), "string": self._word(), "boolean": self.random.choice(["true", "false"])}
        return literals.get(kind, "[1, 2]" if kind == "numbers" else "age")

    def _paths(self) -> dict[str, str]:
        paths = {}
        for name, kind in _FIELDS.items():
            paths[name] = kind
            if kind.startswith("record") and not kind.startswith("records"):
                paths |= {f"{name}.{key}": each + ("?" if kind.endswith("?") else "") for key, each in _RECORD.items()}
        return paths

    def _input(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, kind in _FIELDS.items():
            if kind.endswith("?") and self.random.random() < 0.5:
                if self.random.random() < 0.3:
                    found[name] = None
                continue
            found[name] = self._value(kind.rstrip("?"))
        return found

    def _value(self, kind: str) -> Any:
        match kind:
            case "number":
                return Decimal(self._number())
            case "string":
                return self.random.choice(_WORDS)
            case "boolean":
                return self.random.random() < 0.5
            case "numbers":
                return [self._value("number") for _ in range(self.random.randint(0, 3))]
            case "strings":
                return [self._value("string") for _ in range(self.random.randint(0, 3))]
            case "record":
                return {key: self._value(each) for key, each in _RECORD.items()}
        return [self._value("record") for _ in range(self.random.randint(1, 3))]


def _text(value: Any) -> str:
    """Return JSON text; a decimal is a number with its digits."""
    match value:
        case Decimal():
            return f"{value:f}"
        case list():
            return "[" + ", ".join(map(_text, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{json.dumps(key)}: {_text(each)}" for key, each in value.items()) + "}"
    return json.dumps(value)


def compare(seed: int, counts: Counter[str]) -> list[str]:
    """Return the differences of a random model; count the outcomes of its cases."""
    model = Drawn(seed).model()
    imported = import_model(_text(model), "drawn")
    refused = [each for each in imported.problems if each.is_refused and each.place.startswith("node")]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "drawn_v1.vsp"
        file.write_text(imported.text, encoding="utf-8")
        try:
            nodes = [vesper.load(file, engine=engine) for engine in ENGINES]
        except vesper.NodeError as error:
            counts["the node has errors"] += 1
            return [f"seed {seed}: {str(error)[:1500]}"]
    found = []
    for test in model["tests"]:
        inputs = inside_of(test["input"], Slot(imported.inputs))
        outcomes = [node(**inputs) for node in nodes]
        if outcomes[0] != outcomes[1]:
            found.append(f"seed {seed}: the engines differ for {_text(test['input'])}")
            continue
        try:
            expected = evaluate(model, test["input"])
        except ZenError as error:
            counts["both end with an error" if not outcomes[0].ok else "wrong"] += 1
            if outcomes[0].ok:
                found.append(f"seed {seed}: zen ends with `{error}`, the node returns; {_text(test['input'])}")
            continue
        if not outcomes[0].ok:
            counts[f"refused: {outcomes[0].error.code}"] += 1
            continue
        value = outside_of(outcomes[0].value, Slot(imported.outputs))
        differences = differences_of(expected, value.get("result") if imported.is_whole else value)
        counts["wrong" if differences else "same" if not refused else "same, parts refused"] += 1
        if differences:
            found.append(f"seed {seed}: {'; '.join(differences)}; {_text(test['input'])}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    found: list[str] = []
    for seed in range(arguments.seed, arguments.seed + arguments.models):
        found += compare(seed, counts)
    for each in found[:20]:
        print(each)
    for reason, count in counts.most_common():
        print(f"{count:7}  {reason}")
    print(f"{arguments.models} models, {len(found)} differences")
    refused = counts["the node has errors"]
    return 1 if len(found) > refused or refused * 100 > arguments.models else 0


if __name__ == "__main__":
    sys.exit(main())
