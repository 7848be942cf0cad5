"""What libFuzzer starts from: the IR of every node and operation, and a value of every type, with a list of words.

A seed of `decode_ir` is a document and, in further lines, those of the nodes it calls; a seed of `values` is a type in
its IR form and, in the next line, inputs as JSON text.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

from tests.conformance.forms import typed_form
from tests.conformance.test_operations import CASES
from tests.support.nodes import compiled, expression_node, operation_node, worked_nodes, written_for_tests
from vesper.compiler import Compiled
from vesper.engines.direct_engine import all_callees
from vesper.language.ir.type_json import type_from_json, type_to_json
from vesper.values.types import Type, declared_type

MAX_BYTES = 24_000
"""Longer documents are left out: libFuzzer would cut them, and a cut document is refused at once."""

ODD_VALUES = (
    ("json", '{"x":{"a":[1.50,1e3,-0,null,true,"\\u00e9"],"b":{"c":{}}}}'),
    ("json", '{"x":' + "[" * 128 + "]" * 128 + "}"),
    ("float", '{"x":-0.0}'),
    ("float", '{"x":"NaN"}'),
    ("decimal", '{"x":"9E+999"}'),
    ("decimal", '{"x":1e-400}'),
    ("bytes", '{"x":"AP8="}'),
    ("duration", '{"x":"-P3652059DT0.000001S"}'),
    ("timestamp", '{"x":"2024-02-29T23:59:59.999999+14:00"}'),
    ('{"map":["integer",{"optional":"date"}]}', '{"x":[[2,null],[-1,"0001-01-01"]]}'),
    ('{"map":["string",{"array":"json"}]}', '{"x":{"b":[null],"a":[]}}'),
    ('{"set":"decimal"}', '{"x":["1.0","2",3]}'),
    ('{"set":{"enum":["b","a"]}}', '{"x":["a","b"]}'),
    ('{"optional":"json"}', '{"x":null}'),
    (
        '{"record":[{"name":"b","type":{"optional":"float"}},{"name":"a","type":{"set":"bytes"}}]}',
        '{"x":{"a":["AA=="]}}',
    ),
)
WORDS = ("e+", "E-", "\\u0000", "\\ud800", "NaN", "Infinity", "9223372036854775807", "-9223372036854775808", "\\n")


def documents() -> Iterator[Compiled]:
    for path in [*worked_nodes(), *written_for_tests()]:
        yield compiled(path)
    for case in CASES:
        if "expression" in case:
            types = {name: typed_form(form)[0] for name, form in case["inputs"].items()}
            yield expression_node(case["expression"], types)
        else:
            args = [typed_form(form) for form in case["args"]]
            yield operation_node(case["op"], [type_from_json(form) for form in case.get("of", [])], args)


HTTP_ANSWERS = (
    b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"a": 12}',
    b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\n{"a"\r\n5\r\n: 12}\r\n0\r\nT: x\r\n\r\n',
    b'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n1HTTP/1.1 200 OK\r\n\r\n"smuggled"',
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 429 Slow\r\nRetry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\nContent-Length: 2\r\n\r\nno",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=latin-1\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b",
)
"""Answers of servers, of each way in which a message ends."""


def typed_forms() -> Iterator[tuple[Type, str]]:
    """The arguments of examples, in the forms of the examples: near enough to JSON forms to begin with."""
    for case in CASES:
        for written in case["inputs"].values() if "expression" in case else case["args"]:
            ((name, form),) = written.items()
            yield declared_type(name), json.dumps({"x": form}, ensure_ascii=False, separators=(",", ":"))


def write_seeds(folder: Path) -> dict[str, int]:
    """Write the seeds of all targets and the words they are made of; how many seeds each target has."""
    every = list(documents())
    found = {
        "decode_ir": {b"\n".join([each.ir, *(callee.ir for callee in all_callees(each))]) for each in every},
        "values": {f"{type_}\n{inputs}".encode() for type_, inputs in ODD_VALUES},
        "http_answer": {first + answer for first in (b"\0", b"\1") for answer in HTTP_ANSWERS},
    }
    for type_, form in typed_forms():
        found["values"].add(f"{_type_text(type_)}\n{form}".encode())
    for each in every:
        types = [field.type for field in each.node.inputs] + [field.type for field in each.node.outputs]
        found["values"] |= {f'{_type_text(type_)}\n{{"x":null}}'.encode() for type_ in types}
    counts = {}
    for target, seeds in found.items():
        place = folder / target
        place.mkdir(parents=True, exist_ok=True)
        short = [seed for seed in seeds if len(seed) <= MAX_BYTES]
        for seed in short:
            (place / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
        counts[target] = len(short)
    (folder / "words.dict").write_text(_dictionary(found["decode_ir"]), encoding="ascii")
    return counts


def _type_text(type_: Type) -> str:
    return json.dumps(type_to_json(type_), ensure_ascii=False, separators=(",", ":"))


def _dictionary(seeds: set[bytes]) -> str:
    """Every key of the documents with its colon, and every short word: in libFuzzer's form of a dictionary."""
    words = {word for seed in seeds for word in re.findall(rb'"[a-z_.]{2,24}":?', seed)}
    shown = ["".join(f"\\x{byte:02x}" for byte in word) for word in sorted(words)]
    shown += ["".join(f"\\x{byte:02x}" for byte in word.encode()) for word in WORDS]
    return "".join(f'"{word}"\n' for word in shown)
