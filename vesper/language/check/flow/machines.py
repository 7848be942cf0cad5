"""Check of state machines: states, reachability, and the transitions that steps make."""

from __future__ import annotations

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast


def check_machine(machine: ast.StateMachine, bag: DiagnosticBag) -> ir.Machine:
    """Return the machine; report duplicate transitions and unreachable states."""
    words: dict[str, ast.Word] = {machine.initial.text: machine.initial}
    transitions: list[tuple[str, str]] = []
    for source, targets in machine.transitions:
        words.setdefault(source.text, source)
        for target in targets:
            words.setdefault(target.text, target)
            if (source.text, target.text) in transitions:
                bag.error(Code.DUPLICATE_KEY, target.span, key=target.text)
            else:
                transitions.append((source.text, target.text))
    if machine.initial.text not in {word for pair in transitions for word in pair}:
        names = dict.fromkeys(word for pair in transitions for word in pair)
        help_ = did_you_mean(machine.initial.text, names)
        problem = f"nothing starts from `{machine.initial.text}`, the initial state"
        bag.error(Code.BAD_TRANSITION, machine.initial.span, problem=problem, help=help_)
    reached = {machine.initial.text}
    while more := {target for source, target in transitions if source in reached} - reached:
        reached |= more
    for name, word in words.items():
        if name not in reached:
            bag.warning(Code.UNREACHABLE_STATE, word.span, state=name, initial=machine.initial.text)
    return ir.Machine(machine.name.text, machine.initial.text, tuple(words), tuple(transitions))


def sources_of(transition: ast.Transition, machine: ir.Machine, bag: DiagnosticBag) -> tuple[str, ...] | None:
    """Return the states from which a transition starts, or None after reporting an error."""
    target = transition.target
    is_sound = True
    for word in (target, *transition.sources):
        if word.text not in machine.states:
            help_ = did_you_mean(word.text, machine.states)
            problem = f"`{machine.name}` has no state `{word.text}`"
            bag.error(Code.BAD_TRANSITION, word.span, problem=problem, help=help_)
            is_sound = False
    if not is_sound:
        return None
    possible = tuple(source for source, to in machine.transitions if to == target.text)
    for word in transition.sources:
        if word.text not in possible:
            follow = [to for source, to in machine.transitions if source == word.text]
            help_ = f"from `{word.text}` it goes to {', '.join(follow)}" if follow else f"`{word.text}` is a last state"
            problem = f"`{machine.name}` has no transition from `{word.text}` to `{target.text}`"
            bag.error(Code.BAD_TRANSITION, word.span, problem=problem, help=help_)
            is_sound = False
    if not possible:
        problem = f"`{machine.name}` has no transition to `{target.text}`"
        bag.error(Code.BAD_TRANSITION, target.span, problem=problem)
        return None
    if not is_sound:
        return None
    named = {word.text for word in transition.sources}
    return tuple(state for state in machine.states if state in possible and (not named or state in named))
