"""Every page that links lead to: without errors, accessible, at all widths, light and dark, small enough."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from starlette.routing import Match, Route

from tests.browser.conftest import Dashboard
from tests.browser.estate import SECRET_INCOME
from vesper.dashboard.app import whole_site

MAX_PAGE_BYTES: Final = 300 << 10
WIDTHS: Final = (360, 1280, 2560)
_SAMPLES: Final = 2
"""Addresses of one page that are opened."""
_LINKS: Final = "all => all.map(each => new URL(each.getAttribute('href'), document.baseURI).href)"
_LARGE: Final = "/play"
"""The playground, whose editor is larger."""

_PAGES = {page.path: Route(page.path, print) for page in whole_site().pages}  # only their patterns are used


def _pattern(path: str) -> str | None:
    """Return the page of an address; None for files and downloads."""
    scope = {"type": "http", "path": path, "method": "GET", "root_path": ""}
    return next((name for name, route in _PAGES.items() if route.matches(scope)[0] is Match.FULL), None)


@pytest.fixture(scope="module")
def addresses(browser: Any, dashboard: Dashboard) -> dict[str, list[str]]:
    """Return addresses by page, found by following links from the first page."""
    found: dict[str, list[str]] = {}
    page = browser.new_page()
    waiting = ["/"]
    seen = set(waiting)
    while waiting:
        address = waiting.pop(0)
        pattern = _pattern(urlsplit(address).path)
        if pattern is None or len(found.setdefault(pattern, [])) >= _SAMPLES:
            continue
        response = page.goto(dashboard.url + address, wait_until="load")
        assert response.status == 200, f"{address}: {response.status}"
        found[pattern].append(address)
        for link in page.eval_on_selector_all("a[href]", _LINKS):
            parts = urlsplit(link)
            target = parts.path + (f"?{parts.query}" if parts.query else "")
            if f"{parts.scheme}://{parts.netloc}" == dashboard.url and target not in seen:
                seen.add(target)
                waiting.append(target)
    page.close()
    return found


def test_every_page_is_linked(addresses: dict[str, list[str]]) -> None:
    unlinked = set(_PAGES) - set(addresses) - {"/divergences/{node}/{fingerprint}/shrink"}  # shown by its action
    assert unlinked == set(), f"no link leads to {unlinked}"


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_pages_are_accessible_and_small(
    addresses: dict[str, list[str]], dashboard: Dashboard, open_page: Any, is_dark: bool
) -> None:
    axe = Axe()
    problems: list[str] = []
    page = open_page(dashboard.url, dark=is_dark)
    sizes: dict[str, int] = {}
    page.on("response", lambda each: sizes.update({each.url: int(each.headers.get("content-length", "0"))}))
    for pattern, (address, *_) in addresses.items():
        sizes.clear()
        page.goto(dashboard.url + address, wait_until="load")
        if pattern != _LARGE and sum(sizes.values()) > MAX_PAGE_BYTES:
            problems.append(f"{address} has {sum(sizes.values()):,} bytes")
        assert SECRET_INCOME not in page.content(), f"{address} shows a sensitive value"
        for each in axe.run(page).response["violations"]:
            if each["impact"] in ("serious", "critical"):
                places = "; ".join(node["html"][:120] for node in each["nodes"][:3])
                problems.append(f"{address}: {each['id']}: {each['help']}: {places}")
    assert problems == []


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit(addresses: dict[str, list[str]], dashboard: Dashboard, open_page: Any, width: int) -> None:
    page = open_page(dashboard.url, width=width)
    wide: list[str] = []
    for found in addresses.values():
        page.goto(dashboard.url + found[0], wait_until="load")
        if page.evaluate("document.documentElement.scrollWidth") > width:
            wide.append(found[0])
    assert wide == [], f"wider than {width} pixels"


def test_pages_work_without_script(addresses: dict[str, list[str]], dashboard: Dashboard, open_page: Any) -> None:
    page = open_page(dashboard.url, scripts=False)
    for found in addresses.values():
        page.goto(dashboard.url + found[0], wait_until="load")
        assert page.locator("main").inner_text().strip(), found[0]


def test_the_api_has_every_page(addresses: dict[str, list[str]], dashboard: Dashboard, open_page: Any) -> None:
    page = open_page(dashboard.url)
    for found in addresses.values():
        response = page.request.get(f"{dashboard.url}/api{found[0]}")
        assert response.status == 200, found[0]
        assert response.json() is not None
