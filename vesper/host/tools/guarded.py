"""Rules, hooks and confirmation around performers of tools and models.

They decide on a call before it is performed, and check its result.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Final

from vesper.config.tool_rules import ToolRule
from vesper.effects.files.patterns import path_problem
from vesper.effects.files.settings import FileSettings
from vesper.effects.hooks.registry import (
    HOOKS,
    MAX_RETRIES,
    Answer,
    Answered,
    Block,
    Call,
    Hooks,
    Replace,
    Retry,
    may_name,
)
from vesper.effects.performer import Ask, EffectFailed, Performer
from vesper.effects.stored_json import checked_value
from vesper.host.plans import capabilities_of
from vesper.values.generated.effects import EFFECTS
from vesper.values.model import Value, plain
from vesper.values.types import PRIMITIVES

TOOL_EFFECTS: Final = frozenset({"command_run", "mcp_call", "file_read", "file_write", "file_append"})
"""Effects that always pass the guard: their rules are in the configuration, or their arguments may hold secrets."""
_CONFIRMED_CALLS: Final = 10_000
"""Answers of persons that are remembered, so that a retry does not ask again."""


@dataclass(frozen=True, slots=True)
class Question:
    """A call that needs the consent of a person."""

    call: Call
    rule: str
    """The rule of the configuration that asks."""


Confirm = Callable[[Question], bool | str]
"""Answers a question: True allows, False denies, and a text denies with this reason."""


class Guard:
    """The rules and hooks of a Host, and the function that requests the consent of a person."""

    def __init__(
        self,
        rules: tuple[ToolRule, ...],
        files: Mapping[str, FileSettings],
        redact: Callable[[str], str],
        hooks: Hooks = HOOKS,
    ) -> None:
        self.rules = rules
        self.hooks = hooks
        self._files = files
        self.confirm: Confirm | None = None
        self.redact = redact
        self._answers: OrderedDict[tuple[str, str, str], bool | str] = OrderedDict()
        self._lock = Lock()

    def around(self, effect: str, performer: Performer) -> Performer:
        """Return the performer, or a guarded one where a rule or a hook may apply."""
        if effect in TOOL_EFFECTS or self._concerns(effect):
            return GuardedPerformer(performer, self)
        self.hooks.note_unguarded(effect)
        return performer

    def _concerns(self, effect: str) -> bool:
        named = any(may_name(word, effect) for rule in self.rules for word in rule.tools)
        return named or self.hooks.concern(effect)

    def decide(self, call: Call) -> None:
        """Raise `EffectFailed` where a pattern, a rule or a person refuses the call."""
        if call.effect.startswith("file_"):
            problem = path_problem(self._files.get(call.fixed["root"]), call.effect, str(call.arguments["path"]))
            if problem is not None:
                raise refusal(call.effect, problem)
        request = {**call.fixed, **call.arguments}
        rule = next((rule for rule in self.rules if rule.applies(call.tools, request)), None)
        if rule is None or rule.decision == "allow":
            return
        if rule.decision == "deny":
            raise refusal(call.effect, f"{rule.where} denies this call of `{call.tools[0]}`")
        answer = self._request_consent(Question(call, rule.where))
        if answer is not True:
            reason = f": {answer}" if isinstance(answer, str) and answer else ""
            raise refusal(call.effect, f"a person denied this call of `{call.tools[0]}`{reason}")

    def _request_consent(self, question: Question) -> bool | str:
        call = question.call
        if self.confirm is None:
            raise refusal(
                call.effect,
                f"{question.rule} asks before `{call.tools[0]}`, and nothing here can answer: set "
                "`host.guard.confirm`, or let the tool ask with an `interrupt` step of kind `confirmation`",
            )
        key = (call.execution, call.path, json.dumps(call.arguments, sort_keys=True, default=str))
        with self._lock:
            known = self._answers.get(key)
        if known is not None:
            return known
        answer = self.confirm(question)
        with self._lock:
            self._answers[key] = answer
            while len(self._answers) > _CONFIRMED_CALLS:
                self._answers.popitem(last=False)
        return answer

    def refuse_secrets(self, call: Call) -> None:
        """Raise `EffectFailed` where the arguments hold the text of a secret that was read here."""
        text = json.dumps({**call.fixed, **call.arguments}, ensure_ascii=False, sort_keys=True, default=str)
        if self.redact(text) != text:
            raise refusal(call.effect, f"the arguments of `{call.tools[0]}` hold the text of a secret")


class GuardedPerformer:
    """Performs the calls that the rules, the hooks and a person allow."""

    def __init__(self, performer: Performer, guard: Guard) -> None:
        self._performer = performer
        self._guard = guard

    def perform(self, ask: Ask) -> object:
        tools = capabilities_of(ask.effect, tuple(ask.fixed.items()))
        arguments = {name: plain(value) for name, value in ask.arguments.items()}
        call = Call(tools, ask.effect, dict(ask.fixed), arguments, ask.execution, ask.path, ask.is_sensitive)
        changed, answer = self._run_before_hooks(call)
        self._guard.refuse_secrets(changed)
        self._guard.decide(changed)
        if answer is not None:
            return _check_value(ask, answer.value, "before", tools)
        if changed is not call:
            ask = replace(ask, arguments=_check_arguments(ask, changed))
        for _ in range(MAX_RETRIES + 1):
            answered = self._attempt(ask)
            final = self._run_after_hooks(changed, answered)
            if final is not None:
                return _final_value(ask, final, answered, tools)
            if ask.effect_class not in ("read", "keyed"):
                message = f"a hook asks to repeat `{tools[0]}`, which is of class `{ask.effect_class}`"
                raise EffectFailed("unavailable", message, may_have_happened=True)
        raise EffectFailed("unavailable", f"a hook asked to repeat `{tools[0]}` more than {MAX_RETRIES} times")

    def probe(self, ask: Ask) -> object:
        return self._performer.probe(ask)

    def close(self) -> None:
        self._performer.close()

    def _run_before_hooks(self, call: Call) -> tuple[Call, Answer | None]:
        for hook in self._guard.hooks.before(call.tools):
            match _call_hook(call, lambda hook=hook, call=call: hook(call)):  # type: ignore[misc]  # bound now
                case Block(reason):
                    raise refusal(call.effect, f"a hook blocked `{call.tools[0]}`: {self._guard.redact(reason)}")
                case Replace(Mapping() as value):
                    call = replace(call, arguments=dict(value))
                case Answer() as answer:
                    return call, answer
                case None:
                    pass
                case other:
                    raise refusal(call.effect, f"a hook before `{call.tools[0]}` gave {type(other).__name__}")
        return call, None

    def _attempt(self, ask: Ask) -> Answered | EffectFailed:
        try:
            return Answered(self._performer.perform(ask))
        except EffectFailed as failure:
            return failure

    def _run_after_hooks(self, call: Call, answered: Answered | EffectFailed) -> Answered | None:
        """Return the answer after all hooks; None if a hook requests another attempt."""
        failed = isinstance(answered, EffectFailed)
        shown = Answered(None, answered.code, answered.message) if isinstance(answered, EffectFailed) else answered
        for hook in self._guard.hooks.after(call.tools):
            match _call_hook(call, lambda hook=hook, shown=shown: hook(call, shown), is_performed=not failed):  # type: ignore[misc]
                case Block(reason):
                    message = f"a hook withheld the result of `{call.tools[0]}`: {self._guard.redact(reason)}"
                    raise refusal(call.effect, message, may_have_happened=True)
                case Replace(value):
                    shown = Answered(value)
                case Retry():
                    return None
                case None:
                    pass
                case other:
                    message = f"a hook after `{call.tools[0]}` gave {type(other).__name__}"
                    raise refusal(call.effect, message, may_have_happened=True)
        return shown


def refusal(effect: str, message: str, may_have_happened: bool = False) -> EffectFailed:
    """Return the failure of a refused call, with the nearest code that the effect declares."""
    codes = EFFECTS[effect].codes()
    code = next((each for each in ("not_allowed", "invalid_argument") if each in codes), "unavailable")
    return EffectFailed(code, message, may_have_happened=may_have_happened)


def _call_hook(call: Call, hook: Callable[[], object], is_performed: bool = False) -> object:
    """Call a hook. One that raises blocks the call."""
    try:
        return hook()
    except Exception as error:  # a hook of the application may raise anything
        message = f"a hook for `{call.tools[0]}` raised {type(error).__name__}"
        raise refusal(call.effect, message, may_have_happened=is_performed) from error


def _final_value(ask: Ask, final: Answered, answered: Answered | EffectFailed, tools: tuple[str, ...]) -> object:
    if final is answered:
        return final.value
    if final.code is not None:
        assert isinstance(answered, EffectFailed)
        raise answered
    return _check_value(ask, final.value, "after", tools)


def _check_value(ask: Ask, value: object, when: str, tools: tuple[str, ...]) -> object:
    return checked_value(ask.gives, value, f"the value of a hook {when} `{tools[0]}`")


def _check_arguments(ask: Ask, changed: Call) -> dict[str, Value]:
    """Return the arguments of a hook's `Replace`, as values of their declared types."""
    found: dict[str, Value] = {}
    for spec in EFFECTS[ask.effect].arguments:
        if spec.name not in changed.arguments:
            continue
        value = changed.arguments[spec.name]
        if value is plain(ask.arguments.get(spec.name)) or value == plain(ask.arguments.get(spec.name)):
            found[spec.name] = ask.arguments[spec.name]
        elif spec.type in PRIMITIVES:
            found[spec.name] = checked_value(PRIMITIVES[spec.type], value, f"`{spec.name}` of a hook")
        else:
            raise refusal(ask.effect, f"a hook cannot replace `{spec.name}`, which is {spec.type}")
    return found
