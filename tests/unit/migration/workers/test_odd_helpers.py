"""A helper process that says what it did not do: nothing of it is agreement, and nobody waits for it for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.nodes import small_node
from tests.unit.migration.workers.test_helper import Wrapped, said
from tests.unit.migration.workers.test_isolation import paid
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.engine import Blocked, Completion
from vesper.migration.compare.comparator import Comparator
from vesper.migration.compare.reports import Agreement, Disagreement, Lost, Report
from vesper.migration.control.state import Enumerated
from vesper.migration.workers.enumeration import Position, domain_of, enumerate_all, run_part
from vesper.migration.workers.helper import Helper, Known
from vesper.migration.workers.rerun import Pair, rerun
from vesper.migration.workers.shown import PartAgreed, word_of

KEY = bytes(range(16))
ECHO = small_node("word: string", "- operation: return\n  success: {result: word}", "result: string")
TWO = small_node("a: boolean\nb: boolean", "- operation: return\n  success: {result: a}", "result: boolean")
Odd = Callable[[str], Helper]


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Odd]:
    made: list[Helper] = []

    def helper(how: str) -> Helper:
        monkeypatch.setenv("ODD_HELPER", how)
        made.append(Helper(seconds=60, module="tests.unit.migration.support.odd_helper"))
        return made[-1]

    yield helper
    for each in made:
        each.close()


def part(helper: Helper, start: int, count: int) -> Report | None:
    answer = helper.enumerate_part(Known.of(TWO), start, count, KEY)
    assert answer is not None
    return answer.result(60)


@pytest.mark.parametrize("how", ["nothing", "not loaded", "no words", "other words", "agreed", "other steps", "on"])
def test_a_process_that_ran_nothing_has_enumerated_nothing(odd: Odd, how: str, tmp_path: Path) -> None:
    helper = odd(how)
    found = enumerate_all(domain_of(TWO), "e", lambda *which: part(helper, *which), Position(tmp_path / "position"))
    assert isinstance(found, Lost)
    assert not (tmp_path / "position").exists()


@pytest.mark.parametrize("how", ["not loaded", "no words", "other steps", "on"])
def test_an_agreement_on_something_else_is_none(odd: Odd, how: str) -> None:
    answer = odd(how).rerun(Known.of(ECHO), said("hello"), KEY)
    assert answer is not None
    assert isinstance(answer.result(60), Lost)


def test_a_disagreement_is_on_the_records_that_it_was_asked_about(odd: Odd) -> None:
    answer = odd("other records").rerun(Known.of(ECHO), said("hello"), KEY)
    assert answer is not None
    found = answer.result(60)
    assert isinstance(found, Disagreement)
    assert found.transcript == said("hello")


def test_what_was_run_is_said_input_by_input(tmp_path: Path) -> None:
    domain, pair = domain_of(TWO), Pair(TWO, Comparator(TWO))
    whole = run_part(pair, domain, 0, 10, KEY)
    assert isinstance(whole, PartAgreed)
    assert whole.words.endswith(b"".join(word_of(domain.at(number)) for number in range(4)))

    def wrong(words: bytes) -> object:
        return enumerate_all(domain, "e", lambda *_: PartAgreed.on(words), Position(tmp_path / "position"))

    assert wrong(whole.words) == Enumerated(4)
    for place in range(0, len(whole.words), 8):
        assert isinstance(wrong(whole.words[:place] + bytes(8) + whole.words[place + 8 :]), Lost)
        assert isinstance(wrong(whole.words[:place] + whole.words[place + 8 :]), Lost)


def test_who_does_not_ask_for_all_that_was_recorded_does_not_agree() -> None:
    node, transcript = paid()
    real, last = DirectEngine().load(node), transcript.exchanges[-1]

    class Skips:
        """Answers its last request itself."""

        def __init__(self, execution: Any) -> None:
            self._execution = execution
            self.path, self.fingerprint = execution.path, execution.fingerprint

        def advance(self, completions: Any) -> Any:
            step = self._execution.advance(completions)
            if isinstance(step, Blocked) and step.requests[0].path == last.request.path:
                return self._execution.advance((Completion(step.requests[0].id, last.value, last.failure),))
            return step

    assert isinstance(rerun(Pair(node, Comparator(node)), transcript, KEY), Agreement)
    skips = Wrapped(node, start_pathed=lambda *given: Skips(real.start_pathed(*given)))
    found = rerun(Pair(node, Comparator(node), skips), transcript, KEY)
    assert isinstance(found, Disagreement)
    assert found.difference.kind == "request"
