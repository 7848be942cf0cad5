"""Meanings of NODE on a command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.console import ROOT
from vesper.language.syntax.declared_id import declared_id
from vesper.repository import locate as module
from vesper.repository.locate import NodeNotFound, id_of, locate, node_files, plain_id, versions


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a/price_v1", "a/price_v2", "b/price_v10", "b/tax_v1", "c/tax_v1", "c/plain"):
        write(tmp_path / f"{name}.vsp", "")
    return tmp_path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_name_without_version_selects_the_newest(root: Path) -> None:
    assert locate("price", root) == root / "b/price_v10.vsp"
    assert locate("price_v2", root) == root / "a/price_v2.vsp"
    assert locate("plain", root) == root / "c/plain.vsp"
    assert locate(str(root / "a/price_v1.vsp"), root) == root / "a/price_v1.vsp"


@pytest.mark.parametrize(
    "wanted, said",
    [
        ("tax", "b/tax_v1.vsp` and in"),
        ("prise", "did you mean `price`"),
        ("nothing_like_it", "no node `nothing_like_it`"),
        ("no/such.vsp", "there is no file `no/such.vsp`"),
    ],
)
def test_unknown_node_is_reported(root: Path, wanted: str, said: str) -> None:
    with pytest.raises(NodeNotFound, match=said):
        locate(wanted, root)


def test_node_files_lists_folders_and_files(root: Path) -> None:
    assert len(node_files([root])) == 6
    assert node_files([root / "a", root / "a/price_v1.vsp"]) == [root / "a/price_v1.vsp", root / "a/price_v2.vsp"]
    with pytest.raises(NodeNotFound):
        node_files([root / "none"])
    with pytest.raises(NodeNotFound, match="--nodes"):
        locate("price", root / "none")


def test_declared_id_is_found_under_any_file_name(root: Path) -> None:
    odd = write(root / "c/odd.vsp", "intent: x\nnode_id: refund_v3 # last\nflow: [\n")
    assert locate("refund_v3", root) == odd
    assert locate("refund", root) == odd
    assert locate("odd", root) == odd
    with pytest.raises(NodeNotFound, match="did you mean `refund`"):
        locate("refnd", root)
    write(root / "c/charge_order_v1.vsp", "")
    with pytest.raises(NodeNotFound, match="did you mean `charge_order`"):
        locate("charge", root)


def test_two_files_with_one_id_are_both_named(root: Path) -> None:
    write(root / "a/one.vsp", "node_id: refund_v1")
    write(root / "b/two.vsp", "node_id: refund_v1")
    with pytest.raises(NodeNotFound, match=r"a/one\.vsp` and in `.*b/two\.vsp`; name one file"):
        locate("refund", root)


def test_declared_id_takes_precedence_over_the_file_name(root: Path) -> None:
    called = write(root / "a/refund_v1.vsp", "node_id: other_v1")
    assert locate("refund_v1", root) == called, "nobody declares it"
    declares = write(root / "b/odd.vsp", "node_id: refund_v1")
    assert locate("refund_v1", root) == declares


def test_only_the_file_with_the_right_name_is_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def noting(path: Path) -> str:
        read.append(path.name)
        return id_of(path)

    monkeypatch.setattr(module, "id_of", noting)
    locate("price_v1", root)
    assert read == ["price_v1.vsp"]
    read.clear()
    locate("price", root)
    assert all("price_v" in name for name in read), "the others do not mention it"


def test_newest_version_is_the_newest_declared_one(root: Path) -> None:
    """The declared ids count, not the file names."""
    write(root / "refund_v1.vsp", "node_id: refund_v1")
    write(root / "refund_v9.vsp", "node_id: refund_v2")
    newest = write(root / "odd.vsp", "node_id: refund_v3")
    assert locate("refund", root) == newest
    assert locate("refund_v3", root) == newest
    escaped = write(root / "escaped.vsp", 'node_id: "tariff\\x5fv4"')
    assert locate("tariff", root) == escaped


@pytest.mark.parametrize(
    "text, found",
    [
        ("node_id: fee_v1", "fee_v1"),
        ("type: function\ninputs: {node_id: no_v1}\n'node_id': \"fee_v1\"\n", "fee_v1"),
        ("{inputs: [[a], {b: c}], node_id: fee_v1}", "fee_v1"),
        ("[a, b]: x\nnode_id: fee_v1\nflow: [", "fee_v1"),
        ("\r\n# text\r\nnode_id: fee_v1\r\n", "fee_v1"),
        ("intent: node_id\ntype: fee_v1\n", "file"),
        ("- node_id\n- fee_v1\n", "file"),
        ("node_id: [fee_v1]\n", "file"),
        ("flow: [}\nnode_id: fee_v1\n", "file"),
        ("flow: " + "[" * 5000 + "\nnode_id: fee_v1\n", "file"),
        ("", "file"),
        ("node_id", "file"),
    ],
)
def test_id_of_reads_the_declared_id(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "file.vsp"
    path.write_bytes(text.encode())
    assert id_of(path) == found


def test_unreadable_file_is_matched_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "file_v1.vsp").write_bytes(b"node_id: \xff\xfe\x00")
    assert id_of(tmp_path / "file_v1.vsp") == "file_v1"
    assert id_of(tmp_path / "gone_v1.vsp") == "gone_v1"


def test_versions_are_sorted_numerically_newest_first(root: Path) -> None:
    assert list(versions("price", node_files([root]))) == [10, 2, 1]
    assert list(versions("tax", node_files([root])).values()) == [[root / "b/tax_v1.vsp", root / "c/tax_v1.vsp"]]
    assert versions("plain", node_files([root])) == {}


@pytest.mark.parametrize("path", sorted((ROOT / "nodes").rglob("*.vsp")), ids=lambda path: path.stem)
def test_id_of_a_usual_file_is_read_without_a_parser(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = declared_id(text)
    assert found is not None
    assert plain_id(text) == found[0]


@pytest.mark.parametrize(
    "text",
    [
        "node_id: one_v1\n",
        "# a comment\n\n  # another\nnode_id: one_v1   # its name\ntype: function\n",
        "node_id: one_v1\n  two\ntype: x\n",
        "node_id: one_v1\n\n  two\n",
        "node_id: one_v1\n\ttwo\n",
        "node_id: 'one_v1'\n",
        "node_id: one_v1",
        "node_id: >\n  one_v1\n",
        "{node_id: one_v1}\n",
        "---\nnode_id: one_v1\n",
        "type: function\nnode_id: one_v1\n",
        "node_id:one_v1\n",
        "node_id: one_v1: two\n",
        "node_id: one_v1 # x\n  two: 3\n",
        "node_id: &a one_v1\n",
        "\ufeffnode_id: one_v1\n",
        "node_id: one_v1\ntype: \x00\n",
        "node_id: one_v1\ntype: \x07\n",
        "node_id: one_v1\r\ntype: function\r\n",
        "node_id: one_v1\n- x\n",
        "node_id: one_v1\n: x\n",
        " node_id: one_v1\n type: x\n",
        "node_id: one_v1\nnode_id: two_v1\n",
    ],
    ids=lambda text: repr(text)[:40],
)
def test_unusual_file_needs_the_parser(text: str) -> None:
    found, plain = declared_id(text), plain_id(text)
    assert plain is None or (found is not None and found[0] == plain)
