"""Texts of a model's elements: comments and intent of a node, and whether its logic tests for null."""

from __future__ import annotations

import html
import re

from vesper.importers.dmn import model as dmn


def notes(decision: dmn.Decision) -> tuple[str, ...]:
    """Return the comment of a decision: its name, its question and its FEEL text."""
    notes = [f"Decision `{' '.join(decision.name.split())}`"]
    if decision.question:
        notes.append(" ".join(html.unescape(re.sub(r"<[^>]*>", " ", decision.question)).split())[:200])
    if isinstance(decision.logic, dmn.Literal):
        notes += [f"  {line}" for line in excerpt_lines(decision.logic.text)]
    return tuple(notes)


def intent_of(text: str, name: str, kind: str) -> str:
    text = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())[:200]
    return text or f"Evaluate the {kind} {' '.join(name.split())}"


def excerpt_lines(text: str) -> list[str]:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return [line[:160] for line in lines[:12]] + (["…"] if len(lines) > 12 else [])


_TESTS_NULL = re.compile(r"!?=\s*null\b|\bnull\s*!?=|\bin\s*\(?\s*null\b")


def mentions_null(box: object) -> bool:
    stack = [box]
    while stack:
        part = stack.pop()
        if isinstance(part, list | tuple):
            stack.extend(part)
        elif isinstance(part, dmn.Literal):
            if _TESTS_NULL.search(part.text):
                return True
        elif isinstance(part, dmn.TableRule):
            if any(re.search(r"\bnull\b", cell.text) for cell in part.inputs):
                return True
            stack.extend(part.outputs)
        else:
            slots = getattr(type(part), "__slots__", ())
            stack.extend(getattr(part, slot) for slot in slots if slot != "model")
    return False
