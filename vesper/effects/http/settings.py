"""`[providers.NAME]` of the configuration: where a provider is, how it is asked, and what is not done there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, cast

from vesper._direct import (
    check_http_endpoint,
    check_http_header,
    check_http_value,
    read_http_origin,
    read_http_url,
)
from vesper.effects.settings import Table

MAX_RESPONSE = 16 << 20
"""The largest `max_response`: the body is held in memory, and reading a megabyte of JSON may take seconds."""
_KEY_HOLE = "{key}"
_BASIC = ("user", "password")
_HOLE = re.compile(r"\{secret:([a-z][a-z0-9_.-]*)\}", re.ASCII)
_PORTS = {True: 443, False: 80}

BodyFormat = Literal["json", "form"]
Redirects = Literal["none", "same_host", "allowed_hosts"]


class Origin(NamedTuple):
    """Destination of a connection; the host has its one spelling."""

    is_secure: bool
    host: str
    port: int

    @property
    def authority(self) -> str:
        """Return host and port as the header `Host` has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.is_secure] else f"{host}:{self.port}"


class BaseUrl(NamedTuple):
    """URL above all endpoints of a provider; its path does not end with `/`."""

    origin: Origin
    path: str


class Template(NamedTuple):
    """A text of the configuration: one more text than names of secrets, which stand between the texts."""

    texts: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> Template:
        """Read a text with holes. Raises `ValueError` for a brace that belongs to no `{secret:NAME}`."""
        parts = _HOLE.split(text)
        template = cls(tuple(parts[::2]), tuple(parts[1::2]))
        if any("{" in each or "}" in each for each in template.texts):
            raise ValueError("braces are only for secrets: `{secret:NAME}`, with a name in lower case")
        return template


@dataclass(frozen=True, slots=True)
class Basic:
    """User and password, sent as HTTP's basic scheme has them."""

    user: Template
    password: Template


@dataclass(frozen=True, slots=True)
class AuthHeader:
    """A header that holds a credential."""

    name: str
    value: Template


@dataclass(frozen=True, slots=True)
class Probe:
    """How a provider is asked whether something happened: under a name that was sent with it."""

    method: str
    endpoint: str
    """With `{key}` where the name comes."""
    found_status: int


@dataclass(frozen=True)
class HttpSettings:
    """One provider. All texts were checked: whoever has one of these need not look at them again."""

    name: str
    base: BaseUrl
    allowed: tuple[Origin, ...]
    """Where a connection may go at all, `base` among them."""
    auth: AuthHeader | Basic | None = None
    headers: tuple[tuple[str, Template], ...] = ()
    key_header: str = "Idempotency-Key"
    key_ttl: float = 86400.0
    """Seconds for which the provider remembers a key: an older request is not repeated."""
    body: BodyFormat = "json"
    timeout: float = 30.0
    """Seconds of one attempt where the step says none."""
    connect_timeout: float = 10.0
    """Seconds for finding the address, connecting and the TLS handshake, within the time of the attempt."""
    max_response: int = 1 << 20
    redirects: Redirects = "none"
    allow_private_addresses: bool = False
    ca_file: Path | None = None
    max_connections: int = 20
    probe: Probe | None = None
    retry_after_max: float = 60.0
    """The longest time that a provider can make us wait by `Retry-After`."""

    def secret_names(self) -> set[str]:
        """The secrets without which nothing can be sent."""
        templates = [each for _, each in self.headers]
        match self.auth:
            case Basic(user, password):
                templates += [user, password]
            case AuthHeader(_, value):
                templates.append(value)
            case None:
                pass
        return {name for each in templates for name in each.names}

    @classmethod
    def from_table(cls, name: str, table: Table) -> HttpSettings:
        allow_private = table.boolean("allow_private_addresses", False)
        base = _base_url(table, table.boolean("allow_http", allow_private))
        settings = cls(
            name=name,
            base=base,
            allowed=_allowed(table, base),
            auth=_auth(table),
            headers=_static_headers(table),
            key_header=_header_name(table, "key_header", table.text("key_header", cls.key_header)),
            key_ttl=_positive(table, "key_ttl", cls.key_ttl),
            body=cast(BodyFormat, table.choice("body", ("json", "form"), cls.body)),
            timeout=_positive(table, "timeout", cls.timeout),
            connect_timeout=_positive(table, "connect_timeout", cls.connect_timeout),
            max_response=_max_response(table, cls.max_response),
            redirects=cast(Redirects, table.choice("redirects", ("none", "same_host", "allowed_hosts"), cls.redirects)),
            allow_private_addresses=allow_private,
            ca_file=_ca_file(table),
            max_connections=table.integer("max_connections", cls.max_connections, least=1, most=1000),
            probe=_probe(table, base),
            retry_after_max=table.seconds("retry_after_max", cls.retry_after_max),
        )
        if "verify" in table:
            raise table.error(
                "verify", "TLS is always verified; for a certificate of your own, name its CA in `ca_file`"
            )
        table.done()
        return settings


