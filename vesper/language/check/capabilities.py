"""Check of requested capabilities against those that steps and called nodes use.

Entries of `denied_capabilities` take precedence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.source import Span
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.syntax import ast
from vesper.values.generated.capabilities import CAPABILITIES

_TARGET = re.compile(r"[a-zA-Z0-9_*][a-zA-Z0-9_.-]*|\*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Need:
    """A capability that a step or called node needs."""

    capability: str
    span: Span
    who: str


def check_capabilities(needs: list[Need], security: ast.Security, bag: DiagnosticBag) -> None:
    """Report capabilities that are denied, missing, malformed or unused."""
    required = [word for word in security.required if _is_capability(word, bag, is_whole=True)]
    denied = [word for word in security.denied if _is_capability(word, bag, is_whole=False)]
    seen: set[str] = set()
    for need in needs:
        also: tuple[Label, ...] = ()
        denying = next((word for word in denied if _denies(word.text, need.capability)), None)
        if denying is not None:
            also = (Label(denying.span, "denied here"),)
            capability, who = need.capability, need.who
            bag.error(Code.DENIED_CAPABILITY, need.span, also=also, capability=capability, who=who)
        elif not any(_covers(word.text, need.capability) for word in required) and need.capability not in seen:
            seen.add(need.capability)
            help_ = f"add `- {need.capability}` to `capabilities_required` under `security`"
            close = did_you_mean(need.capability, [word.text for word in required])
            also = () if security.span is None else (Label(security.span, "not in this list"),)
            bag.error(Code.MISSING_CAPABILITY, need.span, also=also, capability=need.capability, help=close or help_)
    if bag.has_errors:
        return  # a faulty step may need a capability that seems unused
    calls_provider = any(need.capability.startswith("network.http_client.") for need in needs)
    for word in required:
        if calls_provider and word.text.startswith("secrets.read."):
            continue  # credentials of a provider; the configuration names them
        if not any(_covers(word.text, need.capability) for need in needs):
            bag.warning(Code.UNUSED_CAPABILITY, word.span, capability=word.text)


def _is_capability(word: ast.Word, bag: DiagnosticBag, is_whole: bool) -> bool:
    parts = word.text.split(".", 2)
    head = ".".join(parts[:2])
    is_known = head in CAPABILITIES or (not is_whole and any(name.startswith(f"{head}.") for name in CAPABILITIES))
    if is_known and ((len(parts) == 3 and _TARGET.fullmatch(parts[2])) or (len(parts) < 3 and not is_whole)):
        return True
    help_ = (
        did_you_mean(head, CAPABILITIES) if not is_known else "write `resource.operation.target`, `*` for all targets"
    )
    bag.error(Code.BAD_CAPABILITY, word.span, capability=word.text, help=help_)
    return False


def _covers(granted: str, needed: str) -> bool:
    return granted == needed or (granted.endswith(".*") and needed.startswith(granted[:-1]))


def _denies(denied: str, needed: str) -> bool:
    return needed == denied or needed.startswith(f"{denied.removesuffix('.*')}.")
