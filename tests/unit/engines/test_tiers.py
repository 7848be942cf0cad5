"""When machine code is made, as settings and the environment say; forks; what goes back; what is shown of it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner

import vesper
from tests.proofs.differential.deopt import Subject
from tests.proofs.robustness import machine_code
from tests.support.goldens import Golden
from tests.support.nodes import compiled, small_node, worked_nodes, written_for_tests
from tests.support.waiting import eventually
from vesper.cli.compile.command import command
from vesper.compiler import Compiled
from vesper.config.settings import config_from
from vesper.effects.settings import ConfigError
from vesper.engines.compare import Agree, Disagree, compare
from vesper.engines.direct_engine import DirectEngine, DirectProgram, FormTier, NotCompiled, TieredEngine
from vesper.engines.engine import Done, EngineUnavailable, Limits, run_observed
from vesper.engines.outcome import EngineFault, LimitHit, Returned
from vesper.engines.tiering import ALWAYS, VARIABLE, Tiering, tiering
from vesper.verify.differential.forms import COMPARED, FormsEngine, FormsExecution

ROOT = Path(__file__).parents[3]
PAYMENT = ROOT / "nodes" / "payments" / "payment_decision_v1.vsp"
GIVEN: Mapping[str, object] = {
    "amount": Decimal("50.00"),
    "balance": Decimal("100.00"),
    "currency": "USD",
    "country": "DE",
    "user_age_days": 400,
}

KEY = b"k" * 16


def looped(start: int = 0) -> Compiled:
    """Spends as much as it is told."""
    step = f"- {{step: result, operation: compute, value: 'sum(y FOR y IN range({start}, n, 1))'}}"
    return small_node("n: integer", f"{step}\n- {{operation: return, success: [result]}}", "result: integer")


def payment(made: Tiering) -> DirectProgram:
    return DirectEngine(made).load(compiled(PAYMENT))


def own(program: DirectProgram) -> FormTier:
    """What is made of the plain form of the node itself."""
    return next(iter(program.tier().plain.values()))


def called(program: DirectProgram, times: int) -> list[object]:
    return [program.call(GIVEN) for _ in range(times)]


# -- when -----------------------------------------------------------------------------------------


def test_the_interpreter_makes_no_machine_code() -> None:
    program = DirectEngine().load(compiled(PAYMENT))
    called(program, 300)
    assert own(program).stage == "off"


def test_a_hundred_calls_make_a_node_hot_and_a_thread_compiles_it() -> None:
    program = payment(Tiering("auto"))
    first = called(program, 100)
    assert own(program).stage == "cold"
    called(program, 1)
    eventually(lambda: own(program).stage == "installed")
    assert own(program).entered == 0
    assert called(program, 50) == first[:50]
    assert own(program).entered > 40
    assert own(program).bytes > 0


def test_few_long_calls_make_a_node_hot() -> None:
    program = DirectEngine(Tiering("auto")).load(looped())
    for _ in range(4):
        program.call({"n": 4_999})
    assert own(program).stage == "cold"
    program.call({"n": 5})
    eventually(lambda: own(program).stage in ("installed", "refused"))


def test_a_call_that_is_run_on_both_sides_comes_to_what_each_comes_to() -> None:
    """Short ones without a frame, long ones with one, and such that the interpreter is left before its end."""
    program = DirectEngine(Tiering("auto", calls=1)).load(looped())
    program.call({"n": 1})
    program.call({"n": 1})
    eventually(lambda: own(program).stage == "installed")
    for _ in range(60):
        for n in (3, 3_000, 400_000):
            assert program.call({"n": n}) == Returned({"result": n * (n - 1) // 2})
            assert program.call({"n": n}, limits=Limits(fuel=n - 1)) == LimitHit("fuel")
            assert program.call({"n": n}, limits=Limits(fuel=n)) == Returned({"result": n * (n - 1) // 2})


def test_the_thresholds_are_those_that_were_set() -> None:
    program = payment(Tiering("auto", calls=3))
    called(program, 3)
    assert own(program).stage == "cold"
    called(program, 1)
    eventually(lambda: own(program).stage == "installed")


def test_always_is_when_it_is_loaded() -> None:
    program = payment(ALWAYS)
    assert (own(program).stage, own(program).entered) == ("installed", 0)
    program.call(GIVEN)
    assert own(program).entered == 1
    assert program.tier().pathed is None
    program.call_pathed(GIVEN, bytes(16))
    pathed = program.tier().pathed
    assert pathed is not None
    assert (pathed.stage, pathed.entered) == ("installed", 1)


def test_what_is_observed_is_interpreted() -> None:
    program = payment(ALWAYS)
    run_observed(program, GIVEN)
    assert own(program).entered == 0


def test_code_that_finds_no_room_is_not_made() -> None:
    program = payment(replace(ALWAYS, max_code_mb=0))
    assert own(program).stage == "refused"
    assert "max_code_mb" in (own(program).reason or "")
    assert isinstance(program.call(GIVEN), Returned)


def test_a_mode_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="off, auto or always, not sometimes"):
        payment(Tiering("sometimes"))  # type: ignore[arg-type]


# -- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["off", "auto", "always"])
def test_the_environment_has_the_last_word(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, mode)
    program = TieredEngine(Tiering("auto", calls=7)).load(compiled(PAYMENT))
    assert own(program).stage == {"off": "off", "auto": "cold", "always": "installed"}[mode]
    assert tiering(Tiering("auto", calls=7)).calls == 7


def test_an_environment_that_says_what_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "yes")
    with pytest.raises(EngineUnavailable, match="VESPER_JIT is off, auto or always, not `yes`"):
        TieredEngine().load(compiled(PAYMENT))


def test_the_table_of_the_configuration(tmp_path: Path) -> None:
    assert config_from({}, tmp_path).engine == Tiering()
    said = {"jit": "off", "calls": 5, "operations": 9, "max_code_mb": 2}
    assert config_from({"engine": said}, tmp_path).engine == Tiering("off", 5, 9, 2)


@pytest.mark.parametrize(
    "said, why",
    [
        ({"jit": "on"}, "engine.jit"),
        ({"calls": 0}, "engine.calls"),
        ({"operations": -1}, "engine.operations"),
        ({"max_code_mb": 0}, "engine.max_code_mb"),
        ({"threads": 2}, "no such setting"),
    ],
    ids=lambda each: each if isinstance(each, str) else next(iter(each)),
)
def test_a_table_that_says_what_cannot_be(said: dict[str, object], why: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=why):
        config_from({"engine": said}, tmp_path)


def test_a_node_is_loaded_as_the_nearest_configuration_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vesper.toml").write_text('[engine]\njit = "always"\n', encoding="utf-8")
    node = vesper.load(PAYMENT, engine="jit")
    program = node._program
    assert isinstance(program, DirectProgram)
    assert own(program).stage == "installed"
    assert node.call(GIVEN)["decision"] == "approve"


# -- forks ----------------------------------------------------------------------------------------

FORKS = """
import os, sys, time
from decimal import Decimal
from pathlib import Path
from vesper.compiler import compile_file
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.tiering import Tiering

