"""The fields `schedule`, `queue` and `events`: bindings, and what is refused."""

from __future__ import annotations

import pytest

from vesper.compiler import Compiled, compile_source
from vesper.language.diagnostics.source import SourceFile
from vesper.language.work_bindings import (
    Backoff,
    EventsField,
    QueueField,
    ScheduleField,
    events_of,
    queue_of,
    schedule_of,
)

JOB = """node_id: work_v1
type: scheduled_job
intent: Test
inputs:
  region: {type: string, as: regionName}
  scheduled_at: timestamp
  share: {type: decimal, default: 0.5}
outputs: {success: {r: string}}
flow:
  - {operation: return, success: {r: region + text(scheduled_at) + text(share)}}
"""
HANDLER = """node_id: work_v1
type: event_handler
intent: Test
types: {Order: {fields: {id: string}}}
inputs: {event_id: string, event_key: optional<string>, payload: {type: Order, as: order}}
outputs: {success: {r: string}}
flow:
  - {operation: return, success: {r: event_id + payload.id + (event_key ?? '')}}
"""
SCHEDULE = "schedule: {cron: 30 2 * * MON-FRI, zone: Europe/Berlin, jitter: 5m, inputs: {region: EU, share: 0.25}}\n"


def compile_work(node: str, field: str) -> tuple[Compiled | None, list[str]]:
    found, bag = compile_source(SourceFile("work_v1.vsp", node + field))
    return found, [f"{each.code.title}: {each.headline}" for each in bag.sorted()]


def compiled(node: str, field: str) -> Compiled:
    found, problems = compile_work(node, field)
    assert found is not None, problems
    return found


def test_a_schedule_has_its_inputs_as_json_by_outside_names() -> None:
    expected = '{"regionName":"EU","share":"0.25"}'
    found = schedule_of(compiled(JOB, SCHEDULE))
    assert found == ScheduleField(
        "30 2 * * MON-FRI", "Europe/Berlin", 300_000_000, "skip", "latest", expected, "scheduled_at"
    )


def test_defaults_of_a_queue_and_of_events() -> None:
    found = compiled(HANDLER, "queue: {}\nevents: {topic: orders}\n")
    assert queue_of(found) == QueueField()
    parts = (("event_id", "event_id"), ("event_key", "event_key"), ("payload", "order"))
    assert events_of(found) == EventsField("orders", "work_v1", fields=parts)
    assert schedule_of(found) is None


def test_every_setting_of_a_queue_is_read_and_kept_by_the_cache() -> None:
    field = (
        "queue: {name: mail, by: event_id, concurrency: 2, rate: {limit: 100, per: 1m}, priority: -5, debounce: 5s,\n"
        "  attempts: 7, backoff: {base: 2s, factor: 3, max: 1m}}\n"
    )
    found = compiled(HANDLER, field)
    backoff = Backoff(2_000_000, 3, 60_000_000)
    expected = QueueField("mail", "event_id", 2, 100, 60_000_000, -5, 5_000_000, False, 7, backoff)
    assert queue_of(found) == expected
    assert queue_of(compiled(HANDLER, "queue: {singleton: true}\n")) == QueueField(is_singleton=True)
    assert [backoff.wait_us(attempt) for attempt in (1, 2, 3, 9)] == [2_000_000, 6_000_000, 18_000_000, 60_000_000]
    assert found.work is not None
    assert type(found.work).from_data(found.work.to_data()) == found.work


def test_the_fields_are_no_part_of_the_hash() -> None:
    whole, without = compiled(HANDLER, "queue: {attempts: 9}\nevents: {topic: a}\n"), compiled(HANDLER, "")
    assert whole.semantic_hash == without.semantic_hash
    assert (without.work, queue_of(without), events_of(without)) == (None, None, None)


