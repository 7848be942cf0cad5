"""What NODE may be on a command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from vesper.repository.locate import NodeNotFound, locate, node_files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a/price_v1", "a/price_v2", "b/price_v10", "b/tax_v1", "c/tax_v1", "c/plain"):
        path = tmp_path / f"{name}.vsp"
        path.parent.mkdir(exist_ok=True)
        path.write_text("", encoding="utf-8")
    return tmp_path


def test_a_name_without_version_is_the_newest(root: Path) -> None:
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
def test_what_cannot_be_found(root: Path, wanted: str, said: str) -> None:
    with pytest.raises(NodeNotFound, match=said):
        locate(wanted, root)


def test_folders_and_files(root: Path) -> None:
    assert len(node_files([root])) == 6
    assert node_files([root / "a", root / "a/price_v1.vsp"]) == [root / "a/price_v1.vsp", root / "a/price_v2.vsp"]
    with pytest.raises(NodeNotFound):
        node_files([root / "none"])
    with pytest.raises(NodeNotFound, match="--nodes"):
        locate("price", root / "none")
