"""What is sent: from an `Ask` and the settings of its provider to a method, a target, headers and a body.

Nothing here connects to anything. A request that must not be sent is refused here, whole, before anybody looks up a
name: the message says that nothing was sent.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias
from urllib.parse import quote, quote_plus

from vesper.effects.http.headers import BadHeader, header_name, header_value, key_text
from vesper.effects.http.secrets import SecretTexts
from vesper.effects.http.settings import AuthHeader, HttpSettings, probe_endpoint
from vesper.effects.http.url import BadUrl, Url, joined, read_url
from vesper.effects.performer import Ask, EffectFailed
from vesper.values.json_value import exact_text, json_of
from vesper.values.model import Scalar, Value, scalar_text
from vesper.values.problem import ValueProblem

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_MAX_HEADERS = 65536
_MAX_PARTS = 10_000
"""Fields of a form: each has the whole path to it in its name."""
_CONTENT_TYPES = {"json": "application/json", "form": "application/x-www-form-urlencoded"}

Headers: TypeAlias = dict[str, str]


class NotSent(EffectFailed):
    """The request was refused before anything was sent."""

    def __init__(self, problem: str, code: str = "invalid_argument") -> None:
        # What is wrong with the request stays wrong: it is not to be retried, and no breaker opens because of it.
        super().__init__(code, f"nothing was sent: {problem}")


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request as it goes over the wire; headers that depend on how it goes are not among these."""

    method: str
    url: Url
    headers: Headers
    body: bytes | None

    def to(self, url: Url) -> Outgoing:
        return replace(self, url=url)

    def without_credentials(self, url: Url) -> Outgoing:
        """The bare request: what another host may see."""
        kept = {name: value for name, value in self.headers.items() if name in ("User-Agent", "Accept")}
        return Outgoing(self.method, url, kept, None)

    def as_get(self, url: Url) -> Outgoing:
        kept = {name: value for name, value in self.headers.items() if name.lower() != "content-type"}
        return Outgoing("GET" if self.method != "HEAD" else "HEAD", url, kept, None)


def request_of(ask: Ask, settings: HttpSettings, secrets: SecretTexts) -> Outgoing:
    """Raises `EffectFailed`, mostly `NotSent`."""
    method = ask.fixed["method"]
    if method not in _METHODS:
        raise NotSent(f"the method `{method[:32]}` is none of {', '.join(_METHODS)}")
    try:
        url = _url(ask.arguments, settings, secrets)
        headers, body = _headers(ask.arguments.get("headers"), settings, secrets), None
        if "body" in ask.arguments:
            body = _body(ask.arguments["body"], settings, secrets)
            headers.setdefault("Content-Type", _CONTENT_TYPES[settings.body])
        _add_key(headers, ask, settings)
        headers |= _provider_headers(settings, secrets)
        _check_size(headers)
    except (BadUrl, BadHeader) as bad:
        raise NotSent(secrets.redacted(str(bad))) from None
    return Outgoing(method, url, _canonical(headers), body)


def probe_of(ask: Ask, settings: HttpSettings, secrets: SecretTexts) -> Outgoing:
    """The request that asks whether another one happened."""
    if settings.probe is None:
        raise NotSent(no_probe(settings), "unavailable")
    try:
        endpoint = probe_endpoint(settings.probe, quote(name_of(ask), safe=""))
        url = read_url(f"{settings.base.origin}{joined(settings.base, endpoint, [])}")
        headers = _provider_headers(settings, secrets)
    except (BadUrl, BadHeader) as bad:
        raise NotSent(secrets.redacted(str(bad))) from None
    return Outgoing(settings.probe.method, url, _canonical(headers), None)


def no_probe(settings: HttpSettings) -> str:
    return (
        f"the step is of class `probe`, and nobody could ask `{settings.name}` whether it happened: "
        f"`[providers.{settings.name}.probe]` is not configured"
    )


def name_of(ask: Ask) -> str:
    """The name under which the other side knows the request."""
    return ask.receipt if ask.key is None else ask.key


# -- the target -----------------------------------------------------------------------------------


def _url(arguments: Mapping[str, Value], settings: HttpSettings, secrets: SecretTexts) -> Url:
    endpoint = arguments.get("endpoint")
    assert isinstance(endpoint, str), "the checker lets an endpoint be a string only"
    query = _pairs(arguments.get("query"))
    if any(map(secrets.is_named_in, (endpoint, *(text for pair in query for text in pair)))):
        raise BadUrl("a secret stands in the endpoint or the query, where logs would keep it: put it into a header")
    return read_url(f"{settings.base.origin}{joined(settings.base, endpoint, query)}")


def _pairs(query: Value) -> list[tuple[str, str]]:
    """The names and values of a query. Null is left out; of a list each item stands under the same name."""
    found: list[tuple[str, str]] = []
    fields: Mapping[str, Value] = query if isinstance(query, dict) else {}  # type: ignore[assignment]  # of a record
    for name, value in fields.items():
        items = value if isinstance(value, list) else sorted(value) if isinstance(value, frozenset) else [value]
        for item in items:
            if isinstance(item, Scalar):
                found.append((name, scalar_text(item)))
            elif item is not None:
                raise BadUrl(f"the field `{name}` of the query is neither a text or number nor a list of those")
    return found


