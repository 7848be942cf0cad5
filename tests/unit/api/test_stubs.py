"""A type checker that reads the stubs knows the nodes: right use passes, wrong use is found, and at its place."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.nodes import worked_nodes
from tests.support.prepared import completed
from tests.unit.api.given import ASKING, BASKET, CLOCK, NODES, ROOT, written

ODD = """\
node_id: odd_v1
type: function
intent: 'Names that Python uses otherwise: \"\"\" and \\'

types:
  Inputs:
    fields: {date: date, until: date, str: string, list: array<string>, class: integer}
  Any:
    fields: {bytes: bytes, more: bytes}

inputs:
  date: date
  until: date
  self: string
  int: integer
  many: array<Inputs>
  one: optional<Any>
  name: {type: string, default: x}
  free: json
  far: float
  more: "map<date, set<string>>"

outputs:
  success:
    date: date
    until: date
    value: string
    overload: integer
    property: integer
    many: array<Inputs>
    one: optional<Any>
    dict: "map<string, array<integer>>"
    more: "map<date, set<string>>"
    free: json

flow:
  - operation: return
    success:
      date: date
      until: until
      value: self + name + text(far)
      overload: int
      property: int
      many: many
      one: one
      dict: "{'a': [int]}"
      more: more
      free: free
"""

GOOD = """\
from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, UTC
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, assert_type

import vesper

if TYPE_CHECKING:
    from vesper_nodes.payment_decision_v1 import Inputs, Outputs

node = vesper.load("payment_decision")
outcome = node(amount="9.99", balance=100, currency="USD", country="DE", user_age_days=400)
assert_type(outcome["fee"], Decimal)
assert_type(outcome.fee, Decimal)
assert_type(outcome.unwrap()["risk"], int)
assert_type(outcome["decision"], Literal["approve", "review", "decline"])
if outcome.value is not None:
    assert_type(outcome.value["new_balance"], Decimal)
if outcome.error is not None:
    assert_type(outcome.error.code, str)
given: Inputs = {"amount": Decimal(1), "balance": 1, "currency": "EUR", "country": "FR", "user_age_days": 1}
returned: Outputs = node.call(given)
assert_type(returned["fee"], Decimal)
node(given)
node('{"amount": 1}')
assert_type(vesper.load("payment_decision_v1", engine="interp")(given)["risk"], int)

@dataclass
class Line:
    sku: str
    qty: int
    price: Decimal
    tags: frozenset[str]

basket = vesper.load("basket", nodes="nodes")
prices: dict[Literal["new", "sale"], Decimal] = {"new": Decimal(1)}
basket(lines=[Line("a", 1, Decimal(1), frozenset())], kind="trade", rates=prices, days={date(2026, 1, 1): 1})
assert_type(basket.call({"lines": [], "kind": "trade", "rates": {}, "days": {}})["value"], int)

stamp = vesper.load("stamp")
assert_type(stamp(now=datetime.now(UTC))["at"], datetime)
assert_type(stamp.call({}, now=datetime.now(UTC))["at"], datetime)

async def wait() -> Decimal:
    return (await node.arun(given))["fee"]

greet = vesper.load("greet_v1")
run = greet.start({"event_id": "e"})
assert_type(run, vesper.Execution)

odd = vesper.load("odd")
result = odd(
    date=date(2026, 1, 1), until="2026-01-02", self="s", int=3, free={"a": [1, None]}, far=2, more={},
    many=[{"date": "2026-01-01", "until": date(2026, 1, 1), "str": "s", "list": ["a"], "class": 1}],
)
assert_type(result["value"], str)
assert_type(result["overload"], int)
assert_type(result.until, date)
assert_type(result["many"][0]["until"], date)
assert_type(result["many"][0]["list"], list[str])
assert_type(result["dict"], dict[str, list[int]])
assert_type(result["more"], dict[date, frozenset[str]])
if result.one is not None:
    assert_type(result.one["more"], bytes)

