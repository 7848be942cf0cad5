"""Diagnostics in the Static Analysis Results Interchange Format, SARIF 2.1.0, for code hosts.

All codes are listed as rules, so that a result's `ruleIndex` means the same in every log of one version. Only safe
fixes are included, because the format cannot mark a fix as unconfirmed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import Diagnostic, Label
from vesper.language.diagnostics.explanations import EXPLANATIONS
from vesper.language.diagnostics.fix import Fix, Safety
from vesper.language.diagnostics.source import SourceFile, Span

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_RULE_INDEX = {code: index for index, code in enumerate(Code)}


def render_sarif(found: Iterable[tuple[SourceFile, Diagnostic]], version: str) -> dict[str, Any]:
    """Return the log of one run of this version of Vesper."""
    driver = {"name": "vesper", "version": version, "rules": [_rule(code) for code in Code]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(source, diagnostic) for source, diagnostic in found],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: Code) -> dict[str, Any]:
    return {
        "id": code.number,
        "name": code.title,
        "shortDescription": {"text": code.outline},
        "fullDescription": {"text": EXPLANATIONS[code.number].text},
    }


def _result(source: SourceFile, diagnostic: Diagnostic) -> dict[str, Any]:
    lines = [diagnostic.headline, *([f"help: {diagnostic.help}"] if diagnostic.help else [])]
    result: dict[str, Any] = {
        "ruleId": diagnostic.code.number,
        "ruleIndex": _RULE_INDEX[diagnostic.code],
        "level": diagnostic.severity.value,
        "message": {"text": "\n".join(lines)},
        "locations": [_location(source, diagnostic.primary)],
    }
    if diagnostic.secondary:
        result["relatedLocations"] = [_location(source, label) for label in diagnostic.secondary]
    if diagnostic.fix is not None and diagnostic.fix.safety is Safety.SAFE:
        result["fixes"] = [_fix(source, diagnostic.fix)]
    return result


def _location(source: SourceFile, label: Label) -> dict[str, Any]:
    place = {"artifactLocation": _artifact(source), "region": _region(source, label.span)}
    location: dict[str, Any] = {"physicalLocation": place}
    if label.text:
        location["message"] = {"text": label.text}
    return location


def _artifact(source: SourceFile) -> dict[str, str]:
    path = PurePath(source.path)
    return {"uri": path.as_uri() if path.is_absolute() else quote(path.as_posix())}


def _region(source: SourceFile, span: Span) -> dict[str, int]:
    line, column = source.position(span.start)
    end_line, end_column = source.position(span.end)
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def _fix(source: SourceFile, fix: Fix) -> dict[str, Any]:
    replacements = [
        {"deletedRegion": _region(source, edit.span), "insertedContent": {"text": edit.replacement}}
        for edit in fix.edits
    ]
    change = {"artifactLocation": _artifact(source), "replacements": replacements}
    return {"description": {"text": fix.description}, "artifactChanges": [change]}
