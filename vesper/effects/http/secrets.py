"""Secrets in requests: references are replaced when a request is made, and put back into every text that leaves it.

There are two spellings, because there are two authors. A node holds the value of a `secret` step, a reference that
this execution alone has, and puts it into its headers and body. A configuration writes a template,
`Bearer {secret:NAME}`. A text that looks like either and came from anywhere else stays a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from vesper.effects.performer import EffectFailed
from vesper.effects.secrets.encoded_forms import forms_of, holds_any
from vesper.values.strict_json import has_surrogate

_NAME = r"[a-z][a-z0-9_.-]*"
_HOLE = re.compile(rf"\{{secret:({_NAME})\}}", re.ASCII)
_SHORTEST = 4
"""Secrets shorter than this are not looked for in messages: half of any text would be blacked out, and nothing of a
secret so short would be kept from anybody who can guess."""

Resolver = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Template:
    """A text of the configuration: what stands between the holes, and the names of secrets in the holes."""

    texts: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> Template:
        """Raises `ValueError` where a brace belongs to no `{secret:NAME}`."""
        parts = _HOLE.split(text)
        template = cls(tuple(parts[::2]), tuple(parts[1::2]))
        if any("{" in each or "}" in each for each in template.texts):
            raise ValueError("braces are only for secrets: `{secret:NAME}`, with a name in lower case")
        return template

    def filled(self, secret: Resolver) -> str:
        values = [secret(name) for name in self.names]
        return "".join(part for pair in zip(self.texts, [*values, ""], strict=True) for part in pair)


class SecretTexts:
    """The secrets that one request uses: those that the execution may use, and those of the configuration."""

    def __init__(self, of_node: Resolver, of_provider: Resolver, references: Mapping[str, str]) -> None:
        self._of_node = of_node
        self._of_provider = of_provider
        self._references = references
        longest_first = sorted(references, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if references else None
        self._forms: dict[str, str] = {}
        """Every way in which a secret may stand in a message, to its reference."""
        self._used: set[str] = set()

    def for_node(self, text: str) -> str:
        """A node's text with the secrets in place of their references."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: self._resolved(self._of_node, self._references[found[0]]), text)

    def is_named_in(self, text: str) -> bool:
        """Whether a node's text has a reference in it, as it is or percent-encoded."""
        return any(each in text or each in unquote(text) for each in self._references)

    def stand_in(self, value: object) -> bool:
        """Whether a value that came back has a secret in it that was sent."""
        return holds_any(value, self._used)

    def for_provider(self, name: str) -> str:
        return self._resolved(self._of_provider, name)

    def also(self, text: str, reference: str) -> None:
        """A text that was made of secrets and must be kept as they are."""
        self._used.add(text)
        if len(text) >= _SHORTEST:
            for form in forms_of(text):
                self._forms[form] = reference

    def redacted(self, text: str) -> str:
        """The text with references in place of the secrets."""
        for form in sorted(self._forms, key=len, reverse=True):
            text = text.replace(form, self._forms[form])
        return text

    def _resolved(self, resolver: Resolver, name: str) -> str:
        try:
            text = resolver(name)
        except EffectFailed as failed:
            # `not_found` is no code of an HTTP request: to the node, nothing was let out.
            # One that may not be used here may never be; one whose source is away may be there later.
            code = "invalid_argument" if failed.code == "not_found" else "unavailable"
            raise EffectFailed(code, f"nothing was sent: {failed.message}") from None
        if has_surrogate(text):
            raise EffectFailed("unavailable", f"nothing was sent: the secret `{name}` is no valid text")
        self.also(text, f"secret:{name}")
        return text
