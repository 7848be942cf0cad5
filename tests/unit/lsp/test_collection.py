"""Texts in memory: what is checked again after a change, and what is not."""

from __future__ import annotations

from pathlib import Path

from tests.unit.lsp.nodes import FEE, RULES, write_shop
from vesper.compiler.node_cache import NodeCache, cache_path
from vesper.language.diagnostics.codes import Code
from vesper.lsp.collection import Collection, find_files, read_file


def _loaded(nodes: Path) -> Collection:
    collection = Collection()
    for path in find_files([nodes]):
        collection.put(path, read_file(path))
    _check_all(collection)
    return collection


def _check_all(collection: Collection) -> list[str]:
    """Check pending files; return their names."""
    checked = []
    while (path := collection.next_pending()) is not None:
        collection.check(path)
        collection.settle(path)
        checked.append(path.stem)
    collection.update_problems()
    collection.save_caches()
    return checked


def _change(collection: Collection, path: Path, text: str) -> list[str]:
    collection.put(path, text.encode(), is_open=True)
    return _check_all(collection)


def _codes(collection: Collection, path: Path) -> list[Code]:
    return [each.code for each in collection.entries[path].diagnostics]


def test_a_change_without_meaning_is_checked_alone(tmp_path: Path) -> None:
    nodes = write_shop(tmp_path)
    collection = _loaded(nodes)
    assert _change(collection, nodes / "rules_v1.vsp", f"# a comment\n{RULES}") == ["rules_v1"]
    assert _change(collection, nodes / "rules_v1.vsp", RULES.replace("0.02", "0.03")) == [
        "rules_v1",
        "fee_v1",
        "order_v1",
    ]


def test_callers_and_targets_are_found(tmp_path: Path) -> None:
    nodes = write_shop(tmp_path)
    collection = _loaded(nodes)
    fee, rules, order = (nodes / f"{name}_v1.vsp" for name in ("fee", "rules", "order"))
    assert collection.callers(rules) == [fee]
    assert collection.callers(fee) == [order]
    assert collection.resolve(order, "fee") == fee
    assert collection.resolve(fee, "rules_v1", libraries=True) == rules
    assert collection.resolve(fee, "rules_v1") is None
    assert set(collection.ids(fee)) == {"fee_v1", "order_v1", "rules_v1"}


def test_a_view_has_the_newest_tree_that_parses(tmp_path: Path) -> None:
    nodes = write_shop(tmp_path)
    collection, path = _loaded(nodes), nodes / "fee_v1.vsp"
    broken = FEE.replace("value: amount * rate", "value: 'amount")
    whole = collection.view(path)
    assert whole is not None
    assert whole.document is not None
    assert whole.source.text == FEE
    _change(collection, path, broken)
    view = collection.view(path)
    assert view is not None
    assert view.source.text == broken
    assert view.parsed is not None
    assert view.parsed.source.text == FEE
    assert view.checked is not None
    assert view.checked.is_wrong


def test_a_cycle_is_reported_in_both_nodes_and_leaves_them_when_it_is_gone(tmp_path: Path) -> None:
    nodes = write_shop(tmp_path)
    collection = _loaded(nodes)
    fee, order = nodes / "fee_v1.vsp", nodes / "order_v1.vsp"
    call = "  - step: back\n    operation: call_node\n    node: order_v1\n    inputs: {total: amount}\n\n"
    cyclic = FEE.replace("type: function", "type: workflow").replace("flow:\n", f"flow:\n{call}")
    _change(collection, fee, cyclic)
    assert _codes(collection, fee) == [Code.DEPENDENCY_CYCLE]
    assert _codes(collection, order) == [Code.DEPENDENCY_CYCLE]
    _change(collection, fee, FEE)
    assert _codes(collection, fee) == []
    assert _codes(collection, order) == []


def test_ids_and_routes_are_compared_with_other_files(tmp_path: Path) -> None:
    nodes = write_shop(tmp_path)
    collection = _loaded(nodes)
    copy = nodes / "copy_v1.vsp"
    copy.write_text(FEE)
    _change(collection, copy, FEE)
    assert _codes(collection, copy) == [Code.FILE_NAME]
    assert _codes(collection, nodes / "fee_v1.vsp") == [Code.DUPLICATE_NODE]
    collection.remove(copy)
    _check_all(collection)
    assert _codes(collection, nodes / "fee_v1.vsp") == []


def test_rows_of_a_table_and_the_lock_are_read_again(tmp_path: Path) -> None:
    nodes = write_shop(tmp_path)
    collection, order = _loaded(nodes), nodes / "order_v1.vsp"
    (nodes / "vesper.lock").write_text(f'[fee]\nid = "fee_v1"\nhash = "{"0" * 64}"\n')
    collection.refresh(nodes / "vesper.lock")
    assert set(_check_all(collection)) == {"fee_v1", "order_v1"}
    assert _codes(collection, order) == [Code.BAD_LOCK]


def test_an_unreadable_file_is_a_diagnostic(tmp_path: Path) -> None:
    nodes = write_shop(tmp_path)
    (nodes / "fee_v1.vsp").write_bytes(b"\xff")
    (nodes / "order_v1.vsp").unlink()
    (nodes / "order_v1.vsp").symlink_to("/etc/hostname")
    collection = _loaded(nodes)
    assert _codes(collection, nodes / "fee_v1.vsp") == [Code.UNREADABLE_FILE]
    assert _codes(collection, nodes / "order_v1.vsp") == [Code.UNREADABLE_FILE]


def test_results_that_need_no_other_file_come_from_the_cache(tmp_path: Path) -> None:
    nodes = write_shop(tmp_path)
    (nodes / "alone_v1.vsp").write_text(
        FEE.replace("fee_v1", "alone_v1").replace("use: [rules_v1]", "").replace("rate", "2")
    )
    _loaded(nodes)
    file = cache_path(nodes)
    assert file is not None
    with NodeCache(file) as cache:
        assert cache.find(nodes / "alone_v1.vsp") is not None
        assert cache.find(nodes / "fee_v1.vsp") is None
    again = _loaded(nodes)
    view = again.view(nodes / "alone_v1.vsp")
    assert view is not None
    assert view.compiled is None
    assert again.compiled(nodes / "alone_v1.vsp") is not None
