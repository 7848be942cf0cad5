"""What a proof is tied to: the sources that it was made from, and the file that keeps its numbers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
PROOFS = ROOT / "docs" / "proofs"
STATE = ROOT / ".proofs"
"""Where a campaign that is under way keeps what it has; not committed."""


LANGUAGE = ("codegen", "compiler", "engines", "kernels", "language", "values", "verify")
"""The packages that decide how a node is checked and executed."""


def source_hash() -> str:
    """Changes with every change of what decides how nodes are checked and executed, and of `nodes/`. The Host, the
    journal, the commands and the API are no part of it."""
    parts = [path for name in LANGUAGE for path in (ROOT / "vesper" / name).rglob("*.py")]
    return hash_of([*parts, *(ROOT / "nodes").rglob("*.vsp")])


def whole_hash() -> str:
    """Changes with every change of `vesper/` and of `nodes/`."""
    return hash_of([*(ROOT / "vesper").rglob("*.py"), *(ROOT / "nodes").rglob("*.vsp")])


STORES = {
    "storage": ["postgres_server", "sqlite_errors", "sqlite_file", "transaction"],
    "migration/compare": ["divergence"],
    "migration/control": ["controller", "routing", "state"],
    "migration/stores": [
        *("codec", "ledger", "postgres_store", "redis_store", "redis_values", "sql_store", "sql_tables"),
        *("sqlite_store", "store", "store_rules", "traffic"),
    ],
}
"""What decides how migration state is kept."""


def store_hash() -> str:
    """Changes with every change of the stores of migration state, and of what is done in them."""
    return hash_of([ROOT / "vesper" / package / f"{name}.py" for package, names in STORES.items() for name in names])


def engine_hash() -> str:
    """Changes with every change of the Rust engine, of its fuzz targets, and of `nodes/`."""
    runtime = ROOT / "direct_runtime"
    locks = [runtime / "Cargo.lock", runtime / "fuzz" / "Cargo.lock"]
    return hash_of([*rust_sources(), *(runtime / "fuzz").rglob("*.rs"), *locks, *(ROOT / "nodes").rglob("*.vsp")])


def rust_sources() -> list[Path]:
    """What the Rust engine is built of: the tests of its crates say nothing of what a proof is about."""
    crates = ROOT / "direct_runtime" / "crates"
    return sorted(
        path
        for path in crates.rglob("*.rs")
        if path.name != "tests.rs" and "tests" not in path.relative_to(crates).parts[1:-1]
    )


def debugger_hash() -> str:
    """Changes with every change of the debugger, and of the command that serves it to editors."""
    return hash_of([*(ROOT / "vesper" / "debug").rglob("*.py"), ROOT / "vesper" / "cli" / "debug" / "dap_server.py"])


def hash_of(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(
            f"{path.relative_to(ROOT).as_posix()}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode()
        )
    return digest.hexdigest()


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Replace a file as a whole, so that a campaign that is killed leaves the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".new")
    scratch.write_text(compact_json(value), encoding="utf-8")
    scratch.replace(path)


def write_proof(name: str, summary: dict[str, Any], raw: dict[str, Any] | None = None) -> None:
    """Write the committed summary of a proof, and its raw results into the ignored folder."""
    if raw is not None:
        write_json(STATE / name / "raw.json", raw)
    write_json(PROOFS / f"{name}.json", summary)


def compact_json(value: object, width: int = 180) -> str:
    """Return JSON in which every part that fits the width takes one line. A committed summary has few lines."""
    return "\n".join(_lines("", value, "", width)) + "\n"


def _lines(head: str, value: object, indent: str, width: int) -> list[str]:
    text = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or len(indent + head + text) < width:
        return [indent + head + text]
    members = (
        [(json.dumps(key, ensure_ascii=False) + ": ", each) for key, each in value.items()]
        if isinstance(value, dict)
        else [("", each) for each in value]
    )
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    inner = indent + "  "
    if indent and not any(isinstance(each, dict) for _, each in members):
        body = _filled([name + json.dumps(each, ensure_ascii=False) for name, each in members], inner, width)
    else:
        parts = [_lines(name, each, inner, width) for name, each in members]
        body = [line for part in parts[:-1] for line in (*part[:-1], part[-1] + ",")] + parts[-1]
    return [indent + head + opening, *body, indent + closing]


def _filled(members: list[str], indent: str, width: int) -> list[str]:
    """Return lines of as many members each as the width holds."""
    lines = [indent + members[0]]
    for member in members[1:]:
        if len(lines[-1]) + len(member) + 3 < width:
            lines[-1] += f", {member}"
        else:
            lines[-1] += ","
            lines.append(indent + member)
    return lines


def read_json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
