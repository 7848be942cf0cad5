"""Outcomes are compared by their outputs or errors, and `node.call` names itself in wrong calls."""

from __future__ import annotations

from pathlib import Path

import pytest

import vesper

FEE = """\
node_id: fee_v1
type: function
intent: Charge a fee
inputs: {amount: decimal, tags: 'array<string>'}
outputs: {success: {fee: decimal, tags: 'array<string>'}}
contracts: {preconditions: [amount > 0]}
flow:
  - operation: return
    success: {fee: amount, tags: tags}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "fee_v1.vsp"
    file.write_text(FEE)
    return file


@pytest.mark.parametrize("engine", ["python", "interp", "jit"])
def test_equal_outcomes(path: Path, engine: str) -> None:
    node, reference = vesper.load(path, engine=engine), vesper.load(path)
    one = node(amount="1", tags=["a"])
    assert one == reference(amount="1.0", tags=["a"])
    assert one.trace_id != reference(amount="1", tags=["a"]).trace_id
    assert one != node(amount="2", tags=["a"])
    assert one != node(amount="-1", tags=["a"])
    assert node(amount="-1", tags=["a"]) == reference(amount="-1", tags=["a"])
    assert node(amount="-1", tags=["a"]) != reference(amount="-2", tags=["a"]), "the values of the clause differ"
    assert node(amount="x", tags=[]) == reference(amount="x", tags=[])
    assert one != one.value
    with pytest.raises(TypeError, match="unhashable type: 'Outcome'"):
        hash(one)


@pytest.mark.parametrize("audit", ["", "security: {audit_level: detailed}\n"])
@pytest.mark.parametrize("engine", ["python", "interp", "jit", "auto"])
@pytest.mark.parametrize("arguments", [((), {"amount": 1}), ((), {}), (({}, {}), {})])
def test_a_wrong_call_names_the_method(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    audit: str,
    arguments: tuple[tuple[object, ...], dict[str, object]],
) -> None:
    monkeypatch.chdir(path.parent)
    path.write_text(FEE + audit)
    with pytest.raises(TypeError, match=r"^node\.call\(\) (got|takes|missing) "):
        vesper.load(path, engine=engine).call(*arguments[0], **arguments[1])
