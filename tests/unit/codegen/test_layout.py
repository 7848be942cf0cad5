"""The layout of generated Python is the one that a formatter would give it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import libcst as cst
import pytest

from tests.support.nodes import ROOT, compiled_text
from vesper.codegen.layout.lines import WIDTH, write_source
from vesper.codegen.module import generate_module
from vesper.verify.programs.nodes import draw_program

ALONE = ("--isolated", "--line-length", str(WIDTH), "--target-version", "py311")


def ruff(*arguments: str | Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ruff", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, input=given, capture_output=True, text=True, check=False)


def test_random_nodes_are_formatted(tmp_path: Path) -> None:
    for seed in range(20_261_115, 20_261_115 + 60):
        text = generate_module(compiled_text(draw_program(seed).text()).node).text
        (tmp_path / f"program_{seed}.py").write_text(text, encoding="utf-8")
    done = ruff("format", "--diff", "--no-cache", *ALONE, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "60 files already formatted" in done.stderr


A, B, C, D = ("a" * 30, "b" * 30, "c" * 30, "d" * 30)
STATEMENTS = [
    f"x = {A}({B}, {C}, {D})",
    f"x = {A}({B}, [{C}, {D}], key=lambda x: x)",
    f"x = {A}({B}({C}({D}, {A}, {B}, {C})))",
    f"x = {A}({B} for {B} in {C} if {D})",
    f"x = [{A} for {B}, {C} in {C} if {D} and {A}]",
    f"x = [{{'key': {A}, 'other': {B}, 'third': {C}}} for y in {D}]",
    f"x = [y for {B} in {C} for y in [{D} + {A}] if y]",
    f"x = {{'key': {A} if {B} else {C}, 'other': {D} and {A}}}",
    f"x = {A} + {B} + {C} + {D}",
    f"x = (y := b'{A}{B}{C}{D}', {A})",
    f"x = ({A} := {B}({C}, {D}, {A}), {B})",
    f"x = (y := {A}{A} + {B}{B}, {C})",
    f"x = {A} * {B} + {C} * {D} - {A}",
    f"x = ({A} + {B}) * ({C} - {D} - {A}) * 2",
    f"x = {A}({B}) + {C}({D}, {A})",
    f"x = {A} + {C}({D}, {A}, {B})",
    f"x = {A} if {B} else {C} if {C} else {D}",
    f"x = {A} if {B}({C}, {D}) and {A}({B}) else {D}({A})",
    f"x = not {A} and ({B} or {C}) and {D} == {A}",
    f"x = {A} == {B}({C}, {D}, {A})",
    f"x = {A}({B}, {C}, {D})['key']",
    f"x = {A}['{B}']['{C}']['{D}']",
    f"x = {A}['{B}'] == {A}['{B}'] + {C}['{D}']",
    f"x = [{A} for {B} in [{C}, {D}, {A}]][0]",
    f"x = -{A}({B}, {C}, {D})",
    f"x = {A * 4}",
    f"x = {A * 2}({B})['{C}']",
    f"x = '{A * 4}'",
    f"x: list[{A}] = [{B}, {C}, {D}]",
    f"x: dict[str, list[{A}]] = {B}({C}, {D})",
    f"x: Final[frozenset[Literal['{A}', '{B}']]] = frozenset({{'{C}'}})",
    f"x: {A} | None = {B} if {C} else {D}",
    f"x: Literal['{A}', '{B}', '{C}', '{D}']",
    f"x, y, z = {A}, {B}({C}), {D}",
    f"return {{'a': {A}, 'b': {B}, 'c': {C}}}",
    f"return {A} and {B} and {C} and {D}",
    f"raise {A}('{B}', 0, {{'{C}': {C}, '{D}': {D}}})",
    f"raise {A}({{'{C}': {C}, '{D}': {D}}}) from {B}",
    f"if not ({A} == {B} and {C} in {D} or {A}): pass",
    f"if not {A}({B}) == {C}({D}): pass",
    f"if {A} is not None and {B}['key'] != {C}({D}): pass",
    f"while {A}({B} for {C} in {D} if {A}): pass",
    f"for {A}, {B} in {C}({D}, {A}): pass",
    f"x = yield {A}({B}, {C}, {D})",
    f"x = mark(1, (yield {A}({B}, {C}, {D})))",
    f"x = yield from {A}({B}, {C}, key={D})",
    f"x = {A}(lambda y, z: {B}(y) + {C}(z) + {D}, {A})",
    f"x = {A}(lambda y: {B}(y, {C}, {D}, {A}), {A})",
    f"x = {A}(lambda y: [{B}, {C}, {D}, {A}], {A})",
    f"x = {A}(lambda y: y if {B} and {C} else {D} if {D} else {A}, {A})",
    f"x = {A}(lambda y: not ({B} and {C} and {D}), {A})",
    f"x = {A}(lambda {D}: {B}({C}['{A}']), {A})",
    f"x = {A}(lambda {D}: -{B}({C}['{A}']), {A})",
    f"x = {A}(lambda {D}: {C}[{A}['{A}']], {A})",
    f"x = {A}(lambda {D}: {C * 3}, {A})",
    f"x = {A}(lambda {D}: lambda {C}: {A}({B}, {C}), {A})",
    f"x = {A}(only=[{B}, {C}, {D}])",
    f"x = {{'only': {A}({B} and {C} and {D})}}",
    f"x = [({A} if {B} else {C}) if {D} else {A} for {B} in {C}]",
    f"x = {{'{A}': {{'{B}': {B}, '{C}': {C}, '{D}': {D}}}, 'x': []}}",
    f"x = sum(({A}['key'] for {A} in {B} if {C}), {D}) == {A}",
    f"x = len([{A} for {A} in {B} if {C} == {D} or {A} > {B}])",
    f"x = ({A} and {B}) or ({C} and {D}) or {A}({B})",
    "x = ('aaa',)",
    f"x = {A} if ({B} := {C}({D}, {A})) is None else {B}",
    f"x = {A}(({B} := {C} + {D} + {A}), {A})",
    f"x = ({A} := {B} - {C}, {D} if {C} == {B} else {A})[1]",
    f"if not {A} <= {B} <= {C} < {D}: pass",
    f"x = {A} and {B} < {C} <= {D} and {A}",
    f"x = ('{A}', '{B}', '{C}')",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_is_laid_out_as_the_formatter_does(statement: str) -> None:
    flat = f"def f():\n    {statement.replace(': pass', f':{chr(10)}        pass')}\n"
    formatted = ruff("format", "--stdin-filename", "x.py", *ALONE, "-", given=flat.replace("'", '"'))
    assert formatted.returncode == 0, formatted.stderr
    quoted = cst.parse_module(flat.replace("'", '"'))
    assert write_source(quoted)[0] == formatted.stdout
