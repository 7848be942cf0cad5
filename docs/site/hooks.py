"""Hooks of mkdocs: Markdown that is written for GitHub becomes pages of the site.

The site has `llms.txt`, its contents for language models, and `llms-full.txt`, the pages that they need as one text.
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
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {"SECURITY.md": "security.md"}
"""Pages of the site whose file stands outside `docs/`."""

FOR_MODELS = "guides/for-models.md"
NOT_FOR_MODELS = ("Decisions", "Contribute")
"""Parts of the site that `llms-full.txt` leaves out: they are about Vesper's own code."""

_navigation: list[Navigation] = []
"""That of the build which is under way."""
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


# -- for language models --------------------------------------------------------------------------


def on_nav(nav: Navigation, **_: Any) -> Navigation:
    """Keep the navigation for the end of the build, when its pages have titles."""
    _navigation[:] = [nav]
    return nav


def on_post_build(config: MkDocsConfig) -> None:
    """Write `llms.txt` and `llms-full.txt` beside the pages."""
    parts = [(each.title, list(_pages(each))) for each in _navigation[0].items if isinstance(each, Section)]
    site = Path(config.site_dir)
    (site / "llms.txt").write_text(contents_text(config, parts), encoding="utf-8")
    read = [each for title, pages in parts if title not in NOT_FOR_MODELS for each in pages]
    read = sorted(read, key=lambda page: page.file.src_uri != FOR_MODELS)
    (site / "llms-full.txt").write_text("\n\n".join(map(_whole, read)) + "\n", encoding="utf-8")


def contents_text(config: MkDocsConfig, parts: list[tuple[str, list[Page]]]) -> str:
    """Return the contents of the site: a title, a summary, and each page with its first sentence."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}.", ""]
    lines += [f"Read [the language, for models]({FOR_MODELS.replace('.md', '.html')}) first to write nodes."]
    for title, pages in parts:
        lines += ["", f"## {'Optional' if title == NOT_FOR_MODELS[-1] else title}", ""]
        lines += [f"- [{page.title}]({page.url}): {first_sentence(page.markdown or '')}" for page in pages]
    return "\n".join(lines) + "\n"


def first_sentence(markdown: str) -> str:
    """Return the first sentence below the title, without links."""
    body = re.sub(r"<!--.*?-->", "", markdown, flags=re.DOTALL).partition("\n")[2]
    paragraph = next((each for each in body.split("\n\n") if re.match(r"\s*(?!```)[A-Za-z`]", each)), "")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
    return re.split(r"(?<=[.:]) ", plain, maxsplit=1)[0]


def _pages(section: Section) -> Iterator[Page]:
    for each in section.children:
        if isinstance(each, Section):
            yield from _pages(each)
        elif isinstance(each, Page):
            yield each


def _whole(page: Page) -> str:
    return f"<!-- {page.file.src_uri} -->\n\n{(page.markdown or '').strip()}"
