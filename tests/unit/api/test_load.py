from __future__ import annotations

import copy
import inspect
import os
import pickle
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import vesper
from tests.unit.api.given import ASKING, CLOCK, ENGINES, NODES, PAYMENT, ROOT, basket, written


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "name", ["payment_decision", "payment_decision_v1", str(NODES / "payments" / "payment_decision_v1.vsp")]
)
def test_a_node_is_found_by_name_id_and_path(name: str, engine: str) -> None:
    node = vesper.load(name, nodes=NODES, engine=engine)
    assert (node.id, node.name, node.version, node.engine) == ("payment_decision_v1", "payment_decision", 1, engine)
    assert node(PAYMENT)["decision"] == "approve"


def test_the_folder_is_nodes_or_what_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VESPER_NODES", raising=False)
    written(tmp_path, CLOCK)
    monkeypatch.chdir(tmp_path)
    assert vesper.load("stamp").id == "stamp_v1"
    monkeypatch.setenv("VESPER_NODES", str(NODES))
    assert vesper.load("payment_decision").version == 1
    with pytest.raises(vesper.UnknownNode):
        vesper.load("stamp")
    assert vesper.load("stamp", nodes="nodes").id == "stamp_v1", "what is said goes before the environment"


def test_the_newest_version_is_taken_and_a_changed_file_is_read_again(tmp_path: Path) -> None:
    written(tmp_path, CLOCK)
    old = vesper.load("stamp", nodes=tmp_path / "nodes")
    written(tmp_path, CLOCK.replace("stamp_v1", "stamp_v2").replace("add: add", "add: add + 1"))
    new = vesper.load("stamp", nodes=tmp_path / "nodes")
    assert (old.version, old(add=1)["add"], new.version, new(add=1)["add"]) == (1, 1, 2, 2)
    written(tmp_path, CLOCK.replace("stamp_v1", "stamp_v2").replace("add: add", "add: add + 5"))
    assert vesper.load("stamp", nodes=tmp_path / "nodes")(add=1)["add"] == 6
    assert new(add=1)["add"] == 2, "what has been loaded does not change"


def test_an_unknown_node_says_what_is_close() -> None:
    with pytest.raises(vesper.UnknownNode, match="did you mean `payment_decision`"):
        vesper.load("paymnt_decision", nodes=NODES)
    with pytest.raises(vesper.UnknownNode, match=r"no file `.*nowhere.vsp`"):
        vesper.load(NODES / "nowhere.vsp")
    with pytest.raises(vesper.UnknownNode, match="there is no folder `nowhere`"):
        vesper.load("payment_decision", nodes="nowhere")
    assert issubclass(vesper.UnknownNode, vesper.NodeError)


def test_an_unknown_engine_is_misuse() -> None:
    with pytest.raises(ValueError, match="no engine `both`; the engines are python, interp"):
        vesper.load("payment_decision", nodes=NODES, engine="both")


