"""Check of the fields `schedule`, `queue` and `events`: settings, and the source of each input."""

from __future__ import annotations

from collections.abc import Collection

from vesper.language.check.callees import Callees, NoCallees
from vesper.language.check.cases import read_values
from vesper.language.check.expressions.literals import Unread, read_literal
from vesper.language.check.flow.policies import PolicyReader
from vesper.language.check.supervisor_fields import SupervisorChecker
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements
from vesper.language.syntax import ast, shapes
from vesper.language.syntax.fields import Fields
from vesper.language.syntax.scalar_text import place_text
from vesper.language.syntax.slots import CONFIGURED_NAME
from vesper.language.syntax.supervision.document import SUPERVISOR
from vesper.language.syntax.yaml_tree import Mapping, Scalar
from vesper.language.work_bindings import Backoff, EventsField, QueueField, ScheduleField, WorkBindings
from vesper.policies.settings import MAX_CONCURRENCY
from vesper.values.json_forms import json_form
from vesper.values.json_value import Json, exact_text
from vesper.values.model import accept
from vesper.values.node_id import MAX_NAME
from vesper.values.outside_names import spelled_type, to_outside
from vesper.values.types import BOOLEAN, INTEGER, STRING, TIMESTAMP, OptionalOf, Type

DUE_TIME = "scheduled_at"
"""Input of a scheduled job that gets the due time."""
_MESSAGE_PARTS: dict[str, Type | None] = {"event_id": STRING, "event_key": OptionalOf(STRING), "payload": None}
"""Inputs that get a part of the message, with their types; a payload has any."""
_TYPES = {"schedule": "scheduled_job", "events": "event_handler"}
_MAX_ATTEMPTS = 100
_MAX_PRIORITY = 1_000
_MAX_RATE = 1_000_000_000


def is_required(declared: ir.Input) -> bool:
    """Return whether a caller must pass the input."""
    return declared.default is None and not isinstance(declared.type, OptionalOf)


def scheduled_names(document: ast.Document) -> tuple[str, ...]:
    """Return the names of the inputs that `schedule` sets."""
    field = document.work.get("schedule")
    inputs = None if field is None else field.get("inputs")
    named = (key.text for key, _ in inputs.entries) if isinstance(inputs, Mapping) else ()
    return () if field is None else (*named, DUE_TIME)


def check_work(
    document: ast.Document, node: ir.Node, bag: DiagnosticBag, callees: Callees | None = None
) -> WorkBindings | None:
    """Return the checked fields. None if the node has none of them."""
    supervisor = document.work.get(SUPERVISOR)
    if supervisor is not None:
        tree = SupervisorChecker(callees or NoCallees(), bag).supervisor(supervisor)
        return None if bag.has_errors else WorkBindings(supervisor=tree)
    for key, field in document.work.items():
        wanted = _TYPES.get(key)
        if wanted is not None and node.type != wanted:
            help_ = f"remove it, or write `type: {wanted}`"
            bag.error(Code.NODE_TYPE_RULE, field.span, type=node.type, problem=f"has no `{key}`", help=help_)
        elif key == "queue" and node.type == "function":
            problem, help_ = "has no `queue`: its callers wait for it", "remove it, or choose another `type`"
            bag.error(Code.NODE_TYPE_RULE, field.span, type=node.type, problem=problem, help=help_)
    if not document.work or bag.has_errors:
        return None
    checker = _WorkChecker(document, node, bag)
    schedule, queue, events = (document.work.get(key) for key in ("schedule", "queue", "events"))
    found = WorkBindings(
        None if schedule is None else checker.schedule(schedule),
        None if queue is None else checker.queue(queue),
        None if events is None else checker.events(events),
    )
    if queue is not None and found.queue is not None and found.queue.attempts > 1:
        _report_wait("queue", queue, ("attempts", "backoff"), node, bag)
    if events is not None:
        _report_wait("events", events, ("attempts", "backoff", "order_by"), node, bag)
    return found


def _report_wait(key: str, field: Fields, settings: tuple[str, ...], node: ir.Node, bag: DiagnosticBag) -> None:
    """Report settings that end with the first wait of a run. A warning if they never have an effect, else a note."""
    steps = (each for each in all_statements(node.body) if isinstance(each, ir.Request))
    wait = next((each for each in steps if each.effect_class == "wait"), None)
    if wait is None:
        return
    written = [(name, tree) for name in settings if (tree := field.get(name)) is not None]
    if wait is node.body[0] and written:
        help_ = "remove it: the run begins with the wait; `retry` and `on_error` of later steps handle their failures"
        for name, tree in written:
            bag.warning(Code.NOT_AFTER_WAIT, tree.span, settings=f"`{name}`", field=key, step=wait.name, help=help_)
    else:
        named = " and no ".join(f"`{each}`" for each in settings)
        bag.note(Code.NOT_AFTER_WAIT, field.span, settings=named, field=key, step=wait.name)