other = vesper.load("nodes/somewhere.vsp")
assert_type(other, vesper.Node)
print(other(x=1).anything, other(x=1)["anything"], node.inputs["amount"].type, node.id)
"""

WRONG = """\
import vesper
node = vesper.load("payment_decision")
node(amount=9.99, balance=100, currency="USD", country="DE", user_age_days=400)  # arg: a float is not exact
node(amount="9.99", balance=100, currency="USX", country="DE", user_age_days=400)  # no such currency
node(amount="9.99", balance=100, currency="USD", country="DE")  # one is missing
node(amount="9.99", balance=100, currency="USD", country="DE", user_age_days=400, flaged=True)  # misspelt
node.call({"amount": "9.99"})  # many are missing
outcome = node('{"amount": 1}')
outcome["fees"]  # misspelt output
outcome.fees  # misspelt output
outcome.unwrap()["fees"]  # misspelt output
outcome.value["fee"]  # may be None
text: str = outcome["fee"]  # a decimal is no text
vesper.load("basket")(lines=[{"sku": "a"}], kind="trade", rates={}, days={})  # fields are missing
vesper.load("stamp")(now=5)  # no time
vesper.load("stamp").call({})  # no time
vesper.load(5)  # no name
"""


def stubs(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return completed(["stubs", *arguments], folder, {**os.environ, "PYTHONPATH": str(ROOT)})


class Mypy:
    """Runs of mypy with one cache: the standard library is analysed once."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache

    def __call__(self, folder: Path, *files: str) -> subprocess.CompletedProcess[str]:
        (folder / "mypy.ini").write_text(f"[mypy]\nstrict = true\nmypy_path = typings:{ROOT}\n", encoding="utf-8")
        return subprocess.run(
            [sys.executable, "-m", "mypy", "--cache-dir", str(self._cache), *files],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def mypy(tmp_path_factory: pytest.TempPathFactory) -> Mypy:
    return Mypy(tmp_path_factory.mktemp("mypy"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nodes and their stubs, as a user has it."""
    folder = tmp_path_factory.mktemp("project")
    for text in (BASKET, CLOCK, ASKING, ODD, (NODES / "payments/payment_decision_v1.vsp").read_text(encoding="utf-8")):
        written(folder, text)
    done = stubs(folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "typings: stubs of 5 nodes, 7 written\n"
    return folder


def test_right_use_passes_and_so_do_the_stubs_themselves(project: Path, mypy: Mypy) -> None:
    (project / "good.py").write_text(GOOD, encoding="utf-8")
    done = mypy(project, "good.py", *(str(each) for each in (project / "typings" / "vesper_nodes").glob("*.pyi")))
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_wrong_use_is_found(project: Path, mypy: Mypy) -> None:
    (project / "wrong.py").write_text(WRONG, encoding="utf-8")
    done = mypy(project, "wrong.py")
    found = {int(number) for number in re.findall(r"^wrong\.py:(\d+): error", done.stdout, re.MULTILINE)}
    wrong = {number for number, line in enumerate(WRONG.splitlines(), start=1) if "#" in line}
    assert found == wrong, done.stdout


def test_stubs_of_every_worked_node_are_sound(tmp_path: Path, mypy: Mypy) -> None:
    done = stubs(tmp_path, "--nodes", str(NODES))
    assert done.returncode == 0, done.stderr
    (tmp_path / "use.py").write_text("import vesper\nreveal_type(vesper.load('payment_handler'))\n", encoding="utf-8")
    names = [path.stem for path in (tmp_path / "typings" / "vesper_nodes").glob("*_v*.pyi")]
    assert len(names) == len(worked_nodes())
    done = mypy(tmp_path, "use.py", *(str(each) for each in (tmp_path / "typings").rglob("*.pyi")))
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'Revealed type is "vesper_nodes.payment_handler_v1.Node"' in done.stdout


def test_check_says_what_is_stale_and_writing_removes_what_is_gone(tmp_path: Path) -> None:
    first = written(tmp_path, CLOCK)
    assert stubs(tmp_path, "--check").stderr.splitlines() == [
        "typings/vesper/__init__.pyi: missing",
        "typings/vesper_nodes/__init__.pyi: missing",
        "typings/vesper_nodes/stamp_v1.pyi: missing",
        "run `vesper stubs` to write them",
    ]
    assert not (tmp_path / "typings").exists()
    assert stubs(tmp_path).returncode == 0
    assert stubs(tmp_path, "--check").returncode == 0
    assert stubs(tmp_path).stdout == "typings: stubs of 1 node, 0 written\n"
    written(tmp_path, CLOCK.replace("add: add", "add: add + 1"))
    assert stubs(tmp_path, "--check").returncode == 0, "what a caller does not see makes no stub stale"
    written(
        tmp_path,
        CLOCK.replace("stamp_v1", "stamp_v2")
        .replace("add: {type: integer", "add: {type: decimal")
        .replace("at: timestamp, add: integer", "at: timestamp, add: decimal"),
    )
    written(tmp_path, CLOCK.replace("at: timestamp, add: integer", "at: timestamp").replace(", add: add", ""))
    done = stubs(tmp_path, "--check")
    assert (done.returncode, done.stderr.splitlines()) == (
        1,
        [
            "typings/vesper/__init__.pyi: stale",
            "typings/vesper_nodes/stamp_v1.pyi: stale",
            "typings/vesper_nodes/stamp_v2.pyi: missing",
            "run `vesper stubs` to write them",
        ],
    )
    first.unlink()
    done = stubs(tmp_path)
    assert done.stdout == "removed typings/vesper_nodes/stamp_v1.pyi\ntypings: stubs of 1 node, 2 written\n"
    assert stubs(tmp_path, "--check").returncode == 0


def test_the_newest_version_has_the_name(tmp_path: Path) -> None:
    for number in (1, 2, 10):
        written(tmp_path, CLOCK.replace("stamp_v1", f"stamp_v{number}"))
    assert stubs(tmp_path).returncode == 0
    text = (tmp_path / "typings" / "vesper" / "__init__.pyi").read_text(encoding="utf-8")
    assert re.findall(r"Literal\[(.*?)\]", text) == ['"stamp_v1"', '"stamp_v2"', '"stamp", "stamp_v10"']


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    written(tmp_path, CLOCK)
    own = tmp_path / "typings" / "vesper_nodes" / "stamp_v1.pyi"
    own.parent.mkdir(parents=True)
    own.write_text("# mine\n", encoding="utf-8")
    done = stubs(tmp_path)
    assert done.returncode == 2
    assert "stamp_v1.pyi was not generated by Vesper and is not overwritten" in done.stderr
    assert own.read_text(encoding="utf-8") == "# mine\n"
    assert not (tmp_path / "typings" / "vesper").exists(), "all or nothing"
    assert stubs(tmp_path, "--nodes", "nowhere").returncode == 2
    done = stubs(tmp_path, str(written(tmp_path, CLOCK.replace("add: add}", "add: ad}"))))
    assert done.returncode == 1
    assert "VSP1102" in done.stderr
