"""`make proof-neovim`: Neovim 0.10 edits a broken node, headless, with `vesper lsp`.

    python -m tests.proofs.editor.neovim

A Neovim on the PATH that is new enough is used; else the packages of Debian 13 are unpacked into `.proofs/neovim`, and
run with the C library among them. Nothing is installed. Writes `docs/proofs/neovim.json`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.proofs.robustness.proof import PROOFS, STATE, hash_of, write_json
from vesper.repository.starter import starter

ROOT = Path(__file__).parents[3]
SCRIPT = Path(__file__).with_suffix(".lua")
FOLDER = STATE / "neovim"
SUITE = "deb http://deb.debian.org/debian trixie main\n"
OLDEST = (0, 10)
TIMEOUT_SECONDS = 500
EXPECTED = {
    "fix": "Write `amount`",
    "fixed_line": "- amount > 0",
    "definition_line": 6,
    "formatted": True,
    "typing": True,
    "renamed_value": "value: amount * share",
}


def main() -> int:
    command, environment = _installed() or _unpacked()
    with tempfile.TemporaryDirectory() as folder:
        project, result = Path(folder).resolve(), Path(folder).resolve() / "result.json"
        (project / "nodes").mkdir()
        broken = starter("broken_v1", "function").replace("- amount > 0", "- ammount > 0")
        (project / "nodes" / "broken_v1.vsp").write_text(broken, encoding="utf-8")
        vesper = Path(sys.executable).with_name("vesper")
        arguments = ["--headless", "--clean", "-i", "NONE", "-n", "-l", str(SCRIPT), str(vesper), folder, str(result)]
        subprocess.run([*command, *arguments], env=environment, timeout=TIMEOUT_SECONDS, check=False)
        found = json.loads(result.read_text(encoding="utf-8"))
    print(json.dumps(found, indent=2))
    if "failed" in found or any(found.get(key) != value for key, value in EXPECTED.items()):
        return 1
    sources = [*(ROOT / "vesper" / "lsp").rglob("*.py"), SCRIPT, Path(__file__)]
    write_json(PROOFS / "neovim.json", {"source_hash": hash_of(sources), **dict(sorted(found.items()))})
    return 0


def _installed() -> tuple[list[str], dict[str, str]] | None:
    """Return Neovim of this machine, if it is new enough."""
    path = shutil.which("nvim")
    if path is None:
        return None
    shown = subprocess.run([path, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    version = re.search(r"v(\d+)\.(\d+)", shown)
    is_new = version is not None and (int(version[1]), int(version[2])) >= OLDEST
    return ([path], dict(os.environ)) if is_new else None


def _unpacked() -> tuple[list[str], dict[str, str]]:
    """Return Neovim from packages of Debian 13, downloaded once."""
    root = FOLDER / "root"
    if not (root / "usr" / "bin" / "nvim").exists():
        _download(root)
    (library,) = (root / "usr" / "lib").glob("*-linux-gnu")
    loader = next(path for path in root.rglob("ld-linux-*.so.*") if path.is_file())
    environment = {**os.environ, "VIMRUNTIME": str(root / "usr/share/nvim/runtime")}
    return [str(loader), "--library-path", str(library), str(root / "usr/bin/nvim")], environment


def _download(root: Path) -> None:
    for part in ("state/lists/partial", "cache/archives/partial"):
        (FOLDER / part).mkdir(parents=True, exist_ok=True)
    (FOLDER / "status").touch()
    (FOLDER / "sources.list").write_text(SUITE, encoding="utf-8")
    settings = {
        "Dir::State": FOLDER / "state",
        "Dir::State::status": FOLDER / "status",
        "Dir::Cache": FOLDER / "cache",
        "Dir::Etc::sourcelist": FOLDER / "sources.list",
        "Dir::Etc::sourceparts": "/nonexistent",
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", "-q", *(word for key, value in settings.items() for word in ("-o", f"{key}={value}"))]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "install", "-y", "--no-install-recommends", "--download-only", "neovim"], check=True)
    for package in sorted((FOLDER / "cache" / "archives").glob("*.deb")):
        subprocess.run(["dpkg", "-x", str(package), str(root)], check=True)


if __name__ == "__main__":
    sys.exit(main())
