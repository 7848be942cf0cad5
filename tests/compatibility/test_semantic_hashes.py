"""Nodes keep their semantic hashes: a new form of the language is an optional field of the IR, which they lack."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.goldens import ROOT
from vesper.compiler import compile_file

PINNED = dict(line.split() for line in Path(__file__).with_name("semantic_hashes.txt").read_text().splitlines())
PATHS = {path.name: path for path in (ROOT / "nodes").rglob("*.vsp")}


@pytest.mark.parametrize("name", sorted(PINNED))
def test_a_node_keeps_its_semantic_hash(name: str) -> None:
    compiled, bag = compile_file(PATHS[name])
    assert compiled is not None, bag
    assert compiled.semantic_hash == PINNED[name]
