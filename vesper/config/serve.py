"""The table `[serve]` of `vesper.toml`: address, limits and authentication of a server. Reading it opens nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from vesper.effects.settings import Table

if TYPE_CHECKING:
    from vesper.effects.http.webhooks import WebhookScheme

PAGES: Final = ("/openapi.json", "/docs", "/metrics", "/readyz", "/status")
"""Built-in pages that callers may need scopes for."""
ANSWER_PATH: Final = "/runs/{id}/interrupt"
RUN_PATHS: Final = ("/runs", "/runs/{id}", "/runs/{id}/signals/{name}", ANSWER_PATH, "/runs/{id}/cancel")
"""Endpoints of runs; the scopes of the first hold for all."""
ALGORITHMS: Final = ("RS256", "ES256", "EdDSA", "HS256")
LOOPBACK_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
_ORIGIN: Final = re.compile(r"https?://[^/\s*]+")
_MAX_SECONDS: Final = 3_600.0


@dataclass(frozen=True, slots=True)
class ServeLimits:
    """`[serve.limits]`, of each worker."""

    max_body_bytes: int = 1 << 20
    max_head_bytes: int = 16 << 10
    max_headers: int = 100
    max_connections: int = 10_000
    queue: int = 256
    """Requests that wait for a thread; further ones are answered with 503."""
    head_seconds: float = 10.0
    body_seconds: float = 10.0
    min_bytes_per_second: int = 1_000
    """Rate that a body needs once `body_seconds` are over."""
    idle_seconds: float = 75.0
    write_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """`[serve.tls]`: files in PEM form."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
    """Certificates of clients must be issued by one of these; their subject is the actor."""


@dataclass(frozen=True, slots=True)
class CorsSettings:
    """`[serve.cors]`."""

    origins: tuple[str, ...]
    headers: tuple[str, ...] = ()
    has_credentials: bool = False
    max_age: float = 600.0