@pytest.mark.parametrize(
    "node, field, problem",
    [
        (JOB, "schedule: {cron: 30 26 * * *, inputs: {region: EU}}", "bad-cron: `30 26 * * *` is no schedule: "),
        (JOB, "schedule: {cron: '@daily', zone: Mars/Base, inputs: {region: EU}}", "unknown-name: no time zone"),
        (JOB, "schedule: {cron: '@daily', inputs: {region: EU, city: x}}", "unknown-name: no input is named `city`"),
        (JOB, "schedule: {cron: '@daily', inputs: {region: EU, share: x}}", "bad-literal"),
        (JOB, "schedule: {cron: '@daily', overlap: maybe, inputs: {region: EU}}", "wrong-kind: `overlap` must be"),
        (JOB, "schedule: {cron: '@daily', jitter: -5m, inputs: {region: EU}}", "bad-literal"),
        (JOB, "schedule: {cron: '@daily'}", "node-type-rule: a node of type `scheduled_job` runs without a caller: "),
        (JOB, "", "node-type-rule: a node of type `scheduled_job` runs without a caller: `region` needs"),
        (JOB.replace("scheduled_at: timestamp", "scheduled_at: date"), SCHEDULE,
         "unfed-input: `scheduled_at` cannot come from the schedule: it is a timestamp there, and date here"),
        (HANDLER, "schedule: {cron: '@daily'}", "node-type-rule: a node of type `event_handler` has no `schedule`"),
        (JOB, SCHEDULE + "events: {topic: a}", "node-type-rule: a node of type `scheduled_job` has no `events`"),
        (HANDLER, "queue: {by: payload}", "type-mismatch: expected string, found Order"),
        (HANDLER, "queue: {by: paylod}", "unknown-name: no input is named `paylod`"),
        (HANDLER, "queue: {priority: 1001}", "bad-literal"),
        (HANDLER, "queue: {attempts: 0}", "bad-literal"),
        (HANDLER, "queue: {debounce: 5s, singleton: true}", "wrong-kind: `singleton` must be absent beside `debounce`"),
        (JOB, SCHEDULE + "queue: {debounce: 5s}", "node-type-rule: a node of type `scheduled_job` has no `debounce`"),
        (JOB, SCHEDULE + "queue: {singleton: true}", "node-type-rule: a node of type `scheduled_job` has no `singlet"),
        (HANDLER, "queue: {backoff: {jitter: full}}", "unknown-key"),
        (HANDLER, "events: {topic: A B}", "bad-name"),
        (HANDLER.replace("payload", "body"), "events: {topic: a}", "unfed-input: `body` cannot come from a message: "),
        (HANDLER.replace("optional<string>", "optional<json>").replace(" + (event_key ?? '')", ""),
         "events: {topic: a}", "unfed-input: `event_key` cannot come from a message: "),
    ],
)  # fmt: skip
def test_what_is_refused(node: str, field: str, problem: str) -> None:
    found, problems = compile_work(node, f"{field}\n")
    assert found is None
    assert any(each.startswith(problem) for each in problems), problems


def test_a_function_has_no_queue() -> None:
    node = JOB.replace("scheduled_job", "function")
    assert compile_work(node, "queue: {}\n")[1] == [
        "node-type-rule: a node of type `function` has no `queue`: its callers wait for it"
    ]


WAIT = "  - {step: nap, operation: sleep, duration: 1h}\n"
SLEEPS = "security: {capabilities_required: [clock.sleep.system]}\n"


@pytest.mark.parametrize(
    "flow, field, expected",
    [
        (WAIT, "events: {topic: a, attempts: 5, order_by: event_key}", ["warning `attempts`", "warning `order_by`"]),
        (WAIT, "events: {topic: a}", ["note `attempts` and no `backoff` and no `order_by`"]),
        (WAIT, "queue: {backoff: {base: 2s}}", ["warning `backoff`"]),
        (WAIT, "queue: {attempts: 1}", []),
        ("", "events: {topic: a, attempts: 5}", []),
        ("  - {step: x, operation: compute, value: length(event_id)}\n" + WAIT, "queue: {attempts: 5}",
         ["note `attempts` and no `backoff`"]),
    ],
)  # fmt: skip
def test_settings_that_do_not_apply_after_a_wait(flow: str, field: str, expected: list[str]) -> None:
    text = HANDLER.replace("flow:\n", f"flow:\n{flow}") + field + "\n" + (SLEEPS if flow else "")
    _, bag = compile_source(SourceFile("work_v1.vsp", text))
    found = [each for each in bag.sorted(notes=True) if each.code.title == "not-after-wait"]
    start = f"after the wait `nap`, `{field.partition(':')[0]}` has no "
    assert [f"{each.severity.value} {each.headline.removeprefix(start)}" for each in found] == expected


def test_a_name_is_at_most_64_characters() -> None:
    _, problems = compile_work(HANDLER, f"events: {{topic: a, group: {'g' * 65}}}\n")
    assert problems[0].startswith("bad-name")
