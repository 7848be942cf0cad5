"""What `vesper explain` says: every code has a text, a node that shows it and the same node repaired."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tests.support.nodes import ROOT
from vesper.cli.explain.command import command, explanation
from vesper.compiler import compile_source
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.explanations import EXPLANATIONS
from vesper.language.diagnostics.source import SourceFile
from vesper.values.generated.error_meanings import ERROR_MEANINGS
from vesper.values.generated.errors import ErrorCode

WITH_EXAMPLES = [code for code in Code if EXPLANATIONS[code.number].no_example is None]
PAGE = (ROOT / "docs" / "reference" / "diagnostics.md").read_text(encoding="utf-8")


def by_name(code: Code) -> str:
    return code.title


def reported(text: str | None) -> set[Code]:
    assert text is not None
    _, bag = compile_source(SourceFile("example.vsp", text))
    return {diagnostic.code for diagnostic in bag.sorted(notes=True)}


def test_the_codes_and_the_explanations_are_the_same_list() -> None:
    assert set(EXPLANATIONS) == {code.number for code in Code}


def test_only_what_no_text_can_show_has_no_example() -> None:
    # A file that is no text, one that is too long to be read, and what is not about the text of one file.
    without = {"unreadable-file", "not-a-node", "too-large", "file-name", "duplicate-node", "duplicate-route"}
    without |= {"unknown-node", "dependency-cycle", "version-conflict", "bad-lock", "wrong-callee"}
    without |= {"unknown-library", "wrong-library", "is-a-library", "not-inlined"}
    assert {code.title for code in set(Code) - set(WITH_EXAMPLES)} <= without


@pytest.mark.parametrize("code", WITH_EXAMPLES, ids=by_name)
def test_the_bad_node_has_this_diagnostic_and_no_other(code: Code) -> None:
    assert reported(EXPLANATIONS[code.number].bad) == {code}


@pytest.mark.parametrize("code", WITH_EXAMPLES, ids=by_name)
def test_the_good_node_has_none(code: Code) -> None:
    found = reported(EXPLANATIONS[code.number].good)
    # The remedy of a release without a reason is one with a reason, which has its note.
    assert found <= ({Code.RELEASED_VALUE} if code is Code.RELEASE_WITHOUT_REASON else set())


@pytest.mark.parametrize("code", Code, ids=by_name)
def test_a_text_is_two_to_five_sentences(code: Code) -> None:
    sentences = re.findall(r"\.(?=\s|$)", re.sub(r"`[^`]*`", "", EXPLANATIONS[code.number].text))
    assert 2 <= len(sentences) <= 5


@pytest.mark.parametrize("code", Code, ids=by_name)
def test_a_headline_is_lower_case_without_a_full_stop(code: Code) -> None:
    assert code.headline[0] == code.headline[0].lower()
    assert not code.headline.endswith(".")


@pytest.mark.parametrize("code", Code, ids=by_name)
def test_the_reference_has_the_same(code: Code) -> None:
    about = EXPLANATIONS[code.number]
    _, found, section = PAGE.partition(f"\n### {code.number} {code.title}\n")
    assert found
    section = section.partition("\n### ")[0]
    for part in (code.outline, about.text, about.bad, about.good, about.no_example):
        assert part is None or part in section


@pytest.mark.parametrize("code", WITH_EXAMPLES, ids=by_name)
def test_an_explanation_shows_both_nodes_and_what_vesper_says(code: Code) -> None:
    shown = explanation(code)
    about = EXPLANATIONS[code.number]
    assert about.bad is not None
    assert about.good is not None
    for line in (*about.bad.splitlines(), *about.good.splitlines()):
        assert f"    {line}\n" in shown + "\n"
    assert f"[{code.number}]: " in shown
    assert " ".join(about.text.split()) in " ".join(shown.split())


@pytest.mark.parametrize("spelling", ["VSP1102", "vsp1102", "1102", "unknown-name", "Unknown_Name", " 1102 "])
def test_a_code_can_be_spelt_in_several_ways(spelling: str) -> None:
    done = CliRunner().invoke(command, [spelling])
    assert done.exit_code == 0
    assert done.stdout.startswith("VSP1102 unknown-name: ")


@pytest.mark.parametrize(
    "spelling, meant",
    [("unkown-name", "`unknown-name`"), ("VSP0019", "`VSP0010`"), ("0019", "`VSP0010`"), ("nonsense-at-all", None)],
)
def test_an_unknown_code_is_a_usage_error(spelling: str, meant: str | None) -> None:
    done = CliRunner().invoke(command, [spelling])
    assert done.exit_code == 2
    assert f"unknown diagnostic `{spelling}`" in done.stderr
    assert ("did you mean" in done.stderr) == (meant is not None)
    assert meant is None or meant in done.stderr


@pytest.mark.parametrize("failure", [*ErrorCode, "http_402"])
def test_a_failure_of_a_run_is_explained(failure: str) -> None:
    done = CliRunner().invoke(command, [failure])
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith(f"{failure}: a failure of a run\n")
    assert ERROR_MEANINGS.get(failure, "The HTTP status is 402.") in " ".join(done.stdout.split())
    assert (f"{failure}: {{value: …}}" in done.stdout) == (failure != "bad_input")


def test_a_failure_named_like_a_diagnostic_names_it() -> None:
    failure, diagnostic = (CliRunner().invoke(command, [word]).stdout for word in ("too_large", "too-large"))
    assert "VSP0020" in failure
    assert "`range`" in failure
    assert diagnostic.startswith("VSP0020 too-large: ")


def test_a_misspelt_failure_is_suggested() -> None:
    assert "did you mean `division_by_zero`?" in CliRunner().invoke(command, ["divison_by_zero"]).stderr


def test_without_a_code_all_are_listed() -> None:
    done = CliRunner().invoke(command, [])
    assert done.exit_code == 0
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [[code.number, code.title] for code in Code]


@pytest.mark.parametrize("arguments", [["--help"], ["explain"]])
def test_the_texts_are_loaded_only_when_one_is_shown(arguments: list[str]) -> None:
    program = (
        "import sys\nfrom vesper.cli.main import vesper\n"
        f"vesper({arguments!r}, standalone_mode=False)\n"
        "sys.exit('vesper.language.diagnostics.explanations' in sys.modules or 'yaml' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True)
