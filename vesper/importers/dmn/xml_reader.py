"""Reads XML of bounded size and depth into elements with line numbers; refuses DOCTYPE, entities and instructions."""

from __future__ import annotations

import xml.parsers.expat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 128
MAX_ELEMENTS = 500_000
XSI = "http://www.w3.org/2001/XMLSchema-instance"


class XmlProblem(Exception):
    """The file is not XML that the importer reads."""


@dataclass(slots=True)
class Element:
    """An element: local name, namespace, attributes by local name (those of XSI as `xsi:name`), text and children."""

    tag: str
    namespace: str
    attributes: dict[str, str]
    line: int
    text: str = ""
    children: list[Element] = field(default_factory=list)
    prefixes: dict[str, str] = field(default_factory=dict)
    """Namespace prefixes in scope; only on the root and elements that declare some."""

    def all(self, tag: str) -> list[Element]:
        """Return the children with this tag."""
        return [child for child in self.children if child.tag == tag]

    def first(self, *tags: str) -> Element | None:
        """Return the first child with one of these tags."""
        return next((child for child in self.children if child.tag in tags), None)

    def get(self, name: str, default: str = "") -> str:
        """Return an attribute."""
        return self.attributes.get(name, default)

    def walk(self) -> Iterator[Element]:
        """Yield this element and all below it."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(reversed(element.children))


def read_xml(path: Path) -> Element:
    """Read a file. Raises `XmlProblem` with the reason and line."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise XmlProblem(f"cannot read {path.as_posix()}: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise XmlProblem(f"{path.as_posix()} is larger than {MAX_BYTES // 1024 // 1024} MiB")
    try:
        return parse_xml(data)
    except XmlProblem as problem:
        raise XmlProblem(f"{path.as_posix()}: {problem}") from None


def parse_xml(data: bytes) -> Element:
    """Parse bytes of XML."""
    builder = _Builder()
    try:
        builder.parser.Parse(data, True)
    except xml.parsers.expat.ExpatError as error:
        reason = xml.parsers.expat.ErrorString(error.code)
        raise XmlProblem(f"line {error.lineno}: not well-formed XML: {reason}") from None
    assert builder.root is not None, "expat reports a document without a root"
    return builder.root


class _Builder:
    def __init__(self) -> None:
        self.root: Element | None = None
        self._open: list[Element] = []
        self._count = 0
        self._prefixes: dict[str, str] = {}
        self.parser = parser = xml.parsers.expat.ParserCreate(namespace_separator="\n")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartNamespaceDeclHandler = self._declare
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        parser.EntityDeclHandler = self._refuse_doctype
        parser.ExternalEntityRefHandler = self._refuse_doctype

    def _refuse_doctype(self, *_: object) -> int:
        raise XmlProblem(f"line {self.parser.CurrentLineNumber}: a DOCTYPE is not read; remove it")

    def _declare(self, prefix: str | None, uri: str) -> None:
        self._prefixes = {**self._prefixes, prefix or "": uri or ""}

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        line = self.parser.CurrentLineNumber
        if len(self._open) >= MAX_DEPTH or self._count > MAX_ELEMENTS:
            raise XmlProblem(f"line {line}: more than {MAX_DEPTH} levels or {MAX_ELEMENTS} elements")
        namespace, _, tag = name.rpartition("\n")
        named = {}
        for key, value in attributes.items():
            space, _, local = key.rpartition("\n")
            if not space:
                named[local] = value
            elif space == XSI:
                named[f"xsi:{local}"] = value
        element = Element(tag, namespace, named, line, prefixes=self._prefixes)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def _end(self, _: str) -> None:
        self._open.pop()

    def _characters(self, text: str) -> None:
        self._open[-1].text += text
