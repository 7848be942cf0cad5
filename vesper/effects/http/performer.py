"""The effect `http_request`: a request to a configured provider, and the body of its answer.

In: an `Ask`. Out: the value, or `EffectFailed`. The parts: `http_request` says what is sent (and refuses what must not
be), `http_transport` sends it, `http_answer` says what came back. Here is what joins them: the clock of the attempt,
redirects, and that no secret stands in a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote, unquote_plus

from vesper.effects.http.request import NotSent, Outgoing, probe_of, request_of
from vesper.effects.http.response import Answer, BadResponse, failure_of, value_of
from vesper.effects.http.secrets import SecretTexts
from vesper.effects.http.settings import HttpSettings
from vesper.effects.http.url import BadUrl, Origin, redirected, shown_url
from vesper.effects.performer import NOT_DONE, Ask, EffectFailed, no_secret
from vesper.effects.settings import ConfigError

if TYPE_CHECKING:
    from vesper.effects.http.connection import Resolve
    from vesper.effects.http.transport import Transport

__all__ = ["HttpPerformer", "HttpSettings"]

_MAX_HOPS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_ACTED = (301, 302, 303)
_NOT_THERE = (404, 410)


class HttpPerformer:
    """Performs `http_request` for the providers that are configured."""

    def __init__(
        self,
        settings: Mapping[str, HttpSettings],
        secret: Callable[[str], str] = no_secret,
        resolve: Resolve | None = None,
    ) -> None:
        """`secret` gives the secrets that the configuration names; `resolve` looks up names otherwise than the system
        does. Raises `ConfigError`."""
        try:
            from vesper.effects.http.connection import look_up
            from vesper.effects.http.transport import Transport
        except ModuleNotFoundError as missing:
            problem = f"providers need the package `{missing.name}`: pip install 'vesper[http]'"
            raise ConfigError("providers", problem) from None
        self._secret = secret
        self.on_answer: Callable[[Ask, int], None] | None = None
        """Told of the status of each answer to a request, for somebody who watches."""
        self._transports = {name: Transport(each, resolve or look_up) for name, each in settings.items()}

    def perform(self, ask: Ask) -> object:
        exchange = self._exchange(ask)
        with exchange.redacting():
            answer = exchange.answer(request_of(ask, exchange.settings, exchange.secrets))
            if self.on_answer is not None:
                self.on_answer(ask, answer.status)
            if not answer.is_good:
                raise exchange.failure(answer)
            return exchange.value(answer)

    def probe(self, ask: Ask) -> object:
        exchange = self._exchange(ask)
        with exchange.redacting():
            outgoing = probe_of(ask, exchange.settings, exchange.secrets)
            assert exchange.settings.probe is not None, "otherwise there is no request"
            answer = exchange.answer(outgoing)
            if answer.status == exchange.settings.probe.found_status:
                return exchange.value(answer)
            if answer.status in _NOT_THERE:
                return NOT_DONE
            raise exchange.failure(answer)

    def close(self) -> None:
        for each in self._transports.values():
            each.close()

    def _exchange(self, ask: Ask) -> _Exchange:
        provider = ask.fixed["provider"]
        transport = self._transports.get(provider)
        if transport is None:
            raise NotSent(
                f"no provider `{provider[:64]}` is configured: add `[providers.{provider[:64]}]`", "unavailable"
            )
        return _Exchange(ask, transport, SecretTexts(ask.secret, self._secret, ask.references or {}))


class _Exchange:
    """One attempt at one request: its clock, its secrets, and the redirects that it follows."""

    def __init__(self, ask: Ask, transport: Transport, secrets: SecretTexts) -> None:
        from vesper.effects.http.connection import Attempt

        self.settings = transport.settings
        self.secrets = secrets
        self._ask = ask
        self._transport = transport
        self._has_acted = False
        """True where a redirect said so: after a POST, 303 and often 301 and 302 mean that it is done."""
        self._attempt = Attempt(self.settings.timeout if ask.timeout is None else max(0.0, ask.timeout))

    @contextmanager
    def redacting(self) -> Iterator[None]:
        """Whatever fails inside says so without a secret."""
        try:
            yield
        except EffectFailed as failed:
            raise EffectFailed(
                failed.code,
                self.secrets.redacted(failed.message),
                retry_after=failed.retry_after,
                may_have_happened=failed.may_have_happened or self._has_acted,
            ) from None

    def value(self, answer: Answer) -> object:
        found = value_of(answer, self._ask.gives, self.settings.name, self.secrets.redacted)
        if self.secrets.stand_in(found):
            # Kept, it would be in the journal, in the outputs, and in whatever the node does with them.
            raise BadResponse(f"the answer of `{self.settings.name}` has a secret in it that was sent there")
        return found

    def failure(self, answer: Answer, note: str = "") -> EffectFailed:
        return failure_of(answer, self.settings.name, self.settings.retry_after_max, self.secrets.redacted, note)

    def answer(self, outgoing: Outgoing) -> Answer:
        """The answer, after the redirects that the settings let us follow."""
        from vesper.effects.http.connection import AddressRefused

        try:
            answer = self._transport.exchange(outgoing, self._attempt)
        except AddressRefused as refused:
            raise NotSent(str(refused), "unavailable") from None
        for _ in range(_MAX_HOPS):
            if answer.status not in _REDIRECTS:
                return answer
            self._has_acted |= answer.status in _ACTED and outgoing.method not in ("GET", "HEAD")
            try:
                if self._names_a_secret(answer):
                    raise BadUrl("a redirect to a URL with a secret in it is not followed")
                outgoing = _followed(outgoing, answer, self.settings)
                answer = self._transport.exchange(outgoing, self._attempt)
            except (BadUrl, AddressRefused) as refused:
                raise self.failure(answer, str(refused)) from None
        if answer.status in _REDIRECTS:
            raise self.failure(answer, f"more than {_MAX_HOPS} redirects")
        return answer

    def _names_a_secret(self, answer: Answer) -> bool:
        location = answer.headers.get("location", "")
        # Servers encode what they must and leave the rest: decoded, every mixture of the two is the same.
        return any(
            self.secrets.redacted(text) != text for text in (location, unquote(location), unquote_plus(location))
        )


def _followed(outgoing: Outgoing, answer: Answer, settings: HttpSettings) -> Outgoing:
    """The request that a redirect asks for, where the settings allow it. Raises `BadUrl`."""
    location = answer.headers.get("location")
    if location is None:
        raise BadUrl("a redirect without a `Location`")
    if settings.redirects == "none":
        raise BadUrl(f"redirects of this provider are not followed (`redirects`): {shown_url(location)}")
    url = redirected(outgoing.url, location)
    origin, here = url.origin, outgoing.url.origin
    if here.is_secure and not origin.is_secure:
        raise BadUrl(f"a redirect from https to http is not followed: {shown_url(location)}")
    is_same = origin == here or _is_upgrade(here, origin)
    if not is_same and settings.redirects == "same_host":
        raise BadUrl(f"a redirect to another host is not followed (`redirects`): {origin}")
    if not is_same and (origin.host, origin.port) not in [(each.host, each.port) for each in settings.allowed]:
        raise BadUrl(f"a redirect to {origin} is not followed: it is none of `allowed_hosts`")
    is_simple = outgoing.method in ("GET", "HEAD") and outgoing.body is None
    if not is_same:
        if not is_simple:
            raise BadUrl(f"a {outgoing.method} is not sent to another host: {origin}")
        return outgoing.without_credentials(url)
    if answer.status == 303:
        return outgoing.as_get(url)
    if answer.status in (301, 302) and not is_simple:
        # Some clients send it again, some make a GET of it: nobody knows which of the two is meant.
        raise BadUrl(f"a {outgoing.method} is not redirected by a status {answer.status}, only by 303, 307 or 308")
    return outgoing.to(url)


def _is_upgrade(here: Origin, there: Origin) -> bool:
    return here.host == there.host and (here.scheme, here.port, there.scheme, there.port) == ("http", 80, "https", 443)
