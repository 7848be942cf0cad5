"""A warm load: the same node, without what made it; and anew as soon as anything that it depends on has changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

import vesper
from tests.support.nodes import compiled, worked_nodes
from tests.unit.api.given import ENGINES, NODES, PAYMENT, ROOT
from vesper.cache import entries as module
from vesper.cache.entries import Entries, entries
from vesper.compiler import callees
from vesper.compiler import load_cache as warm
from vesper.compiler.compiled import Restored
from vesper.repository import locate, lock

PRICE = """\
node_id: price_v1
type: function
intent: Price something
inputs:
  amount: decimal
outputs:
  success:
    total: decimal
flow:
  - step: fee
    operation: call_node
    node: fee
    inputs: {amount: amount}
  - operation: return
    success: {total: amount + fee.fee}
"""
FEE = """\
node_id: fee_v1
type: function
intent: A fee
inputs:
  amount: decimal
outputs:
  success:
    fee: decimal
flow:
  - step: rate
    operation: call_node
    node: rate_v1
    inputs: {amount: amount}
  - operation: return
    success: {fee: amount * rate.rate}
"""
RATE = """\
node_id: rate_v1
type: function
intent: A rate
inputs:
  amount: decimal
outputs:
  success:
    rate: decimal
flow:
  - operation: return
    success: {rate: 0.10}
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Entries:
    monkeypatch.setenv("VESPER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("VESPER_CACHE_KEY", str(tmp_path / "key" / "key"))
    monkeypatch.setattr(module, "_opened", {})
    found = entries()
    assert found is not None
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "nodes"
    folder.mkdir()
    for text in (PRICE, FEE, RATE):
        (folder / f"{text.split()[1]}.vsp").write_text(text)
    return folder


def load(project: Path, engine: str = "python") -> vesper.Node:
    return vesper.load(project / "price_v1.vsp", engine=engine)


def is_warm(node: vesper.Node) -> bool:
    return isinstance(node._compiled, Restored)


# -- the same node --------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["orders/order_pricing_v1", "orders/checkout_v1", "finance/loan_schedule_v1"])
def test_a_warm_node_is_the_same_in_every_respect(cache: Entries, engine: str, name: str) -> None:
    file = NODES / f"{name}.vsp"
    cold, node = vesper.load(file, engine=engine), vesper.load(file, engine=engine)
    assert (is_warm(cold), is_warm(node)) == (False, True)
    for attribute in ("id", "name", "version", "type", "intent", "path", "semantic_hash", "warnings", "__doc__"):
        assert getattr(node, attribute) == getattr(cold, attribute), attribute
    assert (dict(node.inputs), dict(node.outputs), dict(node.errors)) == (cold.inputs, cold.outputs, cold.errors)
    assert str(node.__signature__) == str(cold.__signature__)
    assert node.source == cold.source
    here, there = node._compiled, cold._compiled
    assert (here.node, here.cases, here.ir, here.source) == (there.node, there.cases, there.ir, there.source)
    assert here.path == there.path
    assert there.cases
    for case in there.cases:
        one, other = cold(case.inputs), node(case.inputs)
        assert (one.ok, one.value, one.error) == (other.ok, other.value, other.error), case.name


@pytest.mark.parametrize("engine", ENGINES)
def test_a_warm_node_says_the_same_of_what_goes_wrong(cache: Entries, engine: str) -> None:
    file = NODES / "payments" / "payment_decision_v1.vsp"
    cold, node = vesper.load(file, engine=engine), vesper.load(file, engine=engine)
    assert is_warm(node)
    for inputs in (PAYMENT | {"amount": Decimal(0)}, PAYMENT | {"amount": "x"}, PAYMENT | {"country": "USA"}, {}):
        one, other = cold(inputs), node(inputs)
        assert one.error == other.error
        assert str(one.error) == str(other.error)
    there, here = cold.start(PAYMENT).outcome, node.start(PAYMENT).outcome
    assert there is not None
    assert here is not None
    assert here.value == there.value


def test_what_was_made_later_is_kept_too(cache: Entries, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(project).start({"amount": Decimal(1)})  # the traced form
    monkeypatch.setattr("vesper.engines.python_engine.generate_module", None)
    again = load(project)
    assert is_warm(again)
    assert again.start({"amount": Decimal(1)}).outcome is not None
    assert again(amount=Decimal(1)).total == Decimal("1.10")


_SCRIPT = """
import sys
bare = set(sys.modules)
from decimal import Decimal
import vesper
node = vesper.load(sys.argv[1], engine=sys.argv[2])
value = node.call({"amount": Decimal("120.00"), "balance": Decimal("1000.00"), "currency": "USD", "country": "US",
                   "user_age_days": 100, "flagged": False})
loaded = sorted(set(sys.modules) - bare)
import json
print(json.dumps({"decision": value["decision"], "loaded": loaded}))
"""


WARM = "nodes/payments/payment_decision_v1.vsp"


def _started(engine: str) -> set[str]:
    run = subprocess.run([sys.executable, "-c", _SCRIPT, WARM, engine], cwd=ROOT, capture_output=True, check=True)
    found = json.loads(run.stdout)
    assert found["decision"] == "approve"
    return set(found["loaded"])


_FOUNDATION = "import dataclasses, datetime, decimal, typing"
_OTHERS = {
    "__future__", "_blake2", "_contextvars", "_struct", "atexit", "binascii", "contextvars", "gc", "struct",
}  # fmt: skip
"""Standard modules that a warm first call may import besides those that `_FOUNDATION` imports."""
_PACKAGES = {
    "vesper",
    *(f"vesper.{each}" for each in ("api", "cache", "compiler", "config", "engines", "journal", "kernels", "values")),
    *("vesper.kernels.arithmetic", "vesper.kernels.runtime", "vesper.storage", "vesper.values.generated"),
}


def _foundation() -> set[str]:
    script = f"import sys; bare = set(sys.modules); {_FOUNDATION}; print(*(set(sys.modules) - bare))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    return set(run.stdout.split())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_warm_process_loads_neither_the_parser_nor_the_writer(
    cache: Entries, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    vesper.load(WARM, engine=engine)
    loaded = _started(engine)
    assert {each for each in loaded if not each.startswith("vesper")} <= _foundation() | _OTHERS
    assert {each.rpartition(".")[0] for each in loaded if each.startswith("vesper.")} <= _PACKAGES
    assert len([each for each in loaded if each.startswith("vesper")]) < 66
    assert {each for each in loaded if each.startswith("vesper.storage.")} == {"vesper.storage.trust"}
    other = "vesper._direct" if engine == "python" else "vesper.engines.python_engine"
    assert other not in loaded, "one engine does not pay for the other"


# -- anew -----------------------------------------------------------------------------------------


def _text(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(project: Path) -> None:
        file = project / f"{name}.vsp"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    return change


def _newer(project: Path) -> None:
    (project / "fee_v2.vsp").write_text(FEE.replace("fee_v1", "fee_v2").replace("* rate.rate", "* rate.rate * 2"))


def _newer_elsewhere(project: Path) -> None:
    (project / "inner").mkdir()
    (project / "inner" / "odd.vsp").write_text(
        FEE.replace("fee_v1", "fee_v3").replace("* rate.rate", "* rate.rate * 3")
    )


def _locked(project: Path) -> None:
    (project / "vesper.lock").write_text('[fee]\nid = "fee_v1"\nhash = "' + "0" * 64 + '"\n')


CHANGES: dict[str, tuple[Callable[[Path], None], Decimal | None]] = {
    "its own text": (_text("price_v1", "amount + fee.fee", "amount - fee.fee"), Decimal("0.90")),
    "a node that it calls": (_text("fee_v1", "amount * rate.rate", "amount * rate.rate + 1"), Decimal("2.10")),
    "one that that calls": (_text("rate_v1", "0.10", "0.50"), Decimal("1.50")),
    "a type that it uses": (_text("rate_v1", "rate: decimal", "rate: float"), None),
    "a newer version": (_newer, Decimal("1.20")),
    "a newer one in a file of any name": (_newer_elsewhere, Decimal("1.30")),
    "the lock": (_locked, None),
    "one that is gone": (lambda project: (project / "rate_v1.vsp").unlink(), None),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("what", list(CHANGES))
def test_a_change_anywhere_in_what_it_depends_on_counts(cache: Entries, project: Path, what: str, engine: str) -> None:
    assert load(project, engine)(amount=Decimal(1)).total == Decimal("1.10")
    assert is_warm(load(project, engine))
    change, total = CHANGES[what]
    change(project)
    if total is None:
        with pytest.raises(vesper.NodeError):
            load(project, engine)
        return
    changed = load(project, engine)
    assert not is_warm(changed)
    assert changed(amount=Decimal(1)).total == total
    assert is_warm(load(project, engine))
    assert load(project, engine)(amount=Decimal(1)).total == total


@pytest.mark.parametrize("what", ["compiler", "python"])
def test_another_compiler_or_python_counts(
    cache: Entries, project: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(project)
    assert is_warm(load(project))
    if what == "compiler":
        monkeypatch.setattr(warm, "compiler_digest", lambda: b"another")
    else:
        monkeypatch.setattr(sys, "version", "3.99.0 (a Python of which nobody knows)")
    assert not is_warm(load(project))
    assert is_warm(load(project))


def test_one_that_changes_while_it_is_read_is_not_kept(
    cache: Entries, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = warm._compile

    def compile_(path: str, rendered: warm.Rendered) -> object:
        found = real(path, rendered)
        CHANGES["one that that calls"][0](project)
        return found

    monkeypatch.setattr(warm, "_compile", compile_)
    assert load(project)(amount=Decimal(1)).total == Decimal("1.10"), "what was read"
    monkeypatch.setattr(warm, "_compile", real)
    assert not is_warm(load(project))
    assert load(project)(amount=Decimal(1)).total == Decimal("1.50")


def test_one_with_errors_is_not_kept_and_a_warning_is(cache: Entries, project: Path) -> None:
    file = project / "rate_v1.vsp"
    file.write_text(RATE.replace("0.10", "0.10 +"))
    for _ in range(2):
        with pytest.raises(vesper.NodeError, match="rate_v1"):
            vesper.load(file)
    assert cache.size()[0] == 0


# -- hostile files, and many processes ------------------------------------------------------------


def _forged(data: bytes, _: Path) -> bytes:
    return data.replace(b"0.10", b"0.90")


def _cut(data: bytes, _: Path) -> bytes:
    return data[: len(data) // 2]


def _empty(_: bytes, __: Path) -> bytes:
    return b""


@pytest.mark.parametrize("damage", [_forged, _cut, _empty])
def test_a_hostile_entry_is_neither_believed_nor_run(
    cache: Entries, project: Path, damage: Callable[[bytes, Path], bytes]
) -> None:
    load(project)
    (file,) = Path(cache.folder).glob("*.entry")
    before = file.read_bytes()
    changed = damage(before, project)
    assert changed != before
    file.write_bytes(changed)
    node = load(project)
    assert not is_warm(node)
    assert node(amount=Decimal(1)).total == Decimal("1.10")
    assert is_warm(load(project)), "it was written anew"


def test_an_entry_with_a_true_mac_cannot_bring_classes_of_its_own() -> None:
    """Even who has the key gets no further than the classes of a node by way of what is pickled."""
    from vesper.compiler import node_bytes as pickled

    for value in (os.system, subprocess.Popen, Path("x"), getattr):
        with pytest.raises(Exception, match="no part of a node"):
            pickled.decode_part(pickled.encode_part(value))


def test_processes_that_fill_it_at_once_all_get_the_node(cache: Entries) -> None:
    command = [sys.executable, "-c", _SCRIPT, WARM, "interp"]
    running = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) for _ in range(2)]
    said = [json.loads(each.communicate(timeout=60)[0])["decision"] for each in running]
    assert said == ["approve"] * 2
    assert cache.size()[0] == 1
    assert cache.kept.total()["refused"] == 0


def test_without_a_folder_that_can_be_used_nodes_are_loaded(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VESPER_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(module, "_opened", {})
    with pytest.warns(RuntimeWarning, match="set VESPER_CACHE to another folder"):
        assert load(project)(amount=Decimal(1)).total == Decimal("1.10")


def test_the_words_are_those_of_the_compiler() -> None:
    assert (warm._SUFFIX, warm._LOCK, warm._FOLDER) == (locate.SUFFIX, lock.LOCK_NAME, locate.FOLDER)
    path = NODES / "payments" / "x.vsp"
    assert callees.collection_folder(path) == Path(warm.collection_folder(str(path)))


def test_every_worked_node_that_calls_others_can_be_kept() -> None:
    callers = [path for path in worked_nodes() if compiled(path).callees]
    assert {compiled(path).agent is not None for path in callers} == {True, False}
    assert [path.name for path in callers if not warm._MAY_READ_OTHERS.search(path.read_bytes())] == []


@pytest.mark.parametrize("path", ["./a//b/./c.vsp", "a/../b.vsp", "/x//y.vsp", "c.vsp", "./c.vsp"])
def test_paths_are_written_as_pathlib_does(path: str) -> None:
    from vesper.api.load import _normal

    assert _normal(path) == Path(path).as_posix()
