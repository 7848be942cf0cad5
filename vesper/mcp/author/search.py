"""Search of the documentation by words: the guide for models, the reference, diagnostics, and the pages if present."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

import vesper
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.explanations import EXPLANATIONS
from vesper.lsp.features.reference import WORDS, describe_operation, error_docs, functions, shapes, type_docs

MAX_RESULTS: Final = 8
MAX_CHARACTERS: Final = 1_600
"""Characters of a section that a result shows."""
_WORD: Final = re.compile(r"[a-z0-9_]+")
_HEADING: Final = re.compile(r"^#{1,3} +(.+)$", re.MULTILINE)
_SATURATION: Final = 1.2
_LENGTH_WEIGHT: Final = 0.75
_TITLE_WEIGHT: Final = 3
_LEFT_OUT: Final = ("adr", "benchmarks", "proofs", "CHANGELOG.md", "pictures", "site")
"""Pages about Vesper itself and not about nodes."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the documentation under one heading."""

    where: str
    title: str
    text: str


def guide() -> str:
    """Return the page that teaches the language."""
    return files(__package__).joinpath("guide.md").read_text(encoding="utf-8").split("\n", 1)[1].lstrip()


def docs_folder() -> Path | None:
    """Return the folder of pages beside the package; None in a wheel, which has the reference only."""
    found = Path(vesper.__file__).parents[1] / "docs"
    return found if (found / "guides" / "for-models.md").is_file() else None


def search(query: str) -> list[Section]:
    """Return the sections nearest to the words of a query, the best first."""
    words = _words(query)
    index = _index()
    scores: Counter[int] = Counter()
    for word in dict.fromkeys(words):
        holders = index.postings.get(word, {})
        rarity = math.log(1 + (len(index.sections) - len(holders) + 0.5) / (len(holders) + 0.5))
        for place, count in holders.items():
            length = 1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * index.lengths[place] / index.mean_length
            scores[place] += rarity * count * (_SATURATION + 1) / (count + _SATURATION * length)  # type: ignore[assignment]
    best = sorted(scores, key=lambda place: (-scores[place], place))
    return [index.sections[place] for place in best[:MAX_RESULTS]]


@dataclass(frozen=True, slots=True)
class _Index:
    sections: list[Section]
    postings: dict[str, dict[int, int]]
    lengths: list[int]
    mean_length: float


@cache
def _index() -> _Index:
    sections = list(_sections())
    postings: dict[str, dict[int, int]] = {}
    lengths = []
    for place, each in enumerate(sections):
        counted = Counter([*_words(each.title) * _TITLE_WEIGHT, *_words(each.text)])
        lengths.append(counted.total())
        for word, count in counted.items():
            postings.setdefault(word, {})[place] = count
    return _Index(sections, postings, lengths, sum(lengths) / len(lengths))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _sections() -> Iterator[Section]:
    yield from _split("guide", guide())
    for code in Code:
        about = EXPLANATIONS[code.number]
        fixed = "" if about.good is None else f"\n\nRight:\n\n{about.good}"
        yield Section(f"explain {code.number}", f"{code.number} {code.title}", f"{code.outline}. {about.text}{fixed}")
    for name, specs in functions().items():
        yield Section("functions", name, "\n\n".join(map(describe_operation, specs)))
    for shape in shapes().values():
        fields = (
            f"- `{each.name}` ({each.kind}{', required' if each.is_required else ''}): {each.doc}"
            for each in shape.fields.values()
        )
        yield Section("fields", f"{shape.where} {shape.step or ''}".strip(), "\n".join(fields))
    for where, entries in (("types", type_docs()), ("errors", error_docs()), ("words", WORDS)):
        for name, text in entries.items():
            yield Section(where, name, text)
    folder = docs_folder()
    if folder is not None:
        for page in sorted(folder.rglob("*.md")):
            path = page.relative_to(folder)
            if path.parts[0] not in (*_LEFT_OUT, "reference") and path.name != "for-models.md":
                yield from _split(f"docs/{path.as_posix()}", page.read_text(encoding="utf-8"))


def _split(where: str, text: str) -> Iterator[Section]:
    """Yield a page in parts, each from a heading to the next."""
    heads = list(_HEADING.finditer(text))
    ends = [*(each.start() for each in heads[1:]), len(text)]
    for head, end in zip(heads, ends, strict=True):
        body = text[head.end() : end].strip()
        if body:
            yield Section(where, head[1], body)
