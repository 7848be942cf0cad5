"""Syntax tree of test cases and of properties. Properties are claims over runs of the node, which only tests check."""

from __future__ import annotations

from dataclasses import dataclass

from vesper.language.syntax import ast
from vesper.language.syntax.yaml_tree import Scalar, Tree


@dataclass(frozen=True, slots=True)
class CaseEffect:
    """One request that a case expects, with its completion."""

    step: ast.Word
    request: tuple[tuple[ast.Word, Tree], ...]
    returns: Tree | None
    fails: ast.Word | None


@dataclass(frozen=True, slots=True)
class TestCase:
    """A test case: inputs, and the expected outputs, declared error, failure or broken clause."""

    name: ast.Word
    inputs: tuple[tuple[ast.Word, Tree], ...]
    expect: tuple[tuple[ast.Word, Tree], ...]
    breaks: ast.Word | None
    error: tuple[tuple[ast.Word, Tree], ...] | None = None
    fails: ast.Word | None = None
    now: Scalar | None = None
    effects: tuple[CaseEffect, ...] = ()


@dataclass(frozen=True, slots=True)
class Property:
    """A claim over one or two runs of the node."""

    name: ast.Word
    given: tuple[tuple[ast.Word, Tree], ...]
    varied: tuple[ast.Word, ...] | None
    """Inputs that differ between two runs; None for a claim over one run."""
    where: ast.Expression | None
    holds: ast.Expression
