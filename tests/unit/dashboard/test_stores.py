"""Stores that are absent say what to do; nodes are found by id and compiled again after a change."""

from __future__ import annotations

from pathlib import Path

import pytest

from vesper.config.settings import config_from, default_config
from vesper.dashboard.page import NotFound
from vesper.dashboard.stores import Nodes, Stores, Topic, Unavailable

NODE = """\
node_id: {id}
type: function
intent: Doubles
inputs: {{n: integer}}
outputs: {{success: {{twice: integer}}}}
flow:
  - {{operation: return, success: {{twice: {expression}}}}}
"""


def write(folder: Path, name: str, node_id: str, expression: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(NODE.format(id=node_id, expression=expression))


def test_absent_stores_are_not_created_and_say_what_to_do(tmp_path: Path) -> None:
    stores = Stores(default_config(tmp_path))
    for read in (lambda: stores.migration, lambda: stores.journal, lambda: stores.audit, stores.nodes.paths):
        with pytest.raises(Unavailable, match="there is no f") as raised:
            read()
        assert raised.value.remedy
    assert stores.traces.journal is None
    assert list(tmp_path.iterdir()) == []
    stores.close()


def test_a_store_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    stores = Stores(config_from({"migration": {"store": "redis://127.0.0.1:1"}}, tmp_path))
    version = stores.version(Topic.MIGRATION)
    assert isinstance(version, str), "a store that is away has no versions"
    stores.close()


def test_nodes_are_found_by_the_id_that_they_declare(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path / "nodes")
    write(nodes.folder, "a.vsp", "double_v1", "n * 2")
    (nodes.folder / "lib.vsp").write_text("library_id: rates_v1\n")
    assert nodes.paths() == {"double_v1": nodes.folder / "a.vsp"}
    with pytest.raises(NotFound, match="declares the node `triple_v1`"):
        nodes.path("triple_v1")
    before = nodes.stamp()
    write(nodes.folder, "b.vsp", "triple_v1", "n * 3")
    assert nodes.stamp() != before
    assert nodes.path("triple_v1").name == "b.vsp"


def test_a_link_to_nothing_hides_no_file(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path / "nodes")
    for name in ("a", "b", "c"):  # in whatever order the folder has them
        write(nodes.folder, f"{name}.vsp", f"{name}_v1", "n * 2")
        (nodes.folder / f"{name}_link.vsp").symlink_to(tmp_path / "absent")
    assert set(nodes.stamp()) == {str(each) for each in nodes.paths().values()}
    assert set(nodes.paths()) == {"a_v1", "b_v1", "c_v1"}


def test_a_node_is_compiled_again_only_after_a_change(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path / "nodes")
    write(nodes.folder, "a.vsp", "double_v1", "n * 2")
    first, _ = nodes.compiled("double_v1")
    assert first is not None
    assert nodes.compiled("double_v1")[0] is first
    write(nodes.folder, "a.vsp", "double_v1", "n + missing")
    broken, diagnostics = nodes.compiled("double_v1")
    assert broken is None
    assert diagnostics.sorted()