def _base_url(table: Table, allow_http: bool) -> BaseUrl:
    text = table.text("base_url")
    try:
        origin, path, query = read_http_url(text)
    except ValueError as bad:
        raise table.error("base_url", str(bad)) from None
    if query or "#" in text or "?" in text:
        raise table.error("base_url", "a base URL has neither query nor fragment")
    base = BaseUrl(Origin(*origin), path.rstrip("/"))
    if not base.origin.is_secure and not allow_http:
        raise table.error(
            "base_url", "`https://` is expected; `allow_http = true` lets requests and credentials travel in the clear"
        )
    return base


def _allowed(table: Table, base: BaseUrl) -> tuple[Origin, ...]:
    found: list[Origin] = []
    for text in table.texts("allowed_hosts", (base.origin.authority,)):
        try:
            origin = Origin(*read_http_origin(base.origin.is_secure, text))
        except ValueError as bad:
            raise table.error("allowed_hosts", str(bad)) from None
        has_port = text.rpartition(":")[2].isdigit() and not text.endswith("]")
        found.append(base.origin if origin.host == base.origin.host and not has_port else origin)
    if base.origin not in found:
        raise table.error("allowed_hosts", f"the host of `base_url`, {base.origin.authority}, is not among them")
    return tuple(found)


def _auth(table: Table) -> AuthHeader | Basic | None:
    inner = table.table("auth")
    if not inner.names():
        if "auth" in table:
            raise table.error("auth", "`{header = …, value = …}` or `{basic = {user = …, password = …}}` is expected")
        return None
    auth: AuthHeader | Basic
    if "basic" in inner:
        basic = inner.table("basic")
        user, password = (_template(basic, each, basic.text(each)) for each in _BASIC)
        if any(":" in text for text in user.texts):
            raise basic.error("user", "a user name has no `:`, since the password comes after one")
        basic.done()
        auth = Basic(user, password)
    else:
        header = _header_name(inner, "header", inner.text("header", "Authorization"))
        auth = AuthHeader(header, _template(inner, "value", inner.text("value")))
    inner.done()
    return auth


def _static_headers(table: Table) -> tuple[tuple[str, Template], ...]:
    inner = table.table("headers")
    found = tuple((_header_name(inner, name, name), _template(inner, name, inner.text(name))) for name in inner.names())
    lower = [name.lower() for name, _ in found]
    for name in lower:
        if lower.count(name) > 1:
            raise table.error("headers", f"the header `{name}` is there twice: the names of headers know no case")
    return found


def _template(table: Table, name: str, text: str) -> Template:
    try:
        template = Template.read(text)
        for part in template.texts:
            check_http_value(name, f"x{part}x")  # spaces at its ends may stand between a text and a secret
    except ValueError as bad:
        raise table.error(name, str(bad)) from None
    return template


def _header_name(table: Table, setting: str, name: str) -> str:
    try:
        check_http_header(name)
    except ValueError as bad:
        raise table.error(setting, str(bad)) from None
    return name


def _positive(table: Table, name: str, default: float) -> float:
    seconds = table.seconds(name, default)
    if seconds <= 0:
        raise table.error(name, "more than nothing is expected")
    return seconds


def _max_response(table: Table, default: int) -> int:
    size = table.size("max_response", default)
    if not 1 <= size <= MAX_RESPONSE:
        raise table.error("max_response", f"from 1 B to {MAX_RESPONSE >> 20} MiB is expected")
    return size


def _ca_file(table: Table) -> Path | None:
    if "ca_file" not in table:
        table.text("ca_file", "")
        return None
    path = Path(table.text("ca_file"))
    if not path.is_file():
        raise table.error("ca_file", f"there is no file `{path}`")
    return path


def _probe(table: Table, base: BaseUrl) -> Probe | None:
    inner = table.table("probe")
    if "probe" not in table:
        return None
    probe = Probe(
        method=inner.choice("method", ("GET", "HEAD"), "GET"),
        endpoint=inner.text("endpoint"),
        found_status=inner.integer("found_status", 200, least=200, most=299),
    )
    if probe.endpoint.count(_KEY_HOLE) != 1:
        raise inner.error("endpoint", f"`{_KEY_HOLE}` is expected once, where the name of what was asked for comes")
    try:
        check_http_endpoint(base.origin, base.path, probe.endpoint.replace(_KEY_HOLE, "a"))
    except ValueError as bad:
        raise inner.error("endpoint", str(bad)) from None
    inner.done()
    return probe