node, _ = compile_file(Path(sys.argv[1]))
given = {"amount": Decimal("50.00"), "balance": Decimal("100.00"), "currency": "USD", "country": "DE"}
given["user_age_days"] = 400

def hot():
    program = DirectEngine(Tiering("auto", calls=5)).load(node)
    for _ in range(6):
        program.call(given)
    return program

def is_installed(program):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if next(iter(program.tier().plain.values())).stage == "installed":
            return True
        time.sleep(0.002)
    return False

children = []
for _ in range(8):
    waiting = [hot() for _ in range(3)]
    child = os.fork()
    if child == 0:
        # What waited in the parent is compiled here too, and so is what comes later.
        os._exit(0 if all(map(is_installed, [*waiting, hot()])) else 1)
    children.append(child)
    if not all(map(is_installed, waiting)):
        sys.exit("the parent compiles no more")
ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
print(ended.count(0))
"""


def test_a_process_that_is_forked_compiles_for_itself() -> None:
    # In a process of its own: this one has threads of other tests.
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore", "-c", FORKS, str(PAYMENT)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "8"), done.stderr


TWO_FORK = """\
import os, sys, threading, time

# What is registered first is called last: another thread comes to the same place while this one holds its locks.
os.register_at_fork(before=lambda: time.sleep(0.2))
from vesper.engines import direct_engine

together = threading.Barrier(2)

def fork():
    together.wait()
    for _ in range(3):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)

