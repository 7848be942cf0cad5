"""Write the pictures of the documentation: python -m tests.browser.screenshots [FOLDER]

Six pages of the sample project, as Chromium shows them at 1,280 pixels.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.browser.conftest import ROOT, Dashboard
from tests.browser.estate import FAULTY, HANDLER, Bank

WIDTH: Final = 1_280
_SETTLED_MS: Final = 1_500


def take(folder: Path) -> None:
    """Open the pages and write a picture of each."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    scratch = ROOT / ".proofs"  # a folder for temporary files would be warned about on the page
    scratch.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as place, Bank() as bank:
        project = Path(place) / "shop"
        subprocess.run([sys.executable, "-m", "tests.browser.estate", str(project), bank.url], cwd=ROOT, check=True)
        with Dashboard(project, "--allow-changes") as board, sync_playwright() as playwright:
            path = shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": WIDTH, "height": 900})

            def shoot(name: str) -> None:
                page.wait_for_timeout(_SETTLED_MS)
                page.evaluate("document.querySelector('.who span').textContent = 'ann'")  # not the machine's user
                page.evaluate("scrollTo(0, 0)")
                page.screenshot(path=folder / f"{name}.png")

            page.goto(board.url)
            shoot("fleet")
            page.goto(f"{board.url}/nodes/{FAULTY}")
            shoot("node")
            page.goto(f"{board.url}/divergences?node={FAULTY}")
            page.locator("main table tbody tr a").first.click()
            shoot("divergence")
            page.goto(f"{board.url}/journal")
            shoot("journal")
            page.goto(f"{board.url}/executions?node={HANDLER}")
            page.locator("main table tbody tr").filter(has_text="returned").locator("a").first.click()
            page.get_by_role("link", name="Step through both engines").click()
            page.get_by_role("button", name="Start stepping").click()
            page.wait_for_selector("#stepping .current")
            page.keyboard.press("n")
            shoot("stepping")
            page.goto(f"{board.url}/play?node=shipping_v1")
            page.wait_for_selector(".view-line")
            page.get_by_label("weight_kg").first.wait_for()
            page.get_by_role("button", name="Run").first.click()
            page.get_by_text("the engines agree").first.wait_for()
            shoot("playground")
            browser.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures" / "dashboard")
