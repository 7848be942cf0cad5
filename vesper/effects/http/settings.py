"""`[providers.NAME]` of the configuration: where a provider is, how it is asked, and what is not done there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from vesper.effects.http.headers import BadHeader, header_name, header_value
from vesper.effects.http.secrets import Template
from vesper.effects.http.url import BadUrl, Origin, Url, joined, read_origin, read_url
from vesper.effects.settings import Table

MAX_RESPONSE = 16 << 20
"""The largest `max_response`: the body is held in memory, and reading a megabyte of JSON may take seconds."""
_KEY_HOLE = "{key}"
_BASIC = ("user", "password")

BodyFormat = Literal["json", "form"]
Redirects = Literal["none", "same_host", "allowed_hosts"]


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
    base: Url
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

    @property
    def reserved_headers(self) -> frozenset[str]:
        """Names in lower case that the configuration sets, so that a node cannot."""
        names = [name for name, _ in self.headers]
        if self.auth is not None:
            names.append(self.auth.name if isinstance(self.auth, AuthHeader) else "Authorization")
        return frozenset(name.lower() for name in names)


def _base_url(table: Table, allow_http: bool) -> Url:
    text = table.text("base_url")
    try:
        base = read_url(text)
    except BadUrl as bad:
        raise table.error("base_url", str(bad)) from None
    if base.query or "#" in text or "?" in text:
        raise table.error("base_url", "a base URL has neither query nor fragment")
    if not base.origin.is_secure and not allow_http:
        raise table.error(
            "base_url", "`https://` is expected; `allow_http = true` lets requests and credentials travel in the clear"
        )
    return Url(base.origin, base.path.rstrip("/"), "")


def _allowed(table: Table, base: Url) -> tuple[Origin, ...]:
    found: list[Origin] = []
    for text in table.texts("allowed_hosts", (base.origin.authority,)):
        try:
            origin = read_origin(base.origin.scheme, text)
        except BadUrl as bad:
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
            header_value(name, f"x{part}x")  # spaces at its ends may stand between a text and a secret
    except (ValueError, BadHeader) as bad:
        raise table.error(name, str(bad)) from None
    return template


def _header_name(table: Table, setting: str, name: str) -> str:
    try:
        return header_name(name)
    except BadHeader as bad:
        raise table.error(setting, str(bad)) from None


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


def _probe(table: Table, base: Url) -> Probe | None:
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
        joined(base, probe_endpoint(probe, "a"), [])
    except BadUrl as bad:
        raise inner.error("endpoint", str(bad)) from None
    inner.done()
    return probe


def probe_endpoint(probe: Probe, encoded_key: str) -> str:
    """The endpoint with the name, which was percent-encoded, in its place."""
    return probe.endpoint.replace(_KEY_HOLE, encoded_key)
