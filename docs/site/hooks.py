"""Hooks of mkdocs: Markdown that is written for GitHub becomes pages of the site.

`nav` may hold patterns; pages are made of the nodes and files outside `docs/` that pages link to; an info string of a
fence may name a file (```yaml nodes/x.vsp).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {"SECURITY.md": "security.md"}
"""Pages of the site whose file stands outside `docs/`."""

_LINK = re.compile(r"(?<!!)(\[[^\]]*\])\(((?:\.\./)+[\w./-]+)((?:#[\w-]+)?)\)")
_FENCE = re.compile(r"^( *```)([\w-]+) +(\S+)$", re.MULTILINE)


def expand(nav: list[Any], pages: list[str]) -> list[Any]:
    """Return the navigation with each pattern replaced by the pages that no other entry names."""
    named = {each for each in entries(nav) if "*" not in each}

    def matching(pattern: str) -> list[str]:
        return [
            page
            for page in pages
            if fnmatch(page, pattern) and page.count("/") == pattern.count("/") and page not in named
        ]

    def expanded(items: list[Any]) -> Iterator[Any]:
        for item in items:
            if isinstance(item, dict):
                yield {
                    title: list(expanded(below)) if isinstance(below, list) else below for title, below in item.items()
                }
            elif "*" in item:
                yield from matching(item)
            else:
                yield item

    return list(expanded(nav))


def entries(nav: list[Any]) -> Iterator[str]:
    """Yield the pages and patterns of a navigation."""
    for item in nav:
        if isinstance(item, dict):
            for below in item.values():
                yield from entries(below if isinstance(below, list) else [below])
        else:
            yield item


def page_of(path: str) -> str | None:
    """Return the page of the site for a file outside `docs/`, by its path in the repository."""
    if path.startswith("nodes/") and (ROOT / path).is_file():
        return f"{path}.md"
    return PAGES.get(path)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add pages of the nodes and of the files outside `docs/`, and expand the navigation."""
    for path, page in PAGES.items():
        files.append(
            File.generated(config, page, content=(ROOT / path).read_text(encoding="utf-8").replace("](docs/", "]("))
        )
    for node in sorted((ROOT / "nodes").rglob("*.vsp")):
        path = node.relative_to(ROOT).as_posix()
        text = f'# {node.stem}\n\n```yaml title="{path}"\n{node.read_text(encoding="utf-8")}```\n'
        files.append(File.generated(config, f"{path}.md", content=text, inclusion=InclusionLevel.NOT_IN_NAV))
    assert config.nav is not None
    config.nav = expand(config.nav, sorted(file.src_uri for file in files.documentation_pages()))
    return files


def links_out(markdown: str, page: str) -> list[str]:
    """Return the paths in the repository of links of a page that leave `docs/`."""
    folder = posixpath.dirname(f"docs/{page}")
    found = [posixpath.normpath(posixpath.join(folder, each[2])) for each in _LINK.finditer(markdown)]
    return [path for path in found if not path.startswith("docs/")]


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turn links out of `docs/` and file names of fences into those of the site."""
    folder = posixpath.dirname(f"docs/{page.file.src_uri}")
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation", "toc"]

    def link(found: re.Match[str]) -> str:
        target = page_of(posixpath.normpath(posixpath.join(folder, found[2])))
        if target is None:
            return found[0]
        return f"{found[1]}({posixpath.relpath(f'docs/{target}', folder)}{found[3]})"

    def fence(found: re.Match[str]) -> str:
        return f'{found[1]}{found[2]} title="{found[3]}"' if "." in found[3] else f"{found[1]}{found[2]}"

    return _FENCE.sub(fence, _LINK.sub(link, markdown))
