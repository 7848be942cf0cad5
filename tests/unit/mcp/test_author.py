"""The tools of an author, called by the SDK's own client: files of one folder, commands, no effect without grant."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import TextContent

from tests.unit.mcp.test_node_server import NOTE, PRICE
from vesper.mcp.author import commands
from vesper.mcp.author.commands import MAX_OUTPUT, run_command
from vesper.mcp.author.project import AuthorError, Project
from vesper.mcp.author.search import search
from vesper.mcp.author.server import author_server

GRANTS = """
[files.notes]
path = "notes"

[[grants]]
nodes = ["note_v1"]
allow = ["filesystem.write.notes"]
"""


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give commands the time that a busy machine needs."""
    monkeypatch.setattr(commands, "SECONDS", 900.0)


class Author:
    """A connected client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def __call__(self, tool: str, /, **arguments: Any) -> tuple[bool, str]:
        """Return whether the tool worked, and its text."""
        result = await self._client.call_tool(tool, arguments)
        (content,) = result.content
        assert isinstance(content, TextContent)
        return not result.is_error, content.text


def with_author(
    root: Path,
    work: Callable[[Author], Coroutine[Any, Any, None]],
    config: Path | None = None,
    has_grants: bool = False,
) -> None:
    async def connected() -> None:
        with Project(root, config, has_grants) as project:
            async with Client(author_server(project)) as client:
                await work(Author(client))

    asyncio.run(connected())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "vesper.toml").write_text(GRANTS)
    (tmp_path / "secret.vsp").write_text("node_id: secret_v1\n")
    return tmp_path / "nodes"


def test_an_author_writes_mends_tests_and_runs_a_node(root: Path) -> None:
    async def work(author: Author) -> None:
        ok, text = await author("write_node", path="shop/price_v1.vsp", text=PRICE.replace("SUM(", "SUMM("))
        assert ok
        assert "1 with errors" in text
        assert "SUMM" in text
        ok, text = await author("write_node", path="shop/price_v1.vsp", text=PRICE)
        assert (ok, "0 with errors" in text) == (True, True)
        assert (await author("read_node", node="price_v1")) == (True, PRICE)
        assert "price_v1" in (await author("list_nodes"))[1]
        assert "1 of 1 case passed" in (await author("test", node="price_v1"))[1]
        inputs = {"lines": [{"quantity": 3, "price": "0.10"}]}
        ok, text = await author("run", node="price_v1", inputs=inputs)
        assert (ok, '"total": "0.3000"' in text) == (True, True)
        await author(
            "write_node", path="price_v2.vsp", text=PRICE.replace("price_v1", "price_v2").replace("1 - ", "2 - ")
        )
        ok, text = await author("compare", before="price_v1", after="price_v2")
        assert (ok, "differ" in text) == (True, True)

    with_author(root, work)
    assert (root / "shop" / "price_v1.vsp").read_text() == PRICE


def test_fixes_and_explanations(root: Path) -> None:
    (root / "price_v1.vsp").write_text(PRICE.replace("length(lines) == 0", "length(lines) = 0"))

    async def work(author: Author) -> None:
        ok, text = await author("fix", node="price_v1")
        assert (ok, "1 fix applied" in text) == (True, True)
        assert (await author("explain", code="unknown-name"))[1].startswith("VSP")
        assert not (await author("explain", code="--help"))[0]
        assert "Decimals" in (await author("guide"))[1]

    with_author(root, work)
    assert (root / "price_v1.vsp").read_text() == PRICE


@pytest.mark.parametrize(
    "path",
    [
        "../secret.vsp",
        "shop/../../secret.vsp",
        "/etc/passwd",
        "/tmp/escape.vsp",
        "link.vsp",
        "linked/secret.vsp",
        "notes.txt",
        "vesper.toml",
        "--help.txt",
        "nul\0.vsp",
    ],
)
def test_no_path_leads_out_of_the_folder(root: Path, path: str) -> None:
    (root / "link.vsp").symlink_to(root.parent / "secret.vsp")
    (root / "linked").symlink_to(root.parent)
    with Project(root) as project:
        for refused in (lambda: project.read(path), lambda: project.write(path, "node_id: x_v1\n")):
            with pytest.raises(AuthorError):
                refused()
        assert "linked/secret.vsp" not in project.files()
    assert (root.parent / "secret.vsp").read_text() == "node_id: secret_v1\n"


def test_a_name_that_a_link_leads_out_with_is_refused(root: Path) -> None:
    (root / "secret_v1.vsp").symlink_to(root.parent / "secret.vsp")
    with Project(root) as project, pytest.raises(AuthorError, match="leads out"):
        project.read("secret_v1")


def test_a_run_has_no_effect_without_grants(root: Path) -> None:
    async def work(author: Author) -> None:
        await author("write_node", path="note_v1.vsp", text=NOTE)
        ok, text = await author("run", node="note_v1", inputs={"event_id": "e", "note": "hello"})
        assert (ok, '"denied"' in text) == (True, True)

    with_author(root, work, root.parent / "vesper.toml")
    assert not (root.parent / "notes" / "note.txt").exists()


def test_a_run_may_do_what_the_settings_grant(root: Path) -> None:
    async def work(author: Author) -> None:
        await author("write_node", path="note_v1.vsp", text=NOTE)
        assert '"returned"' in (await author("run", node="note_v1", inputs={"event_id": "e", "note": "hello"}))[1]

    with_author(root, work, root.parent / "vesper.toml", has_grants=True)
    assert (root.parent / "notes" / "note.txt").read_text() == "hello"


def test_grants_need_settings(root: Path) -> None:
    with pytest.raises(AuthorError, match="omit --grants"):
        Project(root, None, has_grants=True)


def test_arguments_that_do_not_fit(root: Path) -> None:
    async def work(author: Author) -> None:
        assert not (await author("read_node"))[0]
        assert not (await author("read_node", node=7))[0]
        assert not (await author("run", node="price_v1", inputs="{}"))[0]
        assert not (await author("check", nodes="price_v1"))[0]
        assert not (await author("check", node="absent_v1"))[0]
        assert not (await author("write_node", path="a_v1.vsp", text="x" * (1 << 19)))[0]

    with_author(root, work)


@pytest.mark.parametrize(
    "query, expected",
    [
        ("round half_up", "round"),
        ("VSP1102", "VSP1102"),
        ("rows of a decision table otherwise", "decision_table"),
        ("group_by array", "group_by"),
        ("retry backoff attempts", "retry"),
    ],
)
def test_search_finds_what_is_asked(query: str, expected: str) -> None:
    found = search(query)
    assert any(expected in each.title or expected in each.text for each in found[:3])


def test_search_of_unknown_words_finds_nothing() -> None:
    assert search("qwertzuiop") == []


def test_a_command_that_takes_too_long_is_ended(root: Path) -> None:
    with Project(root) as project:
        ran = asyncio.run(run_command(project, "check", seconds=0.01))
    assert (ran.exit_code, ran.is_usable) == (2, False)
    assert ran.text == "`vesper check` took longer than 0.01 s and was ended"


def test_output_is_bounded(root: Path) -> None:
    for number in range(400):
        (root / f"wrong_{number}_v1.vsp").write_text(f"node_id: wrong_{number}_v1\ntype: nothing\n")
    with Project(root) as project:
        ran = asyncio.run(run_command(project, "check", "--nodes", "."))
    assert ran.exit_code == 1
    assert len(ran.text) < MAX_OUTPUT + 100
    assert re.search(r"… and [\d,]+ bytes more$", ran.text)
