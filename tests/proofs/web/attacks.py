"""Attacks on a real dashboard over a hostile project: forged requests, scripts, framing, paths, roles, limits.

    python -m tests.proofs.web.attacks [--payloads N]

Walks all registered pages and actions, so that new ones are attacked without a change here.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Final, Self
from urllib.parse import quote, urlencode

from tests.proofs.web.hostile_project import KEYS, MARK, make_project, payloads
from vesper.dashboard.access.caller import Role
from vesper.dashboard.app import whole_site
from vesper.dashboard.page import Page

PAYLOADS: Final = 200
MAX_CRAWLED: Final = 1_500
_WAIT_SECONDS: Final = 60
_URL_ATTRIBUTES: Final = ("href", "src", "action", "formaction", "xlink:href", "data", "poster", "srcset")
_FORBIDDEN: Final = ("iframe", "object", "embed", "base", "style", "applet", "frame", "frameset")
_PARAMETER: Final = re.compile(r"\{(\w+)(?::\w+)?\}")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """Names in lower case; the last of several equal ones."""
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8")


class Dashboard:
    """`vesper dashboard` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        keys = {f"VESPER_SECRET_{name.upper()}": key for name, key in KEYS.items()}
        command = [sys.executable, "-m", "vesper", "dashboard", "--port", "0", "--end-with-input"]
        log = folder / "dashboard.log"
        with log.open("wb") as written:  # not a pipe, which would fill up
            self._process = subprocess.Popen(
                [*command, "--config", str(folder / "vesper.toml")],
                env={**os.environ, **keys},
                stdin=subprocess.PIPE,
                stderr=written,
            )
        until = time.monotonic() + _WAIT_SECONDS
        while (found := re.search(r"http://127\.0\.0\.1:([0-9]+)", log.read_text())) is None:
            if self._process.poll() is not None or time.monotonic() > until:
                self.close()
                raise RuntimeError(log.read_text())
            time.sleep(0.02)
        self.port = int(found[1])
        self.origin = found[0]

    def send(self, method: str, target: str, body: bytes | None = None, **headers: str) -> Answer:
        """Send one request; `_` of a name of a header stands for `-`."""
        given = {name.replace("_", "-"): each for name, each in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_WAIT_SECONDS)
        try:
            connection.request(method, target, body, given)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def raw(self, data: bytes, seconds: float) -> bytes:
        """Send bytes, and return all that comes back; raises `TimeoutError` where the connection stays open."""
        with socket.create_connection(("127.0.0.1", self.port), seconds) as connection:
            found = b""
            try:
                connection.sendall(data)
                while chunk := connection.recv(65_536):
                    found += chunk
            except ConnectionError:
                pass
            return found

    def log_in(self, name: str) -> tuple[str, str]:
        """Return the cookie and the token of a new session."""
        form = urlencode({"credential": KEYS[name]}).encode()
        answer = self.send("POST", "/login", form, origin=self.origin, content_type=_FORM)
        cookie = answer.headers["set-cookie"].partition(";")[0]
        token = re.search(r'"csrf":"([0-9a-f]+)"', self.send("GET", "/api/session", cookie=cookie).text)
        assert token is not None
        return cookie, token[1]

    def close(self) -> int:
        """End the server by its input; return its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            return self._process.wait(_WAIT_SECONDS)
        finally:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_FORM: Final = "application/x-www-form-urlencoded"


@dataclass
class Report:
    """What was tried, and what succeeded that must not."""

    tried: dict[str, int] = field(default_factory=dict)
    successes: list[str] = field(default_factory=list)
    pages: set[str] = field(default_factory=set)
    """Names of pages that were answered with 200."""
    shown: int = 0
    """Answers that contain the text of a payload."""

    def check(self, kind: str, holds: bool, what: str) -> None:
        self.tried[kind] = self.tried.get(kind, 0) + 1
        if not holds and len(self.successes) < 50:
            self.successes.append(f"{kind}: {what}")


class _Elements(HTMLParser):
    """Collects what a browser would make of a page, where a payload had a hand in it."""

    def __init__(self, is_drawing: bool) -> None:
        super().__init__(convert_charrefs=True)
        self._is_drawing = is_drawing
        self.problems: list[str] = []
        self.links: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        shown = self.get_starttag_text() or tag
        names = [name for name, _ in attrs]
        values = dict(attrs)
        is_forbidden = tag in _FORBIDDEN and not (tag == "style" and self._is_drawing)
        if MARK in tag or is_forbidden or any(MARK in name or name.startswith("on") for name in names):
            self.problems.append(shown)
        if "style" in names or "srcdoc" in names or (tag == "meta" and "http-equiv" in names):
            self.problems.append(shown)
        if tag in ("script", "link") and not (values.get("src") or values.get("href") or "").startswith("/static/"):
            self.problems.append(shown)
        for name in _URL_ATTRIBUTES:
            value = values.get(name)
            if value is not None and not _is_local(value):
                self.problems.append(shown)
        if tag == "a" and values.get("href"):
            self.links.append(str(values["href"]))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if (self._inside == "script" and data.strip()) or (self._inside == "style" and MARK in data):
            self.problems.append(f"{self._inside}: {data[:100]}")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_comment(self, data: str) -> None:
        if MARK in data:
            self.problems.append(f"comment: {data[:100]}")


def _is_local(address: str) -> bool:
    return address == "" or (address[0] in "/?#" and address[:2] not in ("//", "/\\"))


def read_page(text: str, is_drawing: bool = False) -> tuple[list[str], list[str]]:
    """Return elements and attributes that no template has, and the links of a page. A drawing may have a style."""
    parser = _Elements(is_drawing)
    parser.feed(text)
    parser.close()
    return parser.problems, parser.links


def run_attacks(folder: Path, count: int = PAYLOADS, max_crawled: int = MAX_CRAWLED, is_sample: bool = False) -> Report:
    """Attack a new dashboard in every way; `count` payloads. A sample leaves out slow requests and half of the rest."""
    report = Report()
    attacks = payloads(count)
    make_project(folder, attacks)
    with Dashboard(folder) as server:
        viewer, boss = server.log_in("viewer"), server.log_in("boss")
        _crawl(server, report, boss[0], max_crawled)
        _reflect(server, report, boss[0], attacks[: 1 if is_sample else None])
        _forge(server, report, viewer, boss, ("/api",) if is_sample else ("", "/api"))
        _fixate(server, report)
        _trick_paths(server, report, boss[0])
        _overload(server, report, has_slow=not is_sample)
        _watch(server, report, boss[0], folder)
    return report


def _watch(server: Dashboard, report: Report, cookie: str, folder: Path) -> None:
    """Watch a live page across the end of the server."""
    stream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_WAIT_SECONDS)
    stream.request("GET", "/events?topics=files", headers={"Cookie": cookie})
    answer = stream.getresponse()
    answer.readline()
    (folder / "nodes" / "new.vsp").write_text("")
    lines = [answer.readline() for _ in range(3)]
    report.check("live", lines[1:] == [b"event: change\n", b'data: ["files"]\n'], f"the stream has {lines}")
    report.check("end", server.close() == 0, "the server did not end by itself")
    report.check("end", answer.read().strip() == b"", "the stream did not end")
    stream.close()


def _crawl(server: Dashboard, report: Report, cookie: str, limit: int) -> None:
    """Follow all links from all pages without parameters; every answer is checked."""
    site = whole_site()
    waiting = [page.path for page in site.pages if "{" not in page.path]
    seen = set(waiting)
    kinds: dict[str, int] = {}
    for path in waiting:
        if len(seen) > limit and path not in seen:
            break
        answer = server.send("GET", path, cookie=cookie, accept="text/html")
        links = _check_answer(report, "stored script", path, answer)
        report.shown += MARK in answer.text
        report.check("dead link", answer.status != 404, path)
        if answer.status == 200:
            report.pages |= {page.name for page in site.pages if _matches(page, path)}
        for link in links:
            target = (path.partition("?")[0] + link if link.startswith("?") else link).partition("#")[0]
            # Every kind of page is visited with many parameters, but none without end.
            kind = re.sub(r"(?<=[/=])[^/?&=]*[0-9%][^/?&=]*", "*", target)
            if target and target not in seen and kinds.get(kind, 0) < max(5, limit // 20) and len(seen) < limit:
                kinds[kind] = kinds.get(kind, 0) + 1
                seen.add(target)
                waiting.append(target)


def _check_answer(report: Report, kind: str, what: str, answer: Answer) -> list[str]:
    """Check headers and elements of an answer; return its links."""
    report.check("fault", answer.status != 500, f"{what} is answered with 500")
    policy = answer.headers.get("content-security-policy", "")
    report.check("framing", "frame-ancestors 'none'" in policy and "script-src 'self'" in policy, f"{what}: {policy}")
    report.check("framing", answer.headers.get("x-frame-options") == "DENY", f"{what} may be framed")
    report.check("sniffing", answer.headers.get("x-content-type-options") == "nosniff", f"{what} may be sniffed")
    form = answer.headers.get("content-type", "")
    if not form.startswith(("text/html", "image/svg")):
        return []
    problems, links = read_page(answer.text, is_drawing=form.startswith("image/svg"))
    report.check(kind, not problems, f"{what[:120]}: {problems[:2]}")
    return links


def _matches(page: Page[object], path: str) -> bool:
    pattern = "".join(re.escape(part) if n % 2 == 0 else "[^/]+" for n, part in enumerate(_PARAMETER.split(page.path)))
    return re.fullmatch(pattern, path.partition("?")[0]) is not None


def _reflect(server: Dashboard, report: Report, cookie: str, attacks: Sequence[str]) -> None:
    """Send every payload as every parameter of paths and queries."""
    for page in whole_site().pages:
        names = ["q", "node", "page", *(each.name for each in page.parameters)]
        for n, attack in enumerate(attacks):
            text = quote(attack.replace("/", ""), safe="")
            path = _PARAMETER.sub(lambda _: text, page.path)  # noqa: B023  # used at once
            query = urlencode({names[n % len(names)]: attack, "": attack})
            for target in {path, f"{path}?{query}"}:
                answer = server.send("GET", target, cookie=cookie, accept="text/html")
                _check_answer(report, "reflected script", target, answer)
    for attack in attacks:
        for target in (f"/{quote(attack, safe='')}", f"/login?next={quote(attack, safe='')}"):
            _check_answer(report, "reflected script", target, server.send("GET", target, accept="text/html"))


def _forge(
    server: Dashboard, report: Report, viewer: tuple[str, str], boss: tuple[str, str], prefixes: Sequence[str]
) -> None:
    """Try every action as a viewer, and as another site with the cookies of an operator."""
    for action in whole_site().actions:
        for prefix in prefixes:
            path = prefix + _PARAMETER.sub("greeting_v1", action.path)
            what = f"{action.name} at {path}"

            def post(body: Mapping[str, str], **headers: str) -> int:
                data = urlencode({"reason": "an attack", **body}).encode()
                return server.send("POST", path, data, content_type=_FORM, **headers).status  # noqa: B023  # at once

            own, token = {"origin": server.origin}, {"csrf": boss[1]}
            if action.role is not Role.VIEWER:
                refused = post({"csrf": viewer[1]}, cookie=viewer[0], **own) == 403
                report.check("role", refused, f"a viewer did {what}")
            report.check("role", post({}, **own) == 401, f"a stranger did {what}")
            for headers in ({"origin": "https://evil.example"}, {"origin": "null"}, {"sec_fetch_site": "cross-site"}):
                report.check("forgery", post(token, cookie=boss[0], **headers) == 403, f"another site did {what}")
            for stolen in ({}, {"csrf": ""}, {"csrf": viewer[1]}, {"csrf": "0" * 128}):
                report.check("forgery", post(stolen, cookie=boss[0], **own) == 403, f"{what} without its token")
            got = server.send("GET", path, cookie=boss[0])
            report.check("forgery", got.status in (200, 404, 405), f"GET {what} is {got.status}")


def _fixate(server: Dashboard, report: Report) -> None:
    """Log in with an id that the attacker chose; use sessions after their logout."""
    name = server.log_in("boss")[0].partition("=")[0]
    form = urlencode({"credential": KEYS["boss"]}).encode()
    chosen = f"{name}=chosen"
    answer = server.send("POST", "/login", form, origin=server.origin, content_type=_FORM, cookie=chosen)
    cookie = answer.headers["set-cookie"]
    flags = {each.strip().lower() for each in cookie.split(";")[1:]}
    report.check("cookie", {"httponly", "samesite=strict", "path=/"} <= flags, f"the cookie has {flags}")
    report.check("fixation", "chosen" not in cookie, "the id of a session survives the login")
    report.check(
        "fixation", server.send("GET", "/api/session", cookie=chosen).status == 401, "a chosen id is a session"
    )
    cookie, token = server.log_in("boss")
    out = server.send(
        "POST", "/logout", f"csrf={token}".encode(), origin=server.origin, content_type=_FORM, cookie=cookie
    )
    report.check("fixation", out.status == 303, "the logout failed")
    report.check(
        "fixation", server.send("GET", "/api/session", cookie=cookie).status == 401, "a session outlives its end"
    )
    foreign = server.send("POST", "/login", form, origin="https://evil.example", content_type=_FORM)
    report.check("forgery", foreign.status == 403, "another site logs its visitors in")


def _trick_paths(server: Dashboard, report: Report, cookie: str) -> None:
    """Request files and pages by spellings that other checks may miss."""
    for up in ("../", "..%2f", "%2e%2e/", "%2e%2e%2f", "..%5c", "..\\", "....//", "..;/", "%252e%252e%252f", "..%00/"):
        for target in (f"/static/{up * 3}pyproject.toml", f"/static/{up}views.py", f"/nodes/{up}greeting_v1"):
            head = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nCookie: {cookie}\r\n"
            answer = server.raw(f"{head}Accept: text/html\r\nConnection: close\r\n\r\n".encode(), _WAIT_SECONDS)
            status = answer[9:12]
            report.check(
                "path", status in (b"400", b"404") and b"import annotations" not in answer, f"{target}: {status!r}"
            )
    for target in (
        "//evil.example/",
        "/%00",
        "/nodes/%00",
        "/%0d%0aset-cookie:a=b",
        "/\u2028".encode().decode("latin-1"),
    ):
        answered = server.send("GET", quote(target, safe="/%"), cookie=cookie).status
        report.check("path", answered in (400, 404), f"{target!r}: {answered}")
    for host in ("evil.example", "127.0.0.1.evil.example", f"evil.example:{server.port}", "localhost@evil.example"):
        report.check("host", server.send("GET", "/", host=host, cookie=cookie).status == 400, f"Host {host}")


def _overload(server: Dashboard, report: Report, has_slow: bool) -> None:
    """Send bodies and heads that are too large or never end, and too many logins."""
    host = f"Host: 127.0.0.1:{server.port}\r\n".encode()
    large = b"POST /login HTTP/1.1\r\n" + host + b"Origin: " + server.origin.encode() + b"\r\nConnection: close\r\n"
    body = b"x" * (5 << 20)
    answer = server.raw(large + b"Content-Length: %d\r\n\r\n" % len(body) + body, _WAIT_SECONDS)
    report.check("size", answer[9:12] in (b"413", b""), f"a body of 5 MiB: {answer[:40]!r}")
    answer = server.raw(b"GET / HTTP/1.1\r\n" + host + b"X: " + b"x" * (1 << 20) + b"\r\n\r\n", _WAIT_SECONDS)
    report.check("size", answer[9:12] in (b"400", b"431", b""), f"a head of 1 MiB: {answer[:40]!r}")
    form = urlencode({"credential": "wrong"}).encode()
    answers = [server.send("POST", "/login", form, origin=server.origin, content_type=_FORM) for _ in range(12)]
    report.check("size", answers[-1].status == 429, "logins are not limited")
    for data in (
        (b"GET / HTTP/1.1\r\n" + host + b"X-Slow: ", large + b"Content-Length: 100\r\n\r\nx") if has_slow else ()
    ):
        begun = time.monotonic()
        try:
            server.raw(data, _WAIT_SECONDS)
            report.check(
                "slow", time.monotonic() - begun < _WAIT_SECONDS / 2, "a slow request keeps its connection long"
            )
        except TimeoutError:
            report.check("slow", False, f"{data[:40]!r} keeps its connection")


def _missing(report: Report) -> Iterator[str]:
    """Yield pages that the crawl did not see."""
    yield from sorted({page.name for page in whole_site().pages} - report.pages)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--payloads", type=int, default=PAYLOADS)
    count = parser.parse_args().payloads
    with tempfile.TemporaryDirectory() as folder:
        report = run_attacks(Path(folder), count)
    for kind, number in sorted(report.tried.items()):
        print(f"{number:>7,}  {kind}")
    print(f"{report.shown:,} stored payloads shown, {len(report.pages)} pages seen")
    print(f"without data for: {', '.join(_missing(report)) or 'none'}")
    for success in report.successes:
        print(f"NOT REFUSED  {success}")
    sys.exit(bool(report.successes))


if __name__ == "__main__":
    main()
