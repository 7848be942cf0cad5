"""Files of pipelines: what they become, and errors at their places."""

from __future__ import annotations

import json

import pytest

from vesper.kernel import Kernel, v1
from vesper.kernel.pipelines.file import PipelineRefused, read_pipeline_text
from vesper.language.diagnostics.source import SourceFile

TEXT = """\
pipeline: support
stages:
  triage:
    node: triage_v1
    service: desk
    inputs: {text: inputs.text, who: metadata.user}
    timeout: 5s
    on_error: reply
    routes:
      - when: CAST(outputs["triage"]["kind"] AS string) == 'refund' AND stage == 'triage'
        to: [refund, notify]
        join: reply
      - to: reply
  refund: {node: refund_v1, service: desk, inputs: {amount: outputs.triage.amount}}
  notify: {node: notify_v1, service: desk}
  reply: {node: reply_v1, service: desk}
edge_limits:
  - {from: triage, to: reply, max: 3}
quota: {llm_calls: 10, timeout: 5m}
"""


def read(text: str) -> v1.PipelineConfig:
    return read_pipeline_text(SourceFile("p.pipeline.yaml", text)).config


def refusals(text: str) -> list[tuple[int, str, str]]:
    """Return line, marked text and headline of each error."""
    with pytest.raises(PipelineRefused) as caught:
        read(text)
    source = caught.value.bag.source
    found = caught.value.bag.sorted()
    return [
        (source.position(each.primary.span.start)[0], source.slice(each.primary.span), each.headline) for each in found
    ]


def test_a_file_becomes_the_configuration_of_the_kernel() -> None:
    found = read_pipeline_text(SourceFile("p.pipeline.yaml", TEXT))
    assert found.quota == v1.Quota(max_llm_calls=10, timeout_us=300_000_000)
    triage = found.config.agents[0]
    assert [each.name for each in found.config.agents] == ["triage", "refund", "notify", "reply"]
    assert (triage.agent, triage.service, triage.on_error, triage.timeout_us) == (
        "triage_v1",
        "desk",
        "reply",
        5_000_000,
    )
    assert json.loads(triage.settings["inputs"]) == {"text": "inputs.text", "who": "metadata.user"}
    first, second = triage.routes
    assert (list(first.targets), first.join, list(second.targets)) == (["refund", "notify"], "reply", ["reply"])
    assert first.condition.startswith('CAST(outputs["triage"]')
    inputs = json.loads(first.condition_ir)["semantics"]["inputs"]
    assert sorted(each["name"] for each in inputs) == ["outputs", "stage"]
    assert list(found.config.edge_limits) == [v1.EdgeLimit(**{"from": "triage"}, to="reply", max_traversals=3)]


def test_the_kernel_accepts_the_conditions() -> None:
    with Kernel() as kernel:
        pid = kernel.client.create_process(v1.CreateProcessRequest()).process.pid
        request = v1.InitializeSessionRequest(pid=pid, pipeline=read(TEXT))
        assert kernel.client.initialize_session(request).session.pipeline_name == "support"


@pytest.mark.parametrize(
    "old, new, expected",
    [
        ("to: reply", "to: rely", (13, "rely", "no stage is named `rely`")),
        ("AND stage", "AND stagge", (10, "stagge", "no input, constant or earlier step is named `stagge`")),
        ("'refund' AND", "17 AND", (10, "==", "`==` does not take string and integer")),
        ("stage == 'triage'", "length(stage)", (10, "length(stage)", "expected boolean, found integer")),
        ("outputs.triage.amount", "outputs.trage.amount", (14, "outputs.trage.amount", "no stage is named `trage`")),
        ("outputs.triage.amount", "amount", (14, "amount", "`amount` must be")),
        ("timeout: 5s", "timeout: soon", (7, "soon", "`timeout` must be a duration")),
        ("max: 3", "max: -3", (18, "-3", "`max` must be a whole number")),
        ("node: triage_v1", "nod: triage_v1", (4, "nod", "a stage has no field `nod`")),
        ("\n        join: reply", "", (10, "when", "a route with several targets needs `join`")),
        ("quota:", "quotas:", (19, "quotas", "a pipeline has no field `quotas`")),
        ("pipeline: support", "pipeline: [", (1, None, "this is not YAML")),
    ],
)
def test_errors_have_their_place(old: str, new: str, expected: tuple[int, str | None, str]) -> None:
    line, marked, headline = expected
    found = refusals(TEXT.replace(old, new))
    assert any(
        (at == line or marked is None) and (marked is None or text == marked) and message.startswith(headline)
        for at, text, message in found
    ), found


def test_a_pipeline_without_stages_is_refused() -> None:
    assert refusals("pipeline: p\nstages: {}\n")[0][2].startswith("`stages` must be at least one stage")
