"""`[providers.NAME]` of the configuration: the address of a provider, its credentials and its limits."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Literal, NamedTuple, cast

from vesper._direct import check_http_endpoint, read_http_origin, read_http_url
from vesper.effects.http.credentials import Auth, Template, header_name, read_auth, template
from vesper.effects.http.failure_rules import FailureRule, read_failures
from vesper.effects.http.provider_packs import extend
from vesper.effects.settings import Table

MAX_RESPONSE = 16 << 20
"""The largest `max_response`: the body is held in memory, and reading a megabyte of JSON may take seconds."""
_KEY_HOLE = "{key}"
_PORTS = {True: 443, False: 80}
_PRIVATE = tuple(
    ip_network(each)
    for each in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "::1", "fc00::/7")
)
"""Networks that `allow_private_addresses` opens."""

BodyFormat = Literal["json", "form"]
Redirects = Literal["none", "same_host", "allowed_hosts"]


class Origin(NamedTuple):
    """Destination of a connection; the host is in its canonical spelling."""

    is_secure: bool
    host: str
    port: int

    @property
    def authority(self) -> str:
        """Return host and port as the header `Host` has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.is_secure] else f"{host}:{self.port}"

    @property
    def is_private(self) -> bool:
        """Return whether the host is written as a loopback or private address."""
        try:
            address = ip_address(self.host)
        except ValueError:
            return self.host == "localhost" or self.host.endswith(".localhost")
        return any(address in each for each in _PRIVATE)


class BaseUrl(NamedTuple):
    """URL that all endpoints of a provider are below. Its path does not end with `/`."""

    origin: Origin
    path: str


@dataclass(frozen=True, slots=True)
class Probe:
    """Request that finds out whether an earlier request was performed, by the name that was sent with it."""

    method: str
    endpoint: str
    """With `{key}` where the name comes."""
    found_status: int


@dataclass(frozen=True)
class HttpSettings:
    """One provider. All texts were checked: users of the settings need not check them again."""

    name: str
    base: BaseUrl
    allowed: tuple[Origin, ...]
    """Where a connection may go at all, `base` among them."""
    auth: Auth | None = None
    headers: tuple[tuple[str, Template], ...] = ()
    key_header: str = "Idempotency-Key"
    """Empty where the provider recognises no repeats."""
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
    failures: tuple[FailureRule, ...] = ()
    pack: str | None = None
    """Name and version of the pack that the settings extend."""

    @property
    def is_private(self) -> bool:
        """Return whether the provider is at a loopback or private address."""
        return self.base.origin.is_private

    def secret_names(self) -> set[str]:
        """Return the secrets without which no request can be sent."""
        templates = [each for _, each in self.headers]
        if self.auth is not None:
            templates += self.auth.templates()
        return {name for each in templates for name in each.names}

    def __str__(self) -> str:
        """Describe the merged settings in one line, without a secret."""
        origin = self.base.origin
        parts = [f"{'https' if origin.is_secure else 'http'}://{origin.authority}{self.base.path}"]
        parts += [] if self.pack is None else [f"pack {self.pack}"]
        parts += ["no authentication" if self.auth is None else f"authenticated by {self.auth}"]
        parts += [f"{self.body} bodies", f"keys in {self.key_header}" if self.key_header else "no keys"]
        count = len(self.failures)
        parts += [f"{count} failure rule{'' if count == 1 else 's'}"] if count else []
        return ", ".join(parts)

    @classmethod
    def from_table(cls, name: str, table: Table, folder: Path | None = None) -> HttpSettings:
        """Read a provider; own packs are in `packs` of `folder`. Raises `ConfigError`."""
        return extend(table, folder, lambda merged, pack: cls._from_merged(name, merged, pack))

    @classmethod
    def _from_merged(cls, name: str, table: Table, pack: str | None) -> HttpSettings:
        allow_private = table.boolean("allow_private_addresses", False)
        allow_http = table.boolean("allow_http", allow_private)
        base = _base_url(table, allow_http, allow_private)
        key_header = table.text("key_header", cls.key_header)
        settings = cls(
            name=name,
            base=base,
            allowed=_allowed(table, base),
            auth=read_auth(table, allow_http),
            headers=_static_headers(table),
            key_header=header_name(table, "key_header", key_header) if key_header else "",
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
            failures=read_failures(table),
            pack=pack,
        )
        if "verify" in table:
            raise table.error(
                "verify", "TLS is always verified; for a certificate of your own, name its CA in `ca_file`"
            )
        table.done()
        return settings


def _base_url(table: Table, allow_http: bool, allow_private: bool) -> BaseUrl:
    text = table.text("base_url")
    try:
        origin, path, query = read_http_url(text)
    except ValueError as bad:
        raise table.error("base_url", str(bad)) from None
    if query or "#" in text or "?" in text:
        raise table.error("base_url", "a base URL has neither query nor fragment")
    base = BaseUrl(Origin(*origin), path.rstrip("/"))
    if not base.origin.is_secure and not allow_http:
        if base.origin.is_private and not allow_private:
            raise table.error(
                "base_url",
                f"`{base.origin.host}` is a loopback or private address: `allow_private_addresses = true` lets "
                "requests go there, also by `http://`",
            )
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


def _static_headers(table: Table) -> tuple[tuple[str, Template], ...]:
    inner = table.table("headers")
    found = tuple((header_name(inner, name, name), template(inner, name)) for name in inner.names())
    lower = [name.lower() for name, _ in found]
    for name in lower:
        if lower.count(name) > 1:
            raise table.error("headers", f"the header `{name}` is there twice: the names of headers know no case")
    return found


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
