"""The table `[kernel]` of `vesper.toml`: address, store and limits of the kernel. Reading it starts nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from vesper.config.migration import read_share
from vesper.config.serve import JwtSettings, KeySettings, read_jwt, read_key, refuse_repeated
from vesper.effects.settings import Table

_RATES = ("burst", "per_minute", "per_hour")
_QUOTAS = ("llm_calls", "tool_calls", "agent_hops", "iterations", "tokens_in", "tokens_out")
_HOST = re.compile(r"[A-Za-z0-9._:%-]{1,255}", re.ASCII)
_MAX_RATE = 1 << 20
_MAX_SECONDS = 1 << 32


@dataclass(frozen=True, slots=True)
class KernelSettings:
    """`[kernel]`. Tokens without a name are not set here: they come from the variable `VESPER_KERNEL_TOKENS`."""

    host: str = "127.0.0.1"
    port: int = 7443
    store: str = "memory"
    """`memory`, `sqlite:PATH`, or the URL of a PostgreSQL database, which kernels can share."""
    certificate: Path | None = None
    key: Path | None = None
    max_message_bytes: int = 4 << 20
    drain_seconds: float = 5.0
    retention_seconds: float = 86_400.0
    """How long ended processes are kept."""
    rate: Mapping[str, int] = field(default_factory=dict)
    """Requests of a user: `burst` in a second, `per_minute`, `per_hour`."""
    quota: Mapping[str, int] = field(default_factory=dict)
    """Quota of processes that name none."""
    metrics: str = ""
    """`HOST:PORT` at which Prometheus reads metrics; none by default."""
    otlp: str | None = None
    """Base URL of an OTLP/HTTP receiver of spans, without TLS; None sends nothing."""
    sample: float = 1.0
    """Share of traces that begin in the kernel and are recorded. A caller's trace decides for itself."""
    client_ca: Path | None = None
    """Certificates of clients must be issued by one of these."""
    keys: tuple[KeySettings, ...] = ()
    """Named tokens, whose texts are secrets."""
    jwt: tuple[JwtSettings, ...] = ()
    """Issuers of tokens."""
    is_declared: bool = False
    """`[kernel]` stands in the settings: there is a kernel to ask."""

    def environment(self) -> dict[str, str]:
        """Return the settings as environment variables of the kernel's program, except `keys`."""
        found: dict[str, object] = {
            "LISTEN": f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}",
            "STORE": self.store,
            "MAX_MESSAGE_BYTES": self.max_message_bytes,
            "DRAIN_SECONDS": round(self.drain_seconds),
            "RETENTION_SECONDS": round(self.retention_seconds),
        }
        if self.certificate is not None and self.key is not None:
            found |= {"TLS_CERT": self.certificate, "TLS_KEY": self.key}
        if self.otlp is not None:
            found |= {"OTLP": self.otlp, "SAMPLE": self.sample}
        if self.client_ca is not None:
            found["TLS_CLIENT_CA"] = self.client_ca
        if self.jwt:
            found["JWT"] = json.dumps([_issuer(each) for each in self.jwt])
        if self.metrics:
            found["METRICS"] = self.metrics
        found |= {f"RATE_{name.upper()}": value for name, value in self.rate.items()}
        for name, value in self.quota.items():
            found["TIMEOUT_SECONDS" if name == "timeout" else f"MAX_{name.upper()}"] = value
        return {f"VESPER_KERNEL_{name}": str(value) for name, value in found.items()}


