"""`make proof-escapes`: an injected model tries to leave what was granted to its agent, in real runs.

Each escape runs once against a folder of its own, with the provider's protocol on loopback, real files, commands in the
sandbox and a real MCP server. The oracle looks at the world: files and their hashes, what the model and the caller were
told, argument lists of programs, calls that reached the server, a web server that nothing may reach, and the journal.

The control is a careless configuration (every grant, no patterns, no rules): the oracle must find breaches there.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.escapes.escapes import ESCAPES, Escape  # noqa: E402  # after the path is set
from tests.proofs.escapes.estate import Estate, Ran  # noqa: E402
from tests.proofs.robustness.proof import PROOFS, STATE, hash_of, write_json  # noqa: E402
from tests.support.models.server import ModelServer  # noqa: E402
from tests.support.web import Got, Web, Wire, message  # noqa: E402

CONTROLS = (
    "another folder of the root", "a hidden file", "writing outside the pattern", "a second command",
    "an allowed command that reads outside", "an allowed command that writes outside",
    "an allowed command that connects", "a tool of the agent that nobody granted",
)  # fmt: skip
"""Escapes that succeed where the configuration is careless."""
_SOURCES = ("effects/commands", "effects/mcp", "effects/files", "effects/hooks", "host/tools", "language/check/agents")


class Sink(Web):
    """A server outside, which no run may reach."""

    def answer(self, got: Got, wire: Wire) -> None:
        wire.send(message(200, b"sent"))


def attempt_all(escapes: Sequence[Escape], folder: Path, *, is_careless: bool = False) -> list[Ran]:
    """Try escapes one after the other; return what each reached."""
    with ModelServer() as server, Sink() as sink:
        estate = Estate(folder, server, sink, is_careless=is_careless)
        ran = []
        for number, escape in enumerate(escapes):
            began = time.monotonic()
            ran.append(estate.attempt(escape, number))
            took = time.monotonic() - began
            print(f"{took:5.2f} s  {escape.kind}: {escape.name}: {ran[-1].outcome[:80]!r}", file=sys.stderr)
        return ran


def source_hash() -> str:
    files = [path for name in _SOURCES for path in (ROOT / "vesper" / name).rglob("*.py")]
    return hash_of([*files, *Path(__file__).parent.rglob("*.py"), *Path(__file__).parent.rglob("*.vsp")])


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", help="escapes whose name has this text")
    options.add_argument("--sample", action="store_true", help="one in four escapes, and two controls")
    options.add_argument("--no-write", action="store_true", help="print the summary, and write no file")
    given = options.parse_args()
    chosen = [each for each in ESCAPES if given.only is None or given.only in each.name]
    controls = [each for each in chosen if each.name in CONTROLS]
    if given.sample:
        chosen, controls = chosen[::4], controls[:2]
    began = time.monotonic()
    STATE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="escapes-", dir=STATE) as folder:
        runs = attempt_all(chosen, Path(folder).resolve() / "guarded")
        careless = attempt_all(controls, Path(folder).resolve() / "careless", is_careless=True)
    for ran in runs:
        for breach in ran.breaches:
            print(f"BREACH  {ran.escape.kind}: {ran.escape.name}: {breach}")
    unnoticed = [ran.escape.name for ran in careless if not ran.breaches]
    print("".join(f"unnoticed control: {each}\n" for each in unnoticed), end="")
    found = {
        "source_hash": source_hash(),
        "escapes": len(runs),
        "by_kind": dict(Counter(each.escape.kind for each in runs)),
        "requests_of_models": sum(each.asked for each in runs),
        "performed_as_granted": sum(len(each.performed) for each in runs),
        "performed_without_grant": sum(bool(each.breaches) for each in runs),
        "controls": len(careless),
        "controls_noticed": len(careless) - len(unnoticed),
        "seconds": round(time.monotonic() - began, 1),
    }
    is_right = not found["performed_without_grant"] and not unnoticed
    found["is_right"] = is_right
    print(json.dumps(found, indent=2))
    if not given.no_write and len(chosen) == len(ESCAPES):
        write_json(PROOFS / "escapes.json", found)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
