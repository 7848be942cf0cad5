"""Watchers of a live page share one reading and one rendering; answers have tags; forms keep their own token."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.dashboard import TestClient, client_of
from tests.unit.dashboard import test_app
from vesper.dashboard.access.caller import Role
from vesper.dashboard.app import Site
from vesper.dashboard.page import Context
from vesper.dashboard.problem import Unavailable
from vesper.dashboard.rendering import prose


def counted(folder: Path) -> tuple[Site, list[Context]]:
    site = test_app.site(folder)
    contexts: list[Context] = []

    def read(context: Context) -> test_app.Greeting:
        contexts.append(context)
        return test_app.read(context)

    return replace(site, pages=(replace(site.pages[0], read=read),)), contexts


def test_watchers_share_a_rendering_and_have_their_own_tokens(tmp_path: Path) -> None:
    site, contexts = counted(tmp_path)
    with client_of(tmp_path, site) as client:
        first, second = (client.get("/hello/x", headers={"x-live": "1"}) for _ in range(2))
        assert len(contexts) == 1, "the page was read for each watcher"
        assert contexts[0].caller.roles == {Role.VIEWER}
        assert "<!DOCTYPE" not in first.text
        assert 'id="greeting"' in first.text
        tokens = [re.findall(r'name="csrf" value="([0-9a-f]+)"', each.text) for each in (first, second)]
        assert tokens[0] != tokens[1]
        done = client.post("/hello/x/rename", data={"csrf": tokens[0][0], "reason": "a typo"}, follow_redirects=False)
        assert done.status_code == 303
        again = client.get("/hello/x", headers={"x-live": "1", "if-none-match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert client.get("/hello/x").status_code == 200
        assert len(contexts) == 2, "a page that is loaded is always read"


def test_the_api_has_tags(tmp_path: Path) -> None:
    with client_of(tmp_path, test_app.site(tmp_path)) as client:
        tag = client.get("/api/hello/x").headers["etag"]
        assert client.get("/api/hello/x", headers={"if-none-match": tag}).status_code == 304
        assert client.get("/api/hello/y", headers={"if-none-match": tag}).status_code == 200


def test_a_store_that_is_away_and_a_bug_are_pages(tmp_path: Path) -> None:
    site = test_app.site(tmp_path)

    def away(_context: Context) -> test_app.Greeting:
        raise Unavailable("the journal", "it is locked", "Wait.")

    def broken(_context: Context) -> test_app.Greeting:
        raise ZeroDivisionError

    pages = [replace(site.pages[0], name=each.__name__, path=f"/{each.__name__}", read=each) for each in (away, broken)]
    with client_of(tmp_path, replace(site, pages=tuple(replace(each, title="x") for each in pages))) as client:
        page = client.get("/away")
        assert (page.status_code, "The journal: it is locked." in page.text) == (503, True)
        with pytest.raises(ZeroDivisionError):
            client.get("/broken")
    with TestClient(client.app, base_url=str(client.base_url), raise_server_exceptions=False) as client:
        bug = client.get("/broken")
        assert (bug.status_code, "This is a bug in Vesper." in bug.text) == (500, True)
        assert "ZeroDivisionError" not in bug.text
        assert "frame-ancestors" in bug.headers["content-security-policy"]


def test_prose_escapes_and_marks_code() -> None:
    assert prose("run `a < b` & go") == "run <code>a &lt; b</code> &amp; go"
    assert prose("one ` of <them>") == "one ` of &lt;them&gt;"