def read_kernel(top: Table, folder: Path) -> KernelSettings:
    """Read `[kernel]`; its store is a file beside the journal by default. Raises `ConfigError`."""
    usual, table = KernelSettings(), top.table("kernel")
    tls, rate, quota = table.table("tls"), table.table("rate"), table.table("quota")
    has_tls = "tls" in table
    keys = tuple(_key(each) for each in table.list_of_tables("keys"))
    jwt = tuple(_jwt(each, folder) for each in table.list_of_tables("jwt"))
    found = KernelSettings(
        _read_text(table, "host", usual.host, read_host),
        table.integer("port", usual.port, most=65_535),
        _read_text(table, "store", "sqlite:.vesper/kernel.db", lambda text: read_store(text, folder)),
        folder / tls.text("certificate") if has_tls else None,
        folder / tls.text("key") if has_tls else None,
        table.size("max_message", usual.max_message_bytes),
        _seconds(table, "drain", usual.drain_seconds, 3_600),
        _seconds(table, "retention", usual.retention_seconds, _MAX_SECONDS),
        {name: rate.integer(name, 0, most=_MAX_RATE) for name in _RATES if name in rate},
        {name: quota.integer(name, 0) for name in _QUOTAS if name in quota}
        | ({"timeout": round(_seconds(quota, "timeout", 0.0, _MAX_SECONDS))} if "timeout" in quota else {}),
        _address(table, "metrics"),
        _read_text(table, "otlp", "", _otlp) or None,
        read_share(table, "sample", usual.sample, 0.0, 1.0),
        folder / tls.text("client_ca") if "client_ca" in tls else None,
        keys,
        jwt,
        "kernel" in top,
    )
    for each in (tls, rate, quota, table):
        each.done()
    refuse_repeated(table, "keys", [each.name for each in keys])
    refuse_repeated(table, "jwt", [each.issuer for each in jwt])
    if not 1 << 10 <= found.max_message_bytes <= 1 << 30:
        raise table.error("max_message", "a message has 1 KiB at least and 1 GiB at most")
    return found


def _issuer(settings: JwtSettings) -> dict[str, object]:
    return {
        "issuer": settings.issuer,
        "audience": settings.audience,
        "jwks": settings.jwks,
        "algorithms": list(settings.algorithms),
        "subject_claim": settings.subject_claim,
        "refresh": round(settings.refresh),
    }


def _key(table: Table) -> KeySettings:
    _refuse_settings(table, "tenant", "scopes")
    return read_key(table)


def _jwt(table: Table, folder: Path) -> JwtSettings:
    _refuse_settings(table, "tenant_claim", "scope_claim")
    found = read_jwt(table, folder)
    if "://" in found.jwks:
        raise table.error("jwks", "the kernel reads keys from a file only: fetch the URL into one, from time to time")
    return found


def _refuse_settings(table: Table, *names: str) -> None:
    for name in names:
        if name in table:
            raise table.error(name, "callers of a kernel have no tenants and scopes: remove it")


def _otlp(text: str) -> str:
    parts = urlsplit(text)
    is_base = parts.scheme == "http" and parts.hostname and not (parts.query or parts.fragment or "@" in parts.netloc)
    if text and not is_base:
        raise ValueError("the base URL of an OTLP/HTTP receiver without TLS is expected: `http://127.0.0.1:4318`")
    return text


def _address(table: Table, name: str) -> str:
    text = table.text(name, "")
    host, _, port = text.rpartition(":")
    if text and not (host and port.isdecimal() and int(port) <= 65_535):
        raise table.error(name, f"`HOST:PORT` is expected, not `{text}`")
    return text


def read_store(text: str, folder: Path) -> str:
    """Return a store with an absolute path. Raises `ValueError`."""
    if text == "memory" or text.startswith(("postgresql://", "postgres://")):
        return text
    if not text.startswith("sqlite:") or text == "sqlite:":
        shown = "another URL" if "://" in text else f"`{text}`"
        raise ValueError(f"`memory`, `sqlite:PATH` or `postgresql://…` is expected, not {shown}")
    return f"sqlite:{folder / text.removeprefix('sqlite:')}"


def read_host(text: str) -> str:
    """Return an address to listen on. Raises `ValueError`."""
    if not _HOST.fullmatch(text):
        raise ValueError(f"a name or an address is expected, not `{text}`")
    return text


def _read_text(table: Table, name: str, default: str, read: Callable[[str], str]) -> str:
    try:
        return read(table.text(name, default))
    except ValueError as problem:
        raise table.error(name, str(problem)) from None


def _seconds(table: Table, name: str, default: float, most: float) -> float:
    """Read whole seconds: the kernel has no smaller unit."""
    found = table.seconds(name, default)
    if found != round(found) or found > most:
        raise table.error(name, f"whole seconds are expected, at most {most:,.0f}")
    return found
