"""The documentation site, without a browser: its navigation, links that leave `docs/`, figures and drawings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.site.hooks import PAGES, entries, expand, first_sentence, links_out, page_of
from tests.support.console import ROOT

DOCS = ROOT / "docs"
FOUND = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


class Loader(yaml.SafeLoader):
    """Reads mkdocs.yml and leaves objects of Python out."""


Loader.add_multi_constructor("", lambda *_: None)
SETTINGS: dict[str, Any] = yaml.load((DOCS / "site" / "mkdocs.yml").read_text(encoding="utf-8"), Loader)  # noqa: S506  # a SafeLoader


def test_the_navigation_names_every_page_once() -> None:
    known = sorted([*FOUND, *PAGES.values()])
    assert sorted(entries(expand(SETTINGS["nav"], known))) == known


def test_a_link_out_of_the_documentation_has_a_page() -> None:
    links = {(page, path) for page in FOUND for path in links_out((DOCS / page).read_text(encoding="utf-8"), page)}
    missing = [(page, path) for page, path in sorted(links) if page_of(path) is None]
    assert not missing, "the site has no page for these: write the path as code, or extend docs/site/hooks.py"


def test_nothing_is_loaded_from_another_host() -> None:
    assert SETTINGS["theme"]["font"] is False
    for path in filter(Path.is_file, (DOCS / "site").iterdir()):
        text = path.read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert "//cdn" not in text
        assert not re.search(r"https?://", text), path


def test_the_figures_of_the_landing_page_are_those_of_their_sources() -> None:
    page = (DOCS / "index.md").read_text(encoding="utf-8")
    w1 = (DOCS / "benchmarks" / "README.md").read_text(encoding="utf-8").split("## W1\n")[1].split("\n## ")[0]
    for row in ("**Vesper, direct_only**", "plain Python with contracts"):
        found = re.search(rf"^\| {re.escape(row)} \| (\d+ ns) ", w1, re.MULTILINE)
        assert found is not None
        assert found[1] in page
    differential = json.loads((DOCS / "proofs" / "differential.json").read_text(encoding="utf-8"))
    assert differential["executions"] >= 1_000_000
    assert f"{differential['nodes']} nodes and on {differential['programs']:,} random programs" in page
    assert f"{differential['disagreements']} disagreements" in page
    kills = json.loads((DOCS / "proofs" / "kills.json").read_text(encoding="utf-8"))
    assert f"{kills['kills']:,} processes killed" in page
    assert f"{kills['lost_or_doubled']} payments lost or made twice; {kills['in_doubt']} reported as in doubt" in page


def test_the_drawing_of_the_layers_has_every_package() -> None:
    (block,) = re.findall(
        r"^```layers\n(.*?)^```$", (DOCS / "architecture.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    packages = re.findall(r"(?<!\()\b[a-z_]+\b(?!\))", block)
    picture = (DOCS / "pictures" / "layers.svg").read_text(encoding="utf-8")
    drawn = re.findall(r'<text class="code"[^>]*>(\w+)<', picture)
    assert sorted(drawn) == sorted(packages)


@pytest.mark.parametrize("page", ["architecture.md", "how-to/roll-out-a-node.md"])
def test_a_drawing_has_words_for_those_who_do_not_see_it(page: str) -> None:
    pictures = re.findall(r"!\[([^\]]*)\]\(([^)]+\.svg)\)", (DOCS / page).read_text(encoding="utf-8"))
    assert pictures
    for words, target in pictures:
        text = ((DOCS / page).parent / target).read_text(encoding="utf-8")
        assert len(words.split()) > 3
        assert "<title>" in text
        assert "prefers-color-scheme: dark" in text


def test_a_pattern_stands_for_the_pages_that_are_not_named() -> None:
    nav = [{"A": ["a/x.md", "a/*.md"]}, {"B": ["*.md"]}]
    assert expand(nav, ["a/b/c.md", "a/x.md", "a/y.md", "z.md"]) == [{"A": ["a/x.md", "a/y.md"]}, {"B": ["z.md"]}]


def test_paths_are_those_of_the_repository() -> None:
    text = "[a](../../SECURITY.md#x) [b](../README.md) [c](../../nodes/shop/shipping_rate_v1.vsp)"
    assert links_out(text, "how-to/page.md") == ["SECURITY.md", "nodes/shop/shipping_rate_v1.vsp"]
    assert Path(ROOT / "SECURITY.md").is_file()


def test_a_page_has_its_first_sentence_in_the_contents_for_models() -> None:
    page = "# Title\n\n<!-- mark -->\n\n```yaml\nno: text\n```\n\nSee [this](a.md) first. And that.\n"
    assert first_sentence(page) == "See this first."
    assert first_sentence("# Title\n") == ""
