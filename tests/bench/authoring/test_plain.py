"""The tasks in plain Python meet the hidden cases, so that their size is one of the same behaviour."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from tests.bench.authoring import plain
from tests.bench.authoring.sizes import PLAIN, main
from tests.bench.authoring.tasks import load_tasks
from vesper.values.model import plain as plain_value

CASES = [(task.name, case) for task in load_tasks() if task.name in PLAIN for case in task.solution.cases]


def made(hint: Any, value: Any) -> Any:
    """Return a value of a case as the function takes it: records are dataclasses."""
    if get_origin(hint) is not None and get_args(hint) and dataclasses.is_dataclass(get_args(hint)[0]):
        return [get_args(hint)[0](**each) for each in value]
    return value


def shown(value: Any) -> Any:
    """Return a result with dataclasses as dicts, and decimals with their digits."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return shown(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {name: shown(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [shown(each) for each in value]
    return value if isinstance(value, bool | int | None) else str(value)


@pytest.mark.parametrize("name, case", CASES, ids=[f"{name}-{case.name}" for name, case in CASES])
def test_plain_python_meets_the_hidden_cases(name: str, case: Any) -> None:
    function = getattr(plain, name)
    hints = get_type_hints(function)
    given = {key: made(hints[key], plain_value(value)) for key, value in case.inputs.items()}
    if case.breaks is not None:
        with pytest.raises(ValueError):
            function(**given)
        return
    if case.error is not None:
        with pytest.raises(plain.TaskError) as raised:
            function(**given)
        fields = {"error_code": raised.value.code, **raised.value.fields}
        assert {key: shown(value) for key, value in case.error.items()} == {
            key: shown(fields[key]) for key in case.error
        }
        return
    found = function(**given)
    assert {key: shown(plain_value(each)) for key, each in case.expect.items()} == shown(
        {key: found[key] for key in case.expect}
    )


def test_every_function_is_a_task(capsys: pytest.CaptureFixture[str]) -> None:
    functions = {
        name for name, each in inspect.getmembers(plain, inspect.isfunction) if each.__module__ == plain.__name__
    }
    assert functions == set(PLAIN)
    assert len(PLAIN) == 12
    main()
    assert "12 tasks" in capsys.readouterr().out
