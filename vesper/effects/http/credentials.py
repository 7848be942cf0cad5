"""Credentials of a provider: a header, HTTP's basic scheme, OAuth 2 client credentials, or AWS signatures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from vesper._direct import check_http_header, check_http_value, read_http_url
from vesper.effects.settings import Table

_BASIC = ("user", "password")
_HOLE = re.compile(r"\{secret:([a-z][a-z0-9_.-]*)\}", re.ASCII)
_SCOPE = re.compile(r"[a-z0-9-]+", re.ASCII)
_FORMS = (
    "`{header = …, value = …}`, `{basic = {user = …, password = …}}`, `{type = "
    '"oauth2", …}` or `{type = "aws_sigv4", …}` is expected'
)


class Template(NamedTuple):
    """A text of the configuration with names of secrets in it. It has one more text than names, which separate the
    texts.
    """

    texts: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> Template:
        """Read a text with holes. Raises `ValueError` for a brace outside of a `{secret:NAME}`."""
        parts = _HOLE.split(text)
        template = cls(tuple(parts[::2]), tuple(parts[1::2]))
        if any("{" in each or "}" in each for each in template.texts):
            raise ValueError("braces are only for secrets: `{secret:NAME}`, with a name in lower case")
        return template


@dataclass(frozen=True, slots=True)
class Basic:
    """User and password of HTTP's basic scheme."""

    user: Template
    password: Template

    def templates(self) -> tuple[Template, ...]:
        return self.user, self.password

    def __str__(self) -> str:
        return "basic authentication"


@dataclass(frozen=True, slots=True)
class AuthHeader:
    """A header that holds a credential."""

    name: str
    value: Template

    def templates(self) -> tuple[Template, ...]:
        return (self.value,)

    def __str__(self) -> str:
        return f"the header {self.name}"


@dataclass(frozen=True, slots=True)
class OAuth2:
    """Client credentials of OAuth 2, exchanged for access tokens at `token_url`."""

    token_url: tuple[tuple[bool, str, int], str, str]
    """Origin, path and query."""
    client_id: Template
    client_secret: Template
    scope: str = ""
    audience: str = ""
    is_in_body: bool = False
    """Whether the client's name and secret are fields of the form, not HTTP's basic scheme."""

    def templates(self) -> tuple[Template, ...]:
        return self.client_id, self.client_secret

    def __str__(self) -> str:
        return f"OAuth 2 tokens of {self.token_url[0][1]}"


@dataclass(frozen=True, slots=True)
class AwsSigV4:
    """Keys of an AWS account, which sign each request."""

    region: str
    service: str
    access_key_id: Template
    secret_access_key: Template
    session_token: Template | None = None

    def templates(self) -> tuple[Template, ...]:
        token = () if self.session_token is None else (self.session_token,)
        return self.access_key_id, self.secret_access_key, *token

    def __str__(self) -> str:
        return f"AWS signatures for {self.service} in {self.region}"


Auth = AuthHeader | Basic | OAuth2 | AwsSigV4


def read_auth(table: Table, allow_http: bool) -> Auth | None:
    """Read the setting `auth` of a provider; None without one. Raises `ConfigError`."""
    inner = table.table("auth")
    if not inner.names():
        if "auth" in table:
            raise table.error("auth", _FORMS)
        return None
    form = inner.choice("type", ("header", "basic", "oauth2", "aws_sigv4"), "basic" if "basic" in inner else "header")
    readers = {"header": _read_header, "basic": _read_basic, "aws_sigv4": _read_aws}
    auth = _read_oauth2(inner, allow_http) if form == "oauth2" else readers[form](inner)
    inner.done()
    return auth


def _read_header(table: Table) -> Auth:
    header = header_name(table, "header", table.text("header", "Authorization"))
    return AuthHeader(header, template(table, "value"))


def _read_basic(table: Table) -> Auth:
    basic = table.table("basic")
    user, password = (template(basic, each) for each in _BASIC)
    if any(":" in text for text in user.texts):
        raise basic.error("user", "a user name has no `:`, since the password comes after one")
    basic.done()
    return Basic(user, password)


def _read_oauth2(table: Table, allow_http: bool) -> Auth:
    text = table.text("token_url")
    try:
        origin, path, query = read_http_url(text)
    except ValueError as bad:
        raise table.error("token_url", str(bad)) from None
    if not origin[0] and not allow_http:
        raise table.error("token_url", "`https://` is expected: the client's secret is sent there")
    return OAuth2(
        (origin, path, query),
        template(table, "client_id"),
        template(table, "client_secret"),
        table.text("scope", ""),
        table.text("audience", ""),
        table.choice("client_auth", ("basic", "body"), "basic") == "body",
    )


def _read_aws(table: Table) -> Auth:
    for name in ("region", "service"):
        if not _SCOPE.fullmatch(table.text(name)):
            raise table.error(name, "a name such as `eu-central-1` or `sqs` is expected")
    return AwsSigV4(
        table.text("region"),
        table.text("service"),
        template(table, "access_key_id"),
        template(table, "secret_access_key"),
        template(table, "session_token") if "session_token" in table else None,
    )


def template(table: Table, name: str) -> Template:
    """Read a text with `{secret:NAME}` in it that a header can hold. Raises `ConfigError`."""
    try:
        found = Template.read(table.text(name))
        for part in found.texts:
            check_http_value(name, f"x{part}x")  # spaces at its ends may stand between a text and a secret
    except ValueError as bad:
        raise table.error(name, str(bad)) from None
    return found


def header_name(table: Table, setting: str, name: str) -> str:
    """Return the name of a header that a configuration can set. Raises `ConfigError`."""
    try:
        check_http_header(name)
    except ValueError as bad:
        raise table.error(setting, str(bad)) from None
    return name
