"""Checks of `vesper doctor`: grants against all nodes, and the roles of databases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from vesper.cli.doctor.finding import Finding
from vesper.cli.nodes.capabilities import call_tree, find_unconfigured
from vesper.config.grants import matches_word, refuse_void
from vesper.config.settings import Config
from vesper.effects.database.performer import DatabasePerformer
from vesper.effects.events.performer import OUTBOX_HELP, EventPerformer
from vesper.effects.performer import EffectFailed
from vesper.effects.settings import ConfigError
from vesper.host.performers import Performers
from vesper.host.permissions import declared_by, judge_capabilities
from vesper.host.plans import MachineConflict, plans_of
from vesper.language.diagnostics.capability_words import nearest_word
from vesper.language.ir.nodes import Node

_SQLITE_ADVICE = "correct `dsn`, or make the file with its tables; `create = true` makes an empty file, without tables"
LEAST_PRIVILEGE = "docs/how-to/configure-databases.md#use-a-role-with-few-rights"


def check_grants(settings: Config, nodes: Mapping[str, Node | None]) -> Iterator[Finding]:
    """Yield entries and words of `[[grants]]` that can match nothing in this collection of nodes."""
    declared: dict[str, set[str]] = {}
    broken: set[str] = set()
    for name, node in nodes.items():
        whole = None if node is None else call_tree(node, nodes)
        if whole is None:
            advice = "run `vesper check`; the words of its grants are checked when it has none"
            yield Finding("error", name, "the node has errors", advice)
            broken.add(name)
            continue
        try:
            declared |= dict(declared_by(whole))
        except MachineConflict as problem:
            yield Finding("error", name, str(problem))
    for grant in settings.grants:
        about = [name for name in nodes if grant.is_for(name)]
        if not about:
            text = f"is for {', '.join(f'`{each}`' for each in grant.nodes) or 'no node'}, which matches no node here"
            yield Finding("error", grant.where, text, "correct `nodes`, or remove the entry")
            continue
        if not broken.isdisjoint(about):
            continue  # what a node with errors declares is not known
        known = sorted({word for name in about for word in declared.get(name, ())})
        for kind, words in (("allow", grant.allow), ("deny", grant.deny)):
            for word in words:
                if (
                    word.count(".") >= 2
                    and not word.endswith(".*")
                    and not any(matches_word(word, each) for each in known)
                ):
                    nearest = nearest_word(word, known)
                    advice = f"did you mean `{nearest}`?" if nearest in known else "remove it"
                    text = f"`{word}` matches nothing that these nodes declare"
                    yield Finding("error", f"{grant.where}.{kind}", text, advice)
    for name, capabilities in declared.items():
        try:
            refuse_void(name, capabilities, settings.grants)
        except ConfigError as problem:
            yield Finding("error", problem.where, str(problem).removeprefix(f"{problem.where}: "))


def check_targets(settings: Config, nodes: Mapping[str, Node | None]) -> Iterator[Finding]:
    """Yield targets of granted nodes that are not configured, and topics without the outbox that a step needs."""
    for name, node in nodes.items():
        whole = None if node is None else call_tree(node, nodes)
        if whole is None:
            continue
        try:
            plans = plans_of(whole)
        except MachineConflict:
            continue  # `check_grants` yields it
        if not all(each.is_allowed for each in judge_capabilities(whole.node, plans, settings.grants).values()):
            continue
        missing = find_unconfigured(settings, plans, name)
        if missing is not None:
            yield Finding("error", name, missing, "correct the name in the node, or add the table to the configuration")
        for plan in plans.requests.values():
            topic = settings.parts.topics.get(plan.target, settings.parts.events)
            if (plan.effect, plan.effect_class) == ("event_publish", "txn") and topic and topic.database is None:
                text = f"{plan.node_id} publishes events of class `txn`, and the topic has no outbox"
                advice = 'add `database = "NAME"`, a database with the outbox, or make the step `keyed`'
                yield Finding("error", f"topics.{plan.target}", text, advice)


def check_outboxes(settings: Config) -> Iterator[Finding]:
    """Yield databases whose outbox cannot be read."""
    topics = (*settings.parts.topics.values(), *filter(None, (settings.parts.events,)))
    databases = dict.fromkeys(each.database for each in topics if each.database is not None)
    if not databases:
        return
    performers = Performers(replace(settings, path=None, modules=()), {})
    performer = performers.get("event_publish")
    assert isinstance(performer, EventPerformer)
    try:
        for name in databases:
            try:
                performer.waiting_in_outbox(name)
            except EffectFailed as problem:
                text = performers.secrets.redact(problem.message)
                if "vesper_outbox" in text:  # without the database itself, `check_databases` yields it
                    yield Finding("error", f"databases.{name}", f"the outbox cannot be read: {text}", OUTBOX_HELP)
    finally:
        performer.close()


def check_providers(settings: Config) -> Iterator[Finding]:
    """Yield the merged settings of each provider, and needed secrets that the source does not have."""
    performers = Performers(replace(settings, path=None, modules=()), {})
    for name, provider in settings.parts.providers.items():
        yield Finding("ok", f"providers.{name}", str(provider))
        if provider.is_private and not provider.allow_private_addresses:
            text = f"`{provider.base.origin.host}` is a loopback or private address, where no request may go"
            advice = "add `allow_private_addresses = true`, which allows `http://` too"
            yield Finding("error", f"providers.{name}", text, advice)
        for secret in sorted(provider.secret_names()):
            try:
                performers.secrets.text(secret)
            except EffectFailed as problem:
                advice = "without it no request can be sent"
                yield Finding("warning", f"providers.{name}", performers.secrets.redact(str(problem)), advice)


def check_databases(settings: Config) -> Iterator[Finding]:
    """Yield databases that cannot be reached, and roles with rights that no node needs."""
    performers = Performers(replace(settings, path=None, modules=()), {})
    performer = performers.get("database_query") if settings.parts.databases else None
    if not isinstance(performer, DatabasePerformer):
        return
    try:
        for name, database in settings.parts.databases.items():
            try:
                risks = performer.role_risks(name)
            except (EffectFailed, ConfigError) as problem:
                text = performers.secrets.redact(str(problem))
                advice = "correct `dsn`, or start the database" if database.path is None else _SQLITE_ADVICE
                yield Finding("error", f"databases.{name}", text, advice)
                continue
            for risk in risks:
                yield Finding("warning", f"databases.{name}", risk, f"use a role with few rights: {LEAST_PRIVILEGE}")
    finally:
        performer.close()
