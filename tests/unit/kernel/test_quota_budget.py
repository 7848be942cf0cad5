"""The quota of a process is a budget of its steps: what does not fit is not sent."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from tests.support.models.server import ModelServer
from tests.support.waiting import eventually
from tests.unit.effects.models.budget_nodes import TOKENS, budget_host, node_text, reply
from vesper.kernel import Kernel, v1
from vesper.kernel.nodes import load_nodes
from vesper.kernel.pipelines.file import read_pipeline_text
from vesper.kernel.worker import Worker
from vesper.language.diagnostics.source import SourceFile

TOKENS_IN = 1_250
"""With the 200 of output enough for the bound of a request while at most one has been answered."""
PIPELINE = """\
pipeline: questions
stages:
  one: {node: asking_v1, service: desk, routes: [{to: two}]}
  two: {node: asking_v1, service: desk, routes: [{to: three}]}
  three: {node: asking_v1, service: desk}
"""


def ended(kernel: Kernel, quota: v1.Quota) -> v1.GetRequestStatusResponse:
    """Run the pipeline within a quota, and return what became of it."""
    client = kernel.client
    pid = client.create_process(v1.CreateProcessRequest(quota=quota)).process.pid
    read = read_pipeline_text(SourceFile("test.pipeline.yaml", PIPELINE))
    inputs = {"event_id": json.dumps("How are you?")}
    client.initialize_session(v1.InitializeSessionRequest(pid=pid, pipeline=read.config, inputs_json=inputs))
    client.schedule_process(v1.ScheduleProcessRequest(pid=pid))
    request = v1.GetRequestStatusRequest(pid=pid)
    eventually(lambda: client.get_request_status(request).process.terminal_reason != 0)
    return client.get_request_status(request)


def test_requests_that_do_not_fit_the_quota_are_not_sent(tmp_path: Path) -> None:
    node = tmp_path / "asking_v1.vsp"
    node.write_text(node_text(), encoding="utf-8")
    with ModelServer(reply) as server, budget_host(tmp_path, server) as host, Kernel() as kernel:
        worker = Worker(kernel.client, host, load_nodes([node], "python", host, None), "desk", threads=2)
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            within = ended(kernel, v1.Quota(max_llm_calls=3, max_tokens_in=100_000, max_tokens_out=100_000))
            assert within.process.terminal_reason == v1.TerminalReason.TERMINAL_REASON_COMPLETED
            assert within.process.usage.tokens_in + within.process.usage.tokens_out == 3 * TOKENS
            for quota in (v1.Quota(max_llm_calls=2), v1.Quota(max_tokens_in=TOKENS_IN, max_tokens_out=200)):
                before = len(server.asked)
                beyond = ended(kernel, quota)
                assert beyond.process.terminal_reason == v1.TerminalReason.TERMINAL_REASON_AGENT_FAILED
                assert "budget_exceeded" in beyond.process.terminal_message
                assert len(server.asked) - before == 2
                assert beyond.process.usage.llm_calls == 2
            before = len(server.asked)
            assert "budget_exceeded" in ended(kernel, v1.Quota(max_llm_calls=0)).process.terminal_message
            assert len(server.asked) == before
        finally:
            worker.stop()
            thread.join(30)
        assert not thread.is_alive()
