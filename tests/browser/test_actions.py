"""What an operator does, from the first page on: each action in Chromium, and its trace in the stores."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

from tests.browser.conftest import ROOT, Dashboard
from tests.browser.estate import FAULTY, HANDLER, TRANSFER

REASON = "tried by the browser tests"


def vesper(dashboard: Dashboard, *words: str) -> str:
    """Return what a command prints about the same stores."""
    done = subprocess.run(
        [sys.executable, "-m", "vesper", *words],
        cwd=dashboard.folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout + done.stderr


def act(page: Any, label: str, **fields: str) -> None:
    """Open the form with this label, fill it in and send it."""
    form = page.locator("details.action").filter(has=page.locator("summary", has_text=re.compile(f"^{label}")))
    if form.first.get_attribute("open") is None:
        form.locator("summary").first.click()
    for name, value in fields.items():
        form.locator(f"[name={name}]").first.fill(value)
    reason = form.locator("[name=reason]")
    if reason.count():
        reason.first.fill(REASON)
    form.locator("button[type=submit]").first.click()
    page.wait_for_load_state("load")


def test_a_divergence_is_found_shrunk_kept_and_closed(dashboard: Dashboard, open_page: Any) -> None:
    page = open_page(dashboard.url)
    page.get_by_role("link", name=FAULTY).first.click()
    page.get_by_role("link", name="Divergences").last.click()
    page.locator("main table tbody tr a").first.click()
    assert page.locator("main").get_by_text("fee").count()
    fingerprint = page.url.rsplit("/", 1)[1].partition("?")[0]
    act(page, "Shrink")
    page.wait_for_selector("text=/[Ss]mallest/")
    page.goto(f"{dashboard.url}/divergences/{FAULTY}/{fingerprint}")
    page.get_by_role("link", name="Keep as a case").click()
    assert page.locator("pre, .diff").count()
    act(page, "Keep the case")
    kept = (dashboard.folder / "nodes" / f"{FAULTY}.vsp").read_text(encoding="utf-8")
    assert fingerprint[:8] in kept or kept.count("- name:") > 2
    page.goto(f"{dashboard.url}/divergences/{FAULTY}/{fingerprint}")
    act(page, "Close")
    assert page.get_by_text("closed").count()
    assert REASON in vesper(dashboard, "migrate", "history", FAULTY)


def test_a_node_is_killed_and_resumed(dashboard: Dashboard, open_page: Any) -> None:
    page = open_page(f"{dashboard.url}/nodes/shipping_v1")
    act(page, "Kill")
    assert REASON in vesper(dashboard, "migrate", "history", "shipping_v1")
    page.goto(dashboard.url)
    assert page.locator("main").get_by_text("shipping_v1").count()
    page.goto(f"{dashboard.url}/nodes/shipping_v1")
    act(page, "Resume")
    assert vesper(dashboard, "migrate", "history", "shipping_v1").count(REASON) >= 2


def test_a_run_in_doubt_is_resolved(dashboard: Dashboard, open_page: Any) -> None:
    page = open_page(f"{dashboard.url}/journal")
    page.get_by_role("link", name=re.compile("^Decide")).first.click()
    execution = page.url.rsplit("/", 1)[1].partition("#")[0]
    assert page.locator("main").get_by_text(TRANSFER).count()
    act(page, "It happened", result='{"id": "tr_77"}')
    assert "tr_77" in vesper(dashboard, "journal", "show", execution)
    assert REASON in vesper(dashboard, "journal", "show", execution)


def test_a_replay_is_stepped_back_and_changed(dashboard: Dashboard, open_page: Any) -> None:
    page = open_page(f"{dashboard.url}/executions?node={HANDLER}")
    page.locator("main table tbody tr").filter(has_text="returned").locator("a").first.click()
    page.get_by_role("link", name="Step through both engines").click()
    page.get_by_role("button", name="Start stepping").click()
    page.wait_for_selector("#stepping .current")
    first = page.locator("#stepping .current").first.inner_text()
    page.keyboard.press("n")
    page.wait_for_function("text => document.querySelector('#stepping .current')?.innerText !== text", arg=first)
    page.keyboard.press("b")
    page.wait_for_function("text => document.querySelector('#stepping .current')?.innerText === text", arg=first)