class _WorkChecker:
    def __init__(self, document: ast.Document, node: ir.Node, bag: DiagnosticBag) -> None:
        self._spans = {each.name.text: each.name.span for each in document.inputs}
        self._node = node
        self._bag = bag
        self._policies = PolicyReader(bag)
        self._inputs = {each.name: each for each in node.inputs if each.name not in node.flagged}

    def schedule(self, field: Fields) -> ScheduleField:
        cron, zone = field.scalar("cron"), field.scalar("zone")
        if cron is not None:
            self._check_cron(cron)
        if zone is not None:
            self._check_zone(zone)
        mapping = field.mapping("inputs")
        given = tuple((ast.Word(key.text, key.span), value) for key, value in (mapping.entries if mapping else ()))
        values = read_values(given, {name: each.type for name, each in self._inputs.items()}, "no input", self._bag)
        content = {}
        for name, value in values.items():
            declared = self._inputs[name]
            outside = to_outside(declared.type, accept(declared.type, value))
            content[declared.outside or name] = json_form(spelled_type(declared.type), outside)
        due = self._inputs.get(DUE_TIME)
        if due is not None and due.type != TIMESTAMP:
            self._refuse(DUE_TIME, "the schedule", f"it is a timestamp there, and {due.type} here")
        if due is not None and DUE_TIME in values:
            self._refuse(DUE_TIME, "`inputs`", "it gets the due time")
        return ScheduleField(
            "" if cron is None else " ".join(cron.text.split()),
            "UTC" if zone is None else zone.text,
            self._duration(field, "jitter") or 0,
            self._word(field, "overlap", ("skip", "queue", "allow"), "skip"),
            self._word(field, "missed", ("skip", "latest", "all"), "latest"),
            exact_text(Json(content)),
            None if due is None else due.outside or DUE_TIME,
        )

    def queue(self, field: Fields) -> QueueField:
        by = field.scalar("by")
        if by is not None:
            self._check_lane(by)
        if self._node.type == "scheduled_job":
            for key in ("debounce", "singleton"):
                if (tree := field.get(key)) is not None:
                    problem = f"has no `{key}`: each due time has a run"
                    help_ = "remove it: `overlap` of `schedule` decides while a run has not ended"
                    self._bag.error(Code.NODE_TYPE_RULE, tree.span, type=self._node.type, problem=problem, help=help_)
        elif field.get("debounce") is not None and (tree := field.get("singleton")) is not None:
            expected, help_ = "absent beside `debounce`", "keep the first run (`singleton`) or the last (`debounce`)"
            self._bag.error(Code.WRONG_KIND, tree.span, key="singleton", expected=expected, found="given", help=help_)
        rate = field.mapping("rate")
        entry = None if rate is None else Fields(rate, shapes.RATE_LIMIT, self._bag)
        return QueueField(
            self._name(field, "name", "default"),
            None if by is None else by.text,
            self._count(field, "concurrency", MAX_CONCURRENCY),
            None if entry is None else self._count(entry, "limit", _MAX_RATE),
            None if entry is None else self._duration(entry, "per"),
            self._priority(field),
            self._duration(field, "debounce"),
            self._read_boolean(field, "singleton"),
            self._count(field, "attempts", _MAX_ATTEMPTS) or QueueField().attempts,
            self._backoff(field),
        )

    def events(self, field: Fields) -> EventsField:
        parts = []
        for name, declared in self._inputs.items():
            if name not in _MESSAGE_PARTS:
                if is_required(declared):
                    problem = "a message has `event_id`, `event_key` and `payload`; other inputs need a default"
                    self._refuse(name, "a message", problem)
                continue
            wanted = _MESSAGE_PARTS[name]
            if wanted is not None and declared.type != wanted:
                self._refuse(name, "a message", f"it is {wanted} there, and {declared.type} here")
            parts.append((name, declared.outside or name))
        default = EventsField("", "")
        return EventsField(
            self._name(field, "topic", ""),
            self._name(field, "group", self._node.node_id),
            self._count(field, "concurrency", MAX_CONCURRENCY) or default.concurrency,
            self._count(field, "attempts", _MAX_ATTEMPTS) or default.attempts,
            self._backoff(field),
            self._word(field, "order_by", ("event_key", "none"), "event_key") == "event_key",
            tuple(parts),
        )

    # -- settings ---------------------------------------------------------------------------------

    def _check_cron(self, scalar: Scalar) -> None:
        from vesper.language.cron import CronMistake, parse_cron

        try:
            parse_cron(scalar.text)
        except CronMistake as mistake:
            placed = place_text(self._bag.source, scalar)
            is_plain = placed.text == scalar.text and mistake.end > mistake.start
            span = placed.span(mistake.start, mistake.end) if is_plain else scalar.span
            self._bag.error(Code.BAD_CRON, span, text=scalar.text, problem=mistake.message, help=mistake.help)

    def _check_zone(self, scalar: Scalar) -> None:
        from vesper.kernels.calendar.zones import is_zone, zone_names

        if not is_zone(scalar.text):
            help_ = did_you_mean(scalar.text, zone_names()) or "write an IANA name such as `Europe/Berlin`"
            self._bag.error(Code.UNKNOWN_NAME, scalar.span, kinds="no time zone", name=scalar.text, help=help_)

    def _check_lane(self, word: Scalar) -> None:
        declared = self._inputs.get(word.text)
        if declared is None:
            help_ = did_you_mean(word.text, self._inputs)
            self._bag.error(Code.UNKNOWN_NAME, word.span, kinds="no input", name=word.text, help=help_)
        elif declared.type != STRING:
            self._bag.error(Code.TYPE_MISMATCH, word.span, expected=STRING, found=declared.type)
        elif word.text in self._node.grants.sensitive:
            help_ = "queue by another input: lanes of this one are digests, which show equal values and no names"
            self._bag.warning(
                Code.SENSITIVE_PARAMETER, word.span, name=word.text, source="the lane of a queue", help=help_
            )

    def _refuse(self, name: str, source: str, problem: str) -> None:
        self._bag.error(Code.UNFED_INPUT, self._spans[name], name=name, source=source, problem=problem)

    def _word(self, field: Fields, key: str, allowed: Collection[str], default: str) -> str:
        scalar = field.scalar(key)
        if scalar is None:
            return default
        if scalar.text not in allowed:
            expected = " or ".join(f"`{each}`" for each in allowed)
            help_ = did_you_mean(scalar.text, allowed)
            self._bag.error(
                Code.WRONG_KIND, scalar.span, key=key, expected=expected, found=f"`{scalar.text}`", help=help_
            )
        return scalar.text

    def _name(self, field: Fields, key: str, default: str) -> str:
        scalar = field.scalar(key)
        if scalar is None:
            return default
        if not CONFIGURED_NAME.fullmatch(scalar.text) or len(scalar.text) > MAX_NAME:
            self._bag.error(Code.BAD_NAME, scalar.span, name=scalar.text, what=f"`{key}`")
        return scalar.text

    def _count(self, field: Fields, key: str, maximum: int) -> int | None:
        tree = field.get(key)
        return None if tree is None else self._policies.read_count(tree, key, maximum)

    def _duration(self, field: Fields, key: str) -> int | None:
        tree = field.get(key)
        return None if tree is None else self._policies.read_duration_us(tree, key)

    def _priority(self, field: Fields) -> int:
        tree = field.get("priority")
        value = 0 if tree is None else read_literal(INTEGER, tree, "priority", self._bag)
        if isinstance(value, Unread) or tree is None:
            return 0
        assert isinstance(value, int)
        if abs(value) > _MAX_PRIORITY:
            expected = f"a number from -{_MAX_PRIORITY:,} to {_MAX_PRIORITY:,}"
            self._bag.error(Code.BAD_LITERAL, tree.span, text=str(value), expected=expected)
        return value

    def _read_boolean(self, field: Fields, key: str) -> bool:
        tree = field.get(key)
        return tree is not None and read_literal(BOOLEAN, tree, key, self._bag) is True

    def _backoff(self, field: Fields) -> Backoff:
        mapping = field.mapping("backoff")
        if mapping is None:
            return Backoff()
        entry, default = Fields(mapping, shapes.ATTEMPT_WAITS, self._bag), Backoff()
        base = self._duration(entry, "base") or default.base_us
        factor = self._count(entry, "factor", 100) or default.factor
        return Backoff(base, factor, self._duration(entry, "max") or max(default.max_us, base))
