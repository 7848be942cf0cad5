"""Check of requested capabilities against those that steps and called nodes use.

Entries of `denied_capabilities` take precedence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from vesper.language.diagnostics.capability_words import covers, denies, is_word, nearest_word
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.source import Span
from vesper.language.diagnostics.suggest import suggestions
from vesper.language.syntax import ast

FUNCTION = "database.function."
"""Capabilities of SQL functions and types begin with this."""


@dataclass(frozen=True, slots=True)
class Need:
    """A capability that a step or called node needs."""

    capability: str
    span: Span
    who: str
    chain: tuple[str, ...] = ()
    """Called nodes that lead to the use, the called one first."""


def check_capabilities(needs: list[Need], security: ast.Security, bag: DiagnosticBag) -> None:
    """Report capabilities that are denied, missing, malformed or unused."""
    required = [word for word in security.required if _check_capability(word, bag, is_whole=True)]
    denied = [word for word in security.denied if _check_capability(word, bag, is_whole=False)]
    # Reported already: malformed entries of the list, and below the first need of a missing one.
    seen = {word.text.strip() for word in security.required if word not in required}
    for need in needs:
        also: tuple[Label, ...] = ()
        denying = next((word for word in denied if denies(word.text, need.capability)), None)
        if denying is not None:
            also = (Label(denying.span, "denied here"),)
            capability, who = need.capability, need.who
            bag.error(Code.DENIED_CAPABILITY, need.span, also=also, capability=capability, who=who)
        elif not any(covers(word.text, need.capability) for word in required) and need.capability not in seen:
            seen.add(need.capability)
            help_ = f"add `- {need.capability}` to `capabilities_required` under `security`"
            if security.span is None and re.search(r"^security:", bag.source.text, re.MULTILINE) is None:
                listed = ", ".join(dict.fromkeys(each.capability for each in needs))
                help_ = f"add `security: {{capabilities_required: [{listed}]}}` to the node, in the first column"
            if len(need.chain) > 1:
                help_ += f"; it is used through {' → '.join(need.chain)}"
            close = suggestions(need.capability, [word.text for word in required])
            if close:
                help_ += f"; if the list means this one, write it in place of `{close[0]}`"
            also = () if security.span is None else (Label(security.span, "not in this list"),)
            if need.capability.startswith(FUNCTION):
                name, help_ = need.capability.removeprefix(FUNCTION), f"{help_}, and grant it in vesper.toml"
                bag.error(Code.SQL_FUNCTION, need.span, also=also, name=name, help=help_)
                continue
            bag.error(Code.MISSING_CAPABILITY, need.span, also=also, capability=need.capability, help=help_)
    if bag.has_errors:
        return  # a faulty step may need a capability that seems unused
    calls_provider = any(need.capability.startswith("network.http_client.") for need in needs)
    for word in required:
        if calls_provider and word.text.startswith("secrets.read."):
            continue  # credentials of a provider; the configuration names them
        if not any(covers(word.text, need.capability) for need in needs):
            bag.warning(Code.UNUSED_CAPABILITY, word.span, capability=word.text)


def _check_capability(word: ast.Word, bag: DiagnosticBag, is_whole: bool) -> bool:
    if is_word(word.text, takes_wildcards=False, takes_prefix=not is_whole):
        return True
    is_padded = word.text != word.text.strip()
    help_ = "remove the white space around it" if is_padded else f"did you mean `{nearest_word(word.text)}`?"
    bag.error(Code.BAD_CAPABILITY, word.span, capability=word.text, help=help_)
    return False
