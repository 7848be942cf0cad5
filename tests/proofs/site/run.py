"""`make proof-docs`: Chromium visits every page of the documentation site, served on loopback.

    python -m tests.proofs.site.run
    python -m tests.proofs.site.run --only index --screenshots shots

Each page is visited light at 1280 px and dark at 360 px: no console error, no request to another host, no serious or
critical violation of axe, no horizontal scroll. Then every internal link and anchor resolves, and the search finds ten
terms. Needs Chromium (Debian: chromium), Node.js and npm. A whole run writes `docs/proofs/docs.json`.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mkdocs.commands.build import build
from mkdocs.config import load_config

from tests.proofs.robustness.proof import PROOFS, ROOT, STATE, write_json

BROWSER = Path(__file__).parent / "browser"
FOLDER = STATE / "docs"
TIMEOUT_SECONDS = 3600
TERMS = {
    "decision table": "how-to/write-a-decision-table.html",
    "idempotency key": "how-to/run-for-a-caller.html",
    "shadow_direct": "how-to/roll-out-a-node.html",
    "half_even": "spec/numbers.html",
    "VSP1102": "reference/diagnostics.html",
    "array.sum": "reference/operations/array.html",
    "kubernetes": "how-to/deploy.html",
    "audit log": "how-to/audit.html",
    "pandas": "how-to/run-batches.html",
    "Temporal": "compare.html",
}


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files and logs nothing."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Yield the address of a server of a folder, on a free port of loopback."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def visit(pages: list[str], site: Path, terms: dict[str, str], screenshots: Path | None) -> dict[str, Any]:
    """Return the findings of the browser."""
    work = FOLDER / "browser"
    shutil.copytree(BROWSER, work, dirs_exist_ok=True)
    subprocess.run(["npm", "ci", "--silent", "--no-audit", "--no-fund"], cwd=work, check=True)
    with served(site) as base:
        orders = {"base": base, "pages": pages, "terms": terms, "chromium": shutil.which("chromium")}
        orders["screenshots"] = None if screenshots is None else str(screenshots.resolve())
        ran = subprocess.run(
            ["node", "visit.mjs"],
            cwd=work,
            input=json.dumps(orders),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=TIMEOUT_SECONDS,
        )
    findings: dict[str, Any] = json.loads(ran.stdout)
    return findings


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help="visit only pages with this text in their path")
    options.add_argument("--screenshots", type=Path, help="a folder for pictures of five pages")
    given = options.parse_args()
    if missing := [each for each in ("chromium", "node", "npm") if shutil.which(each) is None]:
        print(f"error: {', '.join(missing)} not found: install Chromium, and Node.js 18 with npm", file=sys.stderr)
        return 1
    begin = time.monotonic()
    site = FOLDER / "site"
    build(load_config(str(ROOT / "docs" / "site" / "mkdocs.yml"), site_dir=str(site), strict=True))
    pages = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html")) if path.name != "404.html"]
    chosen = [page for page in pages if given.only in page]
    found = visit(chosen, site, TERMS, given.screenshots)
    elsewhere = [f"a request left for {url}" for url in sorted(set(found["requests_elsewhere"]))]
    print(*elsewhere, sep="\n", end="")
    problems = found["problems"] + elsewhere
    print(f"{len(chosen)} pages, {found['visits']} visits, {found['links']} internal links, {len(problems)} problems")
    if not problems and chosen == pages:
        summary = {
            "pages": len(pages),
            "visits": found["visits"],
            "views": ["light, 1280 px", "dark, 360 px"],
            "internal_links": found["links"],
            "external_links": found["external"],
            "axe": {"rules": found["axe_rules"], "serious_or_critical": 0},
            "console_errors": 0,
            "requests_elsewhere": 0,
            "rank_in_search": found["searches"],
            "browser": f"Chromium {found['browser']}",
            "elapsed_seconds": round(time.monotonic() - begin, 1),
        }
        write_json(PROOFS / "docs.json", summary)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
