"""Check of the field `http`: path, source of each input, statuses, headers of the response."""

from __future__ import annotations

import re

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.http_binding import HttpBinding, HttpInput
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.language.syntax.http_field import Http
from vesper.values.types import BOOLEAN, FLOAT, INTEGER, JSON, ArrayOf, Enum, OptionalOf, Primitive, SetOf, Type

RESERVED_PATHS = ("/nodes", "/livez", "/readyz", "/status", "/metrics", "/openapi.json", "/docs")
"""Paths of the server itself, with everything below them."""
MAX_PATH = 512
_WITHOUT_BODY = ("GET", "DELETE")
_LITERAL = re.compile(r"[A-Za-z0-9._~-]+", re.ASCII)
_HOLE = re.compile(r"\{([^{}]*)\}")
_STATUS = re.compile(r"[1-9][0-9]{2}", re.ASCII)
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", re.ASCII)
_PRINTABLE = re.compile(r"[!-~]([ -~]*[!-~])?", re.ASCII)
_SCOPE = re.compile(r"[!#-\[\]-~]{1,128}", re.ASCII)
_SERVERS_OWN = re.compile(
    r"accept|accept-encoding|authorization|connection|cookie|date|etag|expect|host|if-none-match|keep-alive|set-cookie"
    r"|te|traceparent|tracestate|trailer|transfer-encoding|upgrade|vary|vesper-timeout|www-authenticate|x-api-key"
    r"|content-.*|proxy-.*|access-control-.*",
    re.IGNORECASE,
)
"""Headers that the server reads or writes."""


def check_http(document: ast.Document, node: ir.Node, bag: DiagnosticBag) -> HttpBinding | None:
    """Return the checked field. None without one, or after reporting errors."""
    http = document.http
    if http is None:
        return None
    if node.type != "http_handler":
        problem = "answers no requests, and has no `http`"
        help_ = "remove it, or write `type: http_handler`"
        bag.error(Code.NODE_TYPE_RULE, http.method.span, type=node.type, problem=problem, help=help_)
        return None
    return _HttpChecker(http, node, bag).binding()