def test_a_node_with_errors_says_what_the_check_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, CLOCK.replace("add: add}", "add: ad}").replace("at: timestamp", "at: tmestamp"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(vesper.NodeError) as found:
        vesper.load("stamp")
    printed = subprocess.run(
        [sys.executable, "-m", "vesper", "check", "--no-cache", "nodes"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert printed.returncode == 1
    assert str(found.value).count("error[VSP") >= 1
    assert str(found.value) in printed.stderr.rstrip() + "\n"


def test_warnings_are_kept(tmp_path: Path) -> None:
    node = vesper.load(written(tmp_path, ASKING.replace("read.customers]", "read.customers, database.read.orders]")))
    assert [each.partition("]")[0] for each in node.warnings] == ["warning[VSP4002"]
    assert vesper.load("payment_decision", nodes=NODES).warnings == ()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_node_says_what_it_is(engine: str, tmp_path: Path) -> None:
    node = basket(tmp_path, engine)
    assert node.intent == "Price a basket"
    assert node.type == "function"
    assert len(node.semantic_hash) == 64
    assert node.path.endswith("basket_v1.vsp")
    assert {name: each.type for name, each in node.inputs.items()}["rates"] == "map<enum[new, sale], decimal>"
    assert [name for name, each in node.inputs.items() if not each.required] == ["buyer", "divisor"]
    assert node.inputs["divisor"] == vesper.Field("divisor", "integer", required=False, default=1)
    assert list(node.outputs) == ["total", "kind", "days", "value"]
    assert list(node.errors) == ["error_code", "message", "lines"]
    assert node.source.startswith("# AUTO-GENERATED")
    assert "def basket_v1(" in node.source
    assert repr(node) == (
        f"<Node basket_v1 on {engine}: lines, kind, rates, days, buyer, divisor -> total, kind, days, value>"
    )


def test_the_signature_and_the_help_show_the_inputs(tmp_path: Path) -> None:
    node = vesper.load("payment_decision", nodes=NODES)
    signature = inspect.signature(node)
    assert list(signature.parameters) == list(node.inputs)
    assert signature.parameters["flagged"].default is False
    assert signature.parameters["amount"].default is inspect.Parameter.empty
    signature.bind(**PAYMENT)
    with pytest.raises(TypeError):
        signature.bind(**PAYMENT, flaged=True)
    shown = pydoc.plain(pydoc.render_doc(node))
    assert "Decide whether a card payment goes through" in shown
    assert "flagged        boolean = false" in shown
    assert "now" in inspect.signature(vesper.load(written(tmp_path, CLOCK))).parameters
    inspect.signature(vesper.Node)  # the class has one, too


def test_an_input_with_the_name_of_a_python_keyword_is_given_in_a_dict(tmp_path: Path) -> None:
    node = vesper.load(written(tmp_path, CLOCK.replace("add", "class")))
    assert node({"class": 3})["class"] == 3
    assert "class" not in inspect.signature(node).parameters


def test_a_node_does_not_change() -> None:
    node = vesper.load("payment_decision", nodes=NODES)
    with pytest.raises(AttributeError, match="a node does not change"):
        node.intent = "another"
    with pytest.raises(AttributeError, match="a node does not change"):
        del node.intent
    with pytest.raises(TypeError):
        node.inputs["amount"] = 1  # type: ignore[index]
    assert copy.deepcopy(node) is node
    assert copy.copy(node) is node
    with pytest.raises(TypeError, match="load it in the process"):
        pickle.dumps(node)


def test_importing_vesper_loads_nothing_and_a_call_loads_nothing_more() -> None:
    program = """
import sys
before = set(sys.modules)
import vesper
assert not {"yaml", "libcst", "click", "sqlglot", "decimal"} & (set(sys.modules) - before), sorted(sys.modules)
assert "load" in dir(vesper)
new = {name for name in set(sys.modules) - before if name.startswith("vesper")}
assert new == {"vesper"}, new
node = vesper.load("payment_decision")
loaded = set(sys.modules)
assert "click" not in loaded
inputs = dict(amount="50.00", balance="100.00", currency="USD", country="DE", user_age_days=400)
assert node(**inputs).ok
assert node(**inputs).trace_id
assert set(sys.modules) == loaded, set(sys.modules) - loaded
assert not node(**{**inputs, "amount": "0"}).ok  # what explains is loaded once there is something to explain
loaded = set(sys.modules)
assert not node(amount=0.1).ok
assert not node(**{**inputs, "amount": "0"}).ok
assert set(sys.modules) == loaded, set(sys.modules) - loaded
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_public_names_are_the_same_for_type_checkers() -> None:
    stub = (ROOT / "vesper" / "__init__.pyi").read_text(encoding="utf-8")
    declared = {line.rpartition(" as ")[2] for line in stub.splitlines() if line.startswith("from ")}
    declared.remove("testing")  # a module, which is loaded when it is first used as the names are
    assert vesper.testing.__name__ == "vesper.testing"
    assert declared == set(vesper._PLACES)  # type: ignore[attr-defined]  # the stub has no private names
    for name in declared:
        assert getattr(vesper, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'lod'"):
        vesper.lod  # type: ignore[attr-defined]  # noqa: B018


def test_a_node_with_effects_may_do_nothing_that_is_not_granted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with vesper.Host() as host:
        node = vesper.load(written(tmp_path, ASKING), host=host)
        outcome = node(event_id="e1")
        assert outcome.error is not None
        assert outcome.error.kind == "denied"
        assert "[[grants]]" in outcome.error.message
        with pytest.raises(vesper.Stopped, match="denied: greet_v1 may not use"):
            node.call({"event_id": "e1"})


def test_a_node_says_in_which_mode_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESPER_CONFIG", str(tmp_path / "vesper.toml"))
    (tmp_path / "vesper.toml").write_text("", encoding="utf-8")
    modes = {each: vesper.load("payment_decision", nodes=NODES, engine=each).mode for each in ("python", "auto")}
    assert modes == {"python": None, "auto": "shadow_direct"}