@dataclass(frozen=True, slots=True)
class KeySettings:
    """`[[serve.keys]]`: an API key, whose text is a secret."""

    name: str
    """The subject of the actor."""
    secret: str
    tenant: str | None = None
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JwtSettings:
    """`[[serve.jwt]]`: an issuer of tokens."""

    issuer: str
    audience: str
    jwks: str
    """A URL, or the absolute path of a file."""
    algorithms: tuple[str, ...] = ("RS256", "ES256", "EdDSA")
    subject_claim: str = "sub"
    tenant_claim: str | None = None
    scope_claim: str = "scope"
    refresh: float = 600.0
    """Seconds between two reads of the keys."""


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """`[serve]`."""

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    threads: int = 16
    """Threads of a worker that run nodes through Python."""
    expose: tuple[str, ...] = ()
    """Patterns of functions that are served at `POST /nodes/ID`."""
    scopes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Scopes that callers need, by pattern of nodes or by the path of a built-in page."""
    decimals: Literal["text", "number"] = "text"
    grace: float = 10.0
    has_access_log: bool = False
    has_runs: bool = False
    """True where runs are started, shown and signalled at `/runs`."""
    reveal_scope: str | None = None
    """Callers with this scope see sensitive outcomes of runs that others began."""
    limits: ServeLimits = ServeLimits()
    tls: TlsSettings | None = None
    cors: CorsSettings | None = None
    keys: tuple[KeySettings, ...] = ()
    jwt: tuple[JwtSettings, ...] = ()
    webhooks: Mapping[str, WebhookScheme] = field(default_factory=dict)
    """Signatures that requests to a node need, by node; they replace other credentials."""

    @property
    def has_auth(self) -> bool:
        """Return whether callers must authenticate."""
        return bool(self.keys or self.jwt or (self.tls is not None and self.tls.client_ca is not None))


def read_serve(top: Table, folder: Path) -> ServeSettings:
    """Read `[serve]`. Raises `ConfigError`."""
    table = top.table("serve")
    usual = ServeSettings()
    scopes = table.table("scopes")
    keys = tuple(read_key(each) for each in table.list_of_tables("keys"))
    jwt = tuple(read_jwt(each, folder) for each in table.list_of_tables("jwt"))
    found = ServeSettings(
        table.text("host", usual.host),
        table.integer("port", usual.port, most=65_535),
        table.integer("workers", usual.workers, least=1, most=1_024),
        table.integer("threads", usual.threads, least=1, most=1_024),
        table.texts("expose", ()),
        {name: scopes.texts(name) for name in scopes.names()},
        "number" if table.choice("decimals", ("text", "number"), usual.decimals) == "number" else "text",
        _seconds(table, "grace", usual.grace),
        table.boolean("access_log", usual.has_access_log),
        table.boolean("runs", usual.has_runs),
        table.text("reveal_scope") if "reveal_scope" in table else None,
        _limits(table.table("limits")),
        _tls(table.table("tls"), folder) if "tls" in table else None,
        _cors(table.table("cors")) if "cors" in table else None,
        keys,
        jwt,
        _webhooks(table, folder),
    )
    table.done()
    refuse_repeated(table, "keys", [each.name for each in keys])
    refuse_repeated(table, "jwt", [each.issuer for each in jwt])
    for name in found.scopes:
        if name.startswith("/") and name not in (*PAGES, *RUN_PATHS):
            named = ", ".join((*PAGES, *RUN_PATHS))
            raise table.error("scopes", f"`{name}` is no page: one of {named}, or a pattern of nodes")
    if not found.has_runs and (found.reveal_scope is not None or not found.scopes.keys().isdisjoint(RUN_PATHS)):
        raise table.error("runs", "`reveal_scope` and scopes of `/runs` need the endpoints of runs: add `runs = true`")
    if found.scopes and not found.has_auth:
        raise table.error("scopes", "a scope needs callers with a name: add [[serve.keys]], [[serve.jwt]] or client_ca")
    return found


def _limits(table: Table) -> ServeLimits:
    usual = ServeLimits()
    found = ServeLimits(
        table.size("max_body", usual.max_body_bytes),
        table.size("max_head", usual.max_head_bytes),
        table.integer("max_headers", usual.max_headers, least=8, most=500),
        table.integer("max_connections", usual.max_connections, least=1, most=1_000_000),
        table.integer("queue", usual.queue, least=1, most=1_000_000),
        _seconds(table, "head_timeout", usual.head_seconds),
        _seconds(table, "body_timeout", usual.body_seconds),
        table.size("min_rate", usual.min_bytes_per_second),
        _seconds(table, "idle_timeout", usual.idle_seconds),
        _seconds(table, "write_timeout", usual.write_seconds),
    )
    table.done()
    if not 1 << 10 <= found.max_body_bytes <= 64 << 20:
        raise table.error("max_body", "a body has 1 KiB at least and 64 MiB at most")
    if not 1 <= found.min_bytes_per_second <= 1 << 30:
        raise table.error("min_rate", "a rate is 1 B at least and 1 GiB at most, for each second")
    if not 1 << 10 <= found.max_head_bytes <= 1 << 20:
        raise table.error("max_head", "a head has 1 KiB at least and 1 MiB at most")
    return found


def _seconds(table: Table, name: str, default: float) -> float:
    found = table.seconds(name, default)
    if not 0.1 <= found <= _MAX_SECONDS:
        raise table.error(name, "from 100ms to 1h is expected")
    return found


def _tls(table: Table, folder: Path) -> TlsSettings:
    found = TlsSettings(
        folder / table.text("certificate"),
        folder / table.text("key"),
        folder / table.text("client_ca") if "client_ca" in table else None,
    )
    table.done()
    return found


def _cors(table: Table) -> CorsSettings:
    found = CorsSettings(
        table.texts("origins"),
        table.texts("headers", ()),
        table.boolean("credentials", False),
        _seconds(table, "max_age", 600.0),
    )
    table.done()
    for each in found.origins:
        if each != "*" and not _ORIGIN.fullmatch(each):
            raise table.error("origins", f'an origin such as "https://shop.example", or "*", is expected, not `{each}`')
    if not found.origins:
        raise table.error("origins", 'an origin such as "https://shop.example" is missing; without CORS omit the table')
    if found.has_credentials and "*" in found.origins:
        raise table.error("credentials", 'browsers send credentials to named origins only: replace "*"')
    return found


def read_key(table: Table) -> KeySettings:
    """Read an element of `keys`. Raises `ConfigError`."""
    tenant = table.text("tenant") if "tenant" in table else None
    found = KeySettings(table.text("name"), table.text("secret"), tenant, table.texts("scopes", ()))
    table.done()
    if not found.name.strip():
        raise table.error("name", "the key needs a name: it is the subject in journal and audit log")
    return found


def read_jwt(table: Table, folder: Path) -> JwtSettings:
    """Read an element of `jwt`. Raises `ConfigError`."""
    jwks = table.text("jwks")
    found = JwtSettings(
        table.text("issuer"),
        table.text("audience"),
        jwks if "://" in jwks else str(folder / jwks),
        table.texts("algorithms", ("RS256", "ES256", "EdDSA")),
        table.text("subject_claim", "sub"),
        table.text("tenant_claim") if "tenant_claim" in table else None,
        table.text("scope_claim", "scope"),
        table.seconds("refresh", 600.0),
    )
    table.done()
    for each in found.algorithms:
        if each not in ALGORITHMS:
            raise table.error("algorithms", f"one of {', '.join(ALGORITHMS)} is expected, not `{each}`")
    if not found.algorithms:
        raise table.error("algorithms", f"one of {', '.join(ALGORITHMS)} is missing")
    if "://" in jwks and not _is_safe_url(jwks):
        raise table.error("jwks", "keys come by `https://…`, by `http://…` from this machine alone, or from a file")
    if not 10 <= found.refresh <= 86_400:
        raise table.error("refresh", "from 10s to 1d is expected")
    return found


def _webhooks(table: Table, folder: Path) -> dict[str, WebhookScheme]:
    if "webhooks" not in table:
        return {}
    from vesper.effects.http.webhooks import WebhookScheme

    tables = table.table("webhooks").tables()
    return {node: WebhookScheme.from_table(each, folder) for node, each in tables.items()}


def _is_safe_url(url: str) -> bool:
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    try:
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK_HOSTS)


def refuse_repeated(table: Table, name: str, values: Sequence[str]) -> None:
    """Raise `ConfigError` for a value that occurs twice."""
    for each in values:
        if values.count(each) > 1:
            raise table.error(name, f"`{each}` is there twice: rename or remove one")
