"""Nodes of models: names, steps, functions, tables, cases, and what is not translated."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.unit.importers.dmn.models import (
    import_one,
    input_data,
    literal_decision,
    output_json,
    require,
    run_node,
    write_model,
)
from vesper.cli.main import vesper
from vesper.importers.dmn.importing import import_file
from vesper.importers.dmn.xml_reader import XmlProblem, parse_xml

TABLE = """
<decision name="Approval Status" id="approval"><variable name="Approval Status" typeRef="string"/>
  <informationRequirement><requiredInput href="#Applicant Age"/></informationRequirement>
  <decisionTable hitPolicy="{hit}">
    <input label="age"><inputExpression typeRef="number"><text>Applicant Age</text></inputExpression></input>
    <output name="status" typeRef="string"/>
    <rule><inputEntry><text>{first}</text></inputEntry><outputEntry><text>"Approved"</text></outputEntry></rule>
    <rule><inputEntry><text>{second}</text></inputEntry><outputEntry><text>"Declined"</text></outputEntry></rule>
  </decisionTable>
</decision>"""


def table_model(path: Path, hit: str, first: str, second: str) -> Path:
    first, second = first.replace("<", "&lt;"), second.replace("<", "&lt;")
    return write_model(
        path / "m.dmn", input_data("Applicant Age", "number") + TABLE.format(hit=hit, first=first, second=second)
    )


def test_a_table_stays_a_table_with_its_names(tmp_path: Path) -> None:
    node = import_one(table_model(tmp_path, "UNIQUE", "[18..65)", "< 18"), "Approval Status")
    assert 'applicant_age: {type: decimal, as: "Applicant Age"}' in node.text
    assert '- {in: {applicant_age: "[18..65)"}, then: "\'Approved\'"}' in node.text
    assert "# Decision `Approval Status`" in node.text
    for age, status in ((20, "Approved"), (17, "Declined"), (70, None)):
        assert output_json(node, run_node(node, {"applicant_age": Decimal(age)})) == status


def test_overlapping_rows_of_a_unique_table_are_null_as_in_dmn(tmp_path: Path) -> None:
    node = import_one(table_model(tmp_path, "UNIQUE", ">= 18", "< 20"), "Approval Status")
    assert "decision_table" not in node.text
    values = [output_json(node, run_node(node, {"applicant_age": Decimal(age)})) for age in (17, 19, 21)]
    assert values == ["Declined", None, "Approved"]


@pytest.mark.parametrize("hit, expected", [("FIRST", "Approved"), ("RULE ORDER", ["Approved", "Declined"])])
def test_hit_policies_of_overlapping_rows(hit: str, expected: object, tmp_path: Path) -> None:
    node = import_one(table_model(tmp_path, hit, ">= 18", "< 20"), "Approval Status")
    if hit == "RULE ORDER":
        node = import_one(_untyped(tmp_path), "Approval Status")
    assert output_json(node, run_node(node, {"applicant_age": Decimal(19)})) == expected


def _untyped(tmp_path: Path) -> Path:
    path = table_model(tmp_path, "RULE ORDER", ">= 18", "< 20")
    path.write_text(path.read_text("utf-8").replace('Status" typeRef="string"', 'Status"'), "utf-8")
    return path


def test_required_decisions_are_steps_and_knowledge_models_functions(tmp_path: Path) -> None:
    bkm = """<businessKnowledgeModel name="Add Fee" id="fee"><encapsulatedLogic>
      <formalParameter name="x" typeRef="number"/><literalExpression><text>x + 5</text></literalExpression>
      </encapsulatedLogic></businessKnowledgeModel>"""
    needs = require("net", kind="requiredDecision") + (
        '<knowledgeRequirement><requiredKnowledge href="#fee"/></knowledgeRequirement>'
    )
    body = (
        input_data("amount", "number")
        + literal_decision("net", "amount / 2", require("amount"))
        + bkm
        + literal_decision("gross", "Add Fee(net)", needs)
    )
    node = import_one(write_model(tmp_path / "m.dmn", body), "gross")
    assert "add_fee:" in node.text
    assert "value: add_fee(net)" in node.text
    assert output_json(node, run_node(node, {"amount": Decimal(10)})) == 10


def test_what_is_not_translated_is_an_error_of_the_node_and_of_the_command(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m.dmn", literal_decision("bad", "abs(&quot;x&quot;)".replace("&quot;", '"')))
    run = CliRunner().invoke(vesper, ["import", "dmn", str(path), "--out", str(tmp_path / "out")])
    assert run.exit_code == 1
    assert "m.dmn:1: bad: null by a type error: `abs` takes a number, and this is a string" in run.output
    text = (tmp_path / "out" / "m_bad_v1.vsp").read_text("utf-8")
    assert "#   line 1, `bad`" in text
    check = CliRunner().invoke(vesper, ["check", str(tmp_path / "out" / "m_bad_v1.vsp")])
    assert check.exit_code == 1
    assert "not_translated" in check.output


def test_cases_of_the_source_become_cases_of_the_node(tmp_path: Path) -> None:
    table_model(tmp_path, "FIRST", ">= 18", "-")
    (tmp_path / "m-test.xml").write_text(
        """<testCases xmlns="http://www.omg.org/spec/DMN/20160719/testcase"
          xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema">
          <modelName>m.dmn</modelName><testCase id="1">
          <inputNode name="Applicant Age"><value xsi:type="xsd:decimal">19</value></inputNode>
          <resultNode name="Approval Status"><expected><value xsi:type="xsd:string">Approved</value></expected>
          </resultNode></testCase></testCases>""",
        "utf-8",
    )
    run = CliRunner().invoke(vesper, ["import", "dmn", str(tmp_path / "m.dmn"), "--out", str(tmp_path)])
    assert run.exit_code == 0, run.output
    assert "1 cases  translated" in run.output
    test = CliRunner().invoke(vesper, ["test", str(tmp_path / "m_approval_status_v1.vsp"), "--engine", "both"])
    assert test.exit_code == 0, test.output
    assert "1 of 1 case passed" in test.output
    again = CliRunner().invoke(vesper, ["import", "dmn", str(tmp_path / "m.dmn"), "--out", str(tmp_path)])
    assert again.exit_code == 2
    assert "already exists" in again.output


def test_null_is_refused_unless_the_logic_tests_for_it(tmp_path: Path) -> None:
    body = input_data("a", "number") + literal_decision("plain", "a + 1", require("a"))
    body += literal_decision("asked", "if a = null then 0 else a", require("a"))
    path = write_model(tmp_path / "m.dmn", body)
    assert run_node(import_one(path, "plain"), {"a": None}).kind == "failed"
    asked = import_one(path, "asked")
    assert output_json(asked, run_node(asked, {"a": None})) == 0
    (node,) = import_file(path, ["plain"], [], has_null_inputs=True).nodes
    assert output_json(node, run_node(node, {"a": None})) is None


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
        '<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        "<a>" * 200 + "</a>" * 200,
        "<a>",
        "",
    ],
)
def test_hostile_xml_is_refused(text: str) -> None:
    with pytest.raises(XmlProblem):
        parse_xml(text.encode())


def test_deep_and_endless_expressions_are_refused(tmp_path: Path) -> None:
    deep = "(" * 5000 + "1" + ")" * 5000
    loop = "{f: function(x) f(x), r: f(1)}.r"
    body = literal_decision("deep", deep) + literal_decision("loop", loop)
    body += literal_decision("self", "self + 1", require("self", kind="requiredDecision"))
    for node in import_file(write_model(tmp_path / "m.dmn", body), ["deep", "loop"], []).nodes:
        assert node.problems
    assert import_file(tmp_path / "m.dmn", ["self"], []).problems