threads = [threading.Thread(target=fork) for _ in range(2)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print("both")
"""


def test_two_threads_that_fork_at_once_wait_for_each_other_without_the_lock() -> None:
    command = [sys.executable, "-W", "ignore", "-c", TWO_FORK]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "both"), done.stderr


def test_a_process_ends_while_something_is_compiled() -> None:
    script = FORKS.partition("children =")[0] + "\nwaiting = [hot() for _ in range(50)]\n"
    command = [sys.executable, "-c", script, str(PAYMENT)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stderr) == (0, ""), f"killed by {signal.Signals(-done.returncode)}"


# -- going back -----------------------------------------------------------------------------------

ALL = [*worked_nodes(), *written_for_tests()]


@pytest.mark.parametrize("path", ALL[::7], ids=lambda path: path.stem)
def test_a_guard_that_fails_changes_nothing(path: Path) -> None:
    """A sample; `make proof-deopt` takes every guard of every node."""
    subject = Subject(compiled(path), drawn=2)
    chance = random.Random(path.stem)
    guards = chance.sample(range(subject.guards), min(2, subject.guards))
    assert list(subject.differing(guards)) == []


def test_a_run_that_fails_has_the_whole_path() -> None:
    """Nothing reads the words of a path behind a failure, but who asks which way the run went."""
    flow = """\
- {step: sign, operation: compute, value: IF up THEN 1 ELSE -1}
- {step: least, operation: compute, value: MIN(x * sign FOR x IN xs)}
- {operation: return, success: {result: least}}"""
    node = small_node("up: boolean\nxs: array<integer>", flow, "result: integer")
    made, interpreted = (DirectEngine(each).load(node) for each in (Tiering("always"), Tiering("off")))
    for up in (False, True):
        for xs in ([], [3], [3, 1, 2]):
            inputs = {"up": up, "xs": xs}
            assert made.call_pathed(inputs, KEY) == interpreted.call_pathed(inputs, KEY)
    assert own(made).stage == "installed"


def test_a_guard_that_fails_is_seen_in_the_exits() -> None:
    whole = payment(ALWAYS)
    whole.call(GIVEN)
    assert own(whole).exits == 0
    assert own(whole).guards > 0
    left = payment(replace(ALWAYS, fail_guard=0))
    assert left.call(GIVEN) == whole.call(GIVEN)
    assert own(left).exits == 1


# -- memory ---------------------------------------------------------------------------------------


def test_machine_code_that_is_dropped_is_given_back() -> None:
    found = machine_code.measured(40, warm=30)
    assert found["compiled_forms"] > 40
    assert found["code_bytes_more"] == 0
    for name in ("mappings_more", "executable_kib_more"):
        assert found[name] <= machine_code.LIMITS[name]


def test_machine_code_that_is_kept_is_noticed() -> None:
    kept: list[DirectProgram] = []
    found = machine_code.measured(30, warm=1, keep=kept)
    assert {"code_bytes_more", "executable_kib_more"} <= set(machine_code.grown(found))


# -- what verify compares -------------------------------------------------------------------------


def test_verify_runs_machine_code_in_both_forms() -> None:
    program = FormsEngine("jit", ALWAYS).load(compiled(PAYMENT))
    done = run_observed(program, GIVEN)
    assert (done.is_observed, done.way is not None) == (False, True)
    tier = program.program.tier()
    assert tier.pathed is not None
    # Once as a form beside the other, and once as callers do, without a frame.
    assert (own(program.program).entered, own(program.program).expressed, tier.pathed.entered) == (2, 1, 1)
    assert list(COMPARED) == ["python", "interp", "interp-optimised", "interp-unoptimised", "jit"]


def test_forms_that_come_to_other_ends_are_a_fault() -> None:
    program = DirectEngine().load(looped())
    plain, pathed = program.start({"n": 2}, is_traced=False), program.start_pathed({"n": 3}, bytes(16))
    execution = FormsExecution(plain, pathed)
    done = execution.advance(())
    assert isinstance(done, Done)
    assert isinstance(done.outcome, EngineFault)
    assert "the plain form ends with" in done.outcome.message


def test_what_was_not_observed_is_compared_by_its_way() -> None:
    seen = Done(Returned({"a": 1}), ((0, 1),))
    plain = Done(Returned({"a": 1}), (), is_observed=False, way=(b"\1", 1))
    assert isinstance(compare(seen, plain), Agree)
    assert isinstance(compare(plain, replace(plain, way=(b"\2", 1))), Disagree)
    assert isinstance(compare(plain, replace(plain, way=(b"\1", 2))), Disagree)
    assert isinstance(compare(seen, replace(plain, outcome=Returned({"a": 2}))), Disagree)


# -- what can be looked at ------------------------------------------------------------------------


def emitted(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, [str(PAYMENT), *arguments])
    return result.exit_code, result.output


def test_bytecode_as_text(golden: Golden) -> None:
    code, text = emitted("--emit", "bytecode")
    assert code == 0
    golden.check(Path(__file__).parent / "payment_decision.bytecode", text)


@pytest.mark.parametrize("what", ["ir-optimized", "clif", "asm"])
def test_what_the_engine_makes_of_a_node(what: str) -> None:
    code, text = emitted("--emit", what)
    assert code == 0, text
    assert len(text.splitlines()) > 8
    assert "function" in text or what != "clif"


def test_what_is_to_look_at_is_written_to_no_file(tmp_path: Path) -> None:
    code, text = emitted("--emit", "asm", "-o", str(tmp_path / "x.s"))
    assert code == 2
    assert "--emit asm is for reading" in text


def test_bytecode_of_every_node_is_text() -> None:
    for path in ALL:
        text = DirectEngine().load(compiled(path)).look("bytecode")
        assert compiled(path).node.node_id in text.splitlines()[0]
        assert "Instruction" not in text


def test_a_node_that_is_too_large_says_so() -> None:
    items = ",".join(f"n+{number}+n" for number in range(2_010))
    step = f"- {{step: result, operation: compute, value: 'length([{items}])'}}"
    node = small_node("n: integer", f"{step}\n- {{operation: return, success: [result]}}", "result: integer")
    program = DirectEngine(ALWAYS).load(node)
    assert own(program).stage == "refused"
    assert own(program).reason
    assert program.call({"n": 1}) == Returned({"result": 2_010})
    with pytest.raises(NotCompiled):
        program.look("clif")
