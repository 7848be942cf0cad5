"""Plain numbers, booleans and null in a body are sent as such; quotes and holes make them what they say."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from vesper.compiler import compile_source
from vesper.engines.engine import Blocked
from vesper.engines.registry import ENGINES
from vesper.language.diagnostics.source import SourceFile
from vesper.values.json_value import canonical_text, json_of

NODE = """\
node_id: send_v1
type: http_handler
intent: Send a body
inputs: {{n: integer}}
outputs: {{success: {{done: boolean}}, error: {{error_code: "enum[timeout]", message: string}}}}
flow:
  - step: sent
    operation: external_api_call
    provider: shop
    method: POST
    endpoint: /v1
    effect: unsafe
    body: {body}
  - return: {{done: 'true'}}
security: {{capabilities_required: [network.http_client.shop]}}
"""


@pytest.mark.parametrize("engine", ["python", "interp"])
@pytest.mark.parametrize(
    "body, sent",
    [
        ("{x: 1, y: -2.50, z: 1e2}", '{"x":1,"y":-2.5,"z":100}'),
        ("{x: true, y: false, z: null}", '{"x":true,"y":false,"z":null}'),
        ("{x: '1', y: \"true\", z: usd}", '{"x":"1","y":"true","z":"usd"}'),
        ("{x: '{n}', y: '{n} pieces', z: 007, w: 1.}", '{"w":"1.","x":5,"y":"5 pieces","z":"007"}'),
        ("{x: [1, a, '{n}'], y: {z: 0.10}}", '{"x":[1,"a",5],"y":{"z":0.1}}'),
    ],
)
def test_scalars_of_a_body(body: str, sent: str, engine: str) -> None:
    compiled, bag = compile_source(SourceFile("send_v1.vsp", NODE.format(body=body)))
    assert compiled is not None, [each.headline for each in bag.sorted()]
    step = ENGINES[engine].load(compiled).start({"n": 5}, datetime(2026, 11, 15, tzinfo=UTC)).advance(())
    assert isinstance(step, Blocked)
    assert canonical_text(json_of(step.requests[0].arguments["body"])) == sent
