"""Tampered IR: invalid names, unknown operations and prose as code are rejected by engines.

The direct engine verifies what it loads. The python engine generates code from a decoded node and refuses to write an
invalid identifier.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from libcst import CSTValidationError

from tests.integration.security.documents import effectful, pure, shape, yaml_text
from tests.integration.security.watch import untouched, watched
from vesper.codegen.module import generate_module
from vesper.codegen.vocabulary import VocabularyError, check_identifiers
from vesper.compiler import Compiled, compile_source
from vesper.engines.engine import run_observed
from vesper.engines.registry import ENGINES
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir.decode import decode
from vesper.language.ir.encode import canonical_json

HOSTILE = (
    "x: __import__('this') = 1",
    "x\nimport this",
    "x; import this",
    "x, y",
    "checked(1)",
    "os.system",
    "x=open('canary', 'w')",
    "x #",
    "ｅval",
    "x y",
    "",
    "1x",
    "x\u2028import this",
    "x\x00",
)
REFUSALS = (ValueError, VocabularyError, CSTValidationError)
"""Exceptions of the direct engine (`IrRejected`), the decoder (`IrError`), the vocabulary and libcst."""
NAMES = ("small_v1", "a", "result", "greeting", "shown", "label")


def _node() -> Compiled:
    node, bag = compile_source(SourceFile("small_v1.vsp", yaml_text(pure())))
    assert node is not None, [each.headline for each in bag.sorted()]
    return node


def _renamed(form: Any, old: str, new: str) -> Any:
    """Return the document with a name replaced in keys, values and references."""
    match form:
        case dict():
            return {(new if key == old else key): _renamed(value, old, new) for key, value in form.items()}
        case list():
            return [_renamed(each, old, new) for each in form]
        case str():
            return new if form == old else form
        case _:
            return form


@pytest.mark.parametrize("new", HOSTILE, ids=ascii)
@pytest.mark.parametrize("old", NAMES)
def test_a_name_that_is_none_is_refused_by_every_engine(old: str, new: str) -> None:
    node = _node()
    data = canonical_json(_renamed(json.loads(node.ir), old, new))
    assert data != node.ir
    for engine in ENGINES.values():
        with pytest.raises(REFUSALS):
            engine.load(replace(node, ir=data, node=decode(data)))


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_generated_code_has_only_identifiers(name: str) -> None:
    with pytest.raises(VocabularyError):
        check_identifiers({"fine", name})
    check_identifiers({"fine", "_", "x1", "D_0_5"})


@pytest.mark.parametrize("op", ["os.system", "text.__class__", "decimal.exec", "integer.add; import this", "eval", ""])
def test_an_operation_that_is_none_is_refused(op: str) -> None:
    node = _node()
    document = json.loads(node.ir)
    calls = [row["call"] for row in document["semantics"]["expressions"] if "call" in row]
    calls[0]["op"] = op
    data = canonical_json(document)
    with pytest.raises(ValueError):  # IrRejected
        ENGINES["interp"].load(replace(node, ir=data))
    with pytest.raises(REFUSALS):
        ENGINES["python"].load(replace(node, ir=data, node=decode(data)))


@pytest.mark.parametrize("text", ['"""\nimport this\n"""', "x\nimport this", "\\", "coding: utf-7 +AAo-import this"])
@pytest.mark.parametrize("place", ["path", "intent", "clauses", "locals"])
def test_prose_of_the_source_is_a_comment(place: str, text: str, tmp_path: Path) -> None:
    """Engines carry prose without interpreting it; local names become identifiers or are rejected."""
    node = _node()
    document = json.loads(node.ir)
    source = document["source"]
    match place:
        case "clauses":
            source["clauses"] = dict.fromkeys(source["clauses"], text)
        case "locals":
            assert source["locals"], "the node has a name that an expression binds"
            source["locals"] = [text for _ in source["locals"]]
        case _:
            source[place] = text
    data = canonical_json(document)
    tampered = replace(node, ir=data, node=decode(data))
    if place == "locals":
        with pytest.raises(REFUSALS):
            ENGINES["python"].load(tampered)
        return
    for traced in (False, True):
        generated = generate_module(tampered.node, traced).text
        assert shape(generated) == shape(generated.encode()) == shape(generate_module(decode(node.ir), traced).text)
    for engine in ENGINES.values():
        program = engine.load(tampered)
        run_observed(program, {"a": "x"})  # the traced form is compiled here
        with watched(tmp_path / "canary"):
            program.call({"a": "x"})
    untouched(tmp_path / "canary")


@pytest.mark.parametrize("effect", ["os.system", "__import__", "x\nimport this", ""])
def test_an_effect_that_is_none_is_refused(effect: str) -> None:
    node, bag = compile_source(SourceFile("small_v1.vsp", yaml_text(effectful())))
    assert node is not None, [each.headline for each in bag.sorted()]
    document = _renamed(json.loads(node.ir), "database_query", effect)
    data = canonical_json(document)
    assert data != node.ir
    with pytest.raises(ValueError):  # IrRejected
        ENGINES["interp"].load(replace(node, ir=data))
    with pytest.raises((KeyError, *REFUSALS)):
        ENGINES["python"].load(replace(node, ir=data, node=decode(data)))