# -- headers --------------------------------------------------------------------------------------


def _headers(given: Value, settings: HttpSettings, secrets: SecretTexts) -> Headers:
    """The headers that the node gives, under names in lower case."""
    found: Headers = {}
    for field, text in (given if isinstance(given, dict) else {}).items():
        assert isinstance(text, str), "the checker lets a header be a string only"
        # The checker makes `X-Reason` a field, `x_reason`: no server tells the two apart that is well configured.
        name = header_name(str(field).replace("_", "-")).lower()
        if name in settings.reserved_headers:
            raise BadHeader(f"the header `{name}` is configured for `{settings.name}`, so a node cannot set it")
        if name in found:
            raise BadHeader(f"the header `{name}` is there twice")
        found[name] = header_value(name, secrets.for_node(text))
    return found


def _provider_headers(settings: HttpSettings, secrets: SecretTexts) -> Headers:
    """The headers that the configuration gives, credentials among them."""
    found: Headers = {}
    for name, template in settings.headers:
        found[name.lower()] = header_value(name, template.filled(secrets.for_provider))
    match settings.auth:
        case None:
            return found
        case AuthHeader(name, value):
            found[name.lower()] = header_value(name, value.filled(secrets.for_provider))
        case basic:
            user, password = (each.filled(secrets.for_provider) for each in (basic.user, basic.password))
            if ":" in user:
                raise BadHeader("the user name of basic authentication has a `:`")
            text = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
            secrets.also(text, "secret:(user and password)")
            found["authorization"] = header_value("Authorization", f"Basic {text}")
    return found


def _add_key(headers: Headers, ask: Ask, settings: HttpSettings) -> None:
    """The key by which the other side knows a repetition; of class `probe` the name that it will be asked for."""
    if ask.effect_class == "probe":
        if settings.probe is None:
            raise BadHeader(no_probe(settings))
        key = name_of(ask)
    elif ask.effect_class != "keyed":
        return
    elif ask.key is None:
        raise BadHeader("the step is of class `keyed`, and has no key")
    else:
        key = ask.key
    name, text = settings.key_header.lower(), key_text(key)
    if headers.get(name, text) != text:
        raise BadHeader(f"the node sets the header `{settings.key_header}` to something else than the key of its step")
    headers[name] = text


def _check_size(headers: Headers) -> None:
    size = sum(len(name) + len(value) + 4 for name, value in headers.items())
    if size > _MAX_HEADERS:
        raise BadHeader(f"the headers have {size:,} bytes in all, more than {_MAX_HEADERS:,}")


def _canonical(headers: Headers) -> Headers:
    """The names as most people write them; no server may care, and people read logs."""
    ours = {"User-Agent": "vesper", "Accept": "application/json"}
    return ours | {"-".join(part.capitalize() for part in name.split("-")): text for name, text in headers.items()}


# -- the body -------------------------------------------------------------------------------------


def _body(given: Value, settings: HttpSettings, secrets: SecretTexts) -> bytes:
    body = _with_secrets(given, secrets)
    if settings.body == "form":
        if not isinstance(body, dict):
            raise NotSent(f"`{settings.name}` takes forms, and the body is no object")
        fields: list[tuple[str, str]] = []
        _flatten("", body, fields)
        return "&".join(f"{quote_plus(name)}={quote_plus(text)}" for name, text in fields).encode("ascii")
    try:
        return exact_text(json_of(body)).encode("utf-8")
    except ValueProblem as problem:
        raise NotSent(f"the body is no JSON: {problem.kind}") from None


def _with_secrets(given: object, secrets: SecretTexts) -> object:
    """The values of a body with their references replaced; names of fields are left as they are."""
    match given:
        case str():
            return secrets.for_node(given)
        case list():
            return [_with_secrets(item, secrets) for item in given]
        case dict():
            return {name: _with_secrets(item, secrets) for name, item in given.items()}
        case _:
            return given


def _flatten(path: str, value: object, found: list[tuple[str, str]]) -> None:
    """Nested fields as forms have them: `items[0][id]`. Null has no form, and is left out."""
    match value:
        case None:
            return
        case dict():
            for name, item in value.items():
                if not name or "[" in name or "]" in name:
                    raise NotSent(f"the name `{ascii(name[:64])[1:-1]}` in the body cannot be one of a form")
                _flatten(f"{path}[{name}]" if path else name, item, found)
        case list():
            for index, item in enumerate(value):
                _flatten(f"{path}[{index}]", item, found)
        case _:
            assert isinstance(value, Scalar)
            found.append((path, scalar_text(value)))
            if len(found) > _MAX_PARTS:
                raise NotSent(f"the body has more than {_MAX_PARTS:,} fields, too many for a form")