class _HttpChecker:
    def __init__(self, http: Http, node: ir.Node, bag: DiagnosticBag) -> None:
        self._http = http
        self._node = node
        self._bag = bag
        hidden = node.flagged
        self._inputs = {each.name: each for each in node.inputs if each.name not in hidden}
        self._found: dict[str, HttpInput] = {}

    def binding(self) -> HttpBinding:
        http, method = self._http, self._http.method.text
        self._path()
        for name, word in http.query:
            self._parameter(name, "query", word)
        seen: set[str] = set()
        for name, word in http.headers:
            problem = _header_problem(word.text, seen)
            if problem is None:
                self._parameter(name, "header", word)
            else:
                self._refuse(name.text, f"`{word.text}`", problem, word.span)
        body = self._body()
        rest = "query" if method in _WITHOUT_BODY else "body"
        for each in self._inputs:
            if each not in self._found:
                self._bind(each, rest, None, http.method.span)
        self._check_unique()
        inputs = tuple(self._found[name] for name in self._inputs if name in self._found)
        if body is None:
            body = "object" if any(each.source == "body" for each in inputs) else "none"
        return HttpBinding(
            method,
            http.path.text,
            inputs,
            body,
            200
            if http.status is None
            else self._status(http.status, "status", range(200, 204), "200, 201, 202 or 203"),
            self._errors(),
            self._response_headers(),
            self._scopes(),
        )

    # -- sources of inputs ------------------------------------------------------------------------

    def _path(self) -> None:
        word = self._http.path
        path, first = word.text, word.text.partition("/")[2].partition("/")[0]
        problem = None
        if not path.startswith("/"):
            problem = "it begins with `/`"
        elif len(path) > MAX_PATH:
            problem = f"it has more than {MAX_PATH} characters"
        elif f"/{first}" in RESERVED_PATHS:
            problem = f"`/{first}` is a path of the server itself"
        seen: set[str] = set()
        for segment in path[1:].split("/") if path != "/" and problem is None else ():
            hole = _HOLE.fullmatch(segment)
            if segment in ("", ".", ".."):
                problem = f"it has the segment `{segment}`" if segment else "it has an empty segment"
            elif hole is None and not _LITERAL.fullmatch(segment):
                problem = f"the segment `{segment}` is neither a name in braces nor letters, digits and `-._~` alone"
            elif hole is not None and hole[1] in seen:
                problem = f"`{{{hole[1]}}}` occurs twice"
            elif hole is not None:
                seen.add(hole[1])
                start = word.span.start + self._bag.source.slice(word.span).find(segment)
                self._parameter(ast.Word(hole[1], Span(start, start + len(segment))), "path", None)
            if problem is not None:
                break
        if problem is not None:
            self._bag.error(Code.BAD_PATH, word.span, path=path, problem=problem)

    def _parameter(self, name: ast.Word, source: str, word: ast.Word | None) -> None:
        if name.text not in self._inputs:
            help_ = did_you_mean(name.text, self._inputs)
            self._bag.error(Code.UNKNOWN_NAME, name.span, kinds="no input", name=name.text, help=help_)
        elif name.text in self._found:
            self._refuse(name.text, source, f"it comes from {_source_name(self._found[name.text].source)}", name.span)
        else:
            self._bind(name.text, source, word, name.span)

    def _body(self) -> str | None:
        word = self._http.body
        if word is None:
            return None
        if self._http.method.text in _WITHOUT_BODY:
            self._refuse(word.text, "body", f"a {self._http.method.text} has none", word.span)
            return None
        self._parameter(word, "body", None)
        others = [name for name in self._inputs if name not in self._found]
        if others:
            problem = f"it is the whole body, and `{others[0]}` has no other source"
            self._refuse(word.text, "body", problem, word.span)
        return word.text

    def _bind(self, name: str, source: str, word: ast.Word | None, span: Span) -> None:
        declared = self._inputs[name]
        field = declared.outside or name
        key = name if source == "path" else field if word is None else word.text
        form = "json" if source == "body" else _parameter_form(declared.type)
        problem = None
        if form is None or (source != "query" and form.startswith("array_")):
            kept = "only a query repeats a parameter" if form else "that type has no form as text"
            problem = f"it has the type {declared.type}, and {kept}"
        elif source == "path" and isinstance(declared.type, OptionalOf):
            problem = "a part of the path cannot be absent"
        elif source == "query" and (not key or len(key) > 128):
            problem = "the name of a parameter has 1 to 128 characters"
        if problem is not None:
            self._refuse(name, source, problem, span)
        elif source in ("path", "query") and name in self._node.grants.sensitive:
            help_ = "let it come from the body or a header: paths and queries end up in logs"
            self._bag.warning(Code.SENSITIVE_PARAMETER, span, name=name, source=_source_name(source), help=help_)
        self._found[name] = HttpInput(name, field, source, key, form or "text")

    def _refuse(self, name: str, source: str, problem: str, span: Span) -> None:
        self._bag.error(Code.BAD_PARAMETER, span, name=name, source=_source_name(source), problem=problem)

    def _check_unique(self) -> None:
        """Report a parameter of the query that is the source of two inputs."""
        first: dict[str, str] = {}
        for each in self._found.values():
            other = first.setdefault(each.key, each.name) if each.source == "query" else each.name
            if other != each.name:
                words = {name.text: name.span for name, _ in self._http.query}
                span = words.get(each.name, words.get(other, self._http.method.span))
                self._refuse(each.name, "query", f"the parameter `{each.key}` is that of `{other}`", span)

    # -- the response -----------------------------------------------------------------------------

    def _status(self, word: ast.Word, key: str, allowed: range, expected: str) -> int:
        if _STATUS.fullmatch(word.text) and int(word.text) in allowed:
            return int(word.text)
        self._bag.error(Code.WRONG_KIND, word.span, key=key, expected=expected, found=f"`{word.text}`")
        return allowed[0]

    def _errors(self) -> tuple[tuple[str, int], ...]:
        codes = self._node.errors[0].type if self._node.errors else None
        members = codes.members if isinstance(codes, Enum) else ()
        found = []
        for code, status in self._http.errors:
            if code.text not in members:
                help_ = did_you_mean(code.text, members)
                self._bag.error(Code.UNKNOWN_NAME, code.span, kinds="no error code", name=code.text, help=help_)
            found.append((code.text, self._status(status, code.text, range(400, 600), "a status from 400 to 599")))
        return tuple(found)

    def _response_headers(self) -> tuple[tuple[str, str], ...]:
        outputs = {each.name: each for each in self._node.outputs}
        named = {each.name: each.outside or each.name for each in self._node.outputs}
        found, seen = [], set[str]()
        for name, value in self._http.response_headers:
            problem = _header_problem(name.text, seen)
            if problem is not None:
                expected = "headers of a handler's own, each once"
                self._bag.error(
                    Code.WRONG_KIND, name.span, key="response_headers", expected=expected, found=f"`{name.text}`"
                )
                continue
            if not _PRINTABLE.fullmatch(value.text):
                expected = "printable ASCII without spaces around it"
                self._bag.error(Code.WRONG_KIND, value.span, key=name.text, expected=expected, found="other text")
            for hole in _HOLE.finditer(value.text):
                if hole[1] not in outputs:
                    help_ = did_you_mean(hole[1], outputs)
                    self._bag.error(Code.UNKNOWN_NAME, value.span, kinds="no output", name=hole[1], help=help_)
                elif _parameter_form(outputs[hole[1]].type) not in ("text", "bare") or isinstance(
                    outputs[hole[1]].type, OptionalOf
                ):
                    expected = "a scalar output that is never null"
                    self._bag.error(Code.TYPE_MISMATCH, value.span, expected=expected, found=outputs[hole[1]].type)
            parts = _HOLE.split(value.text)
            parts[1::2] = [f"{{{named.get(part, '')}}}" for part in parts[1::2]]
            found.append((name.text, "".join(parts)))
        return tuple(found)

    def _scopes(self) -> tuple[str, ...]:
        for word in self._http.scopes:
            if not _SCOPE.fullmatch(word.text):
                expected = "printable ASCII without spaces and quotes, at most 128 characters"
                self._bag.error(Code.WRONG_KIND, word.span, key="scopes", expected=expected, found=f"`{word.text}`")
        return tuple(dict.fromkeys(word.text for word in self._http.scopes))


def _source_name(source: str) -> str:
    return {"header": "a header", **{each: f"the {each}" for each in ("path", "query", "body")}}.get(source, source)


def _header_problem(name: str, seen: set[str]) -> str | None:
    """Return why a header cannot have this name, and add it to those seen."""
    lower = name.lower()
    problem = None
    if not _HEADER.fullmatch(name):
        problem = "it is no name of a header"
    elif _SERVERS_OWN.fullmatch(lower):
        problem = "the server itself reads or writes this header"
    elif lower in seen:
        problem = "another input comes from it"
    seen.add(lower)
    return problem


def _parameter_form(type_: Type) -> str | None:
    """Return how a parameter's text is read as JSON. None if no text has the type."""
    match type_:
        case OptionalOf(inner):
            return _parameter_form(inner)
        case ArrayOf(element) | SetOf(element) if not isinstance(element, OptionalOf):
            inner_form = _parameter_form(element)
            return None if inner_form is None or inner_form.startswith("array_") else f"array_{inner_form}"
        case Primitive():
            return None if type_ == JSON else "bare" if type_ in (BOOLEAN, INTEGER, FLOAT) else "text"
        case Enum():
            return "text"
        case _:
            return None
