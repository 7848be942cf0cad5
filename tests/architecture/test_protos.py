"""The committed messages of the kernel are those of schemas/proto."""

from __future__ import annotations

import hashlib

from tests.support.nodes import ROOT

CODE = ROOT / "direct_runtime" / "crates" / "vesper-kernel" / "src"


def test_the_messages_were_generated_from_these_protos() -> None:
    """After a change of a proto, `make generate-protos` writes the messages and these digests."""
    found = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(ROOT).as_posix()}"
        for path in sorted((ROOT / "schemas" / "proto").rglob("*.proto"), key=lambda path: path.as_posix())
    ]
    written = (CODE / "proto" / "sources.sha256").read_text(encoding="utf-8").splitlines()
    assert found == written


def test_the_kernel_has_no_lock_and_no_unsafe_code() -> None:
    crates = [CODE.parent, CODE.parents[1] / "vesper-kernel-grpc"]
    texts = {path: path.read_text(encoding="utf-8") for crate in crates for path in crate.rglob("src/**/*.rs")}
    assert len(texts) > 30
    assert [path.name for path, text in texts.items() if "Mutex" in text or "RwLock" in text or "unsafe" in text] == []
    for crate in crates:
        assert "[lints]\nworkspace = true" in (crate / "Cargo.toml").read_text(encoding="utf-8")
