"""Checks of `vesper doctor`: grants against all nodes, and the roles of databases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from vesper.cli.doctor.finding import Finding
from vesper.cli.nodes.capabilities import call_tree
from vesper.config.grants import matches_word, refuse_void
from vesper.config.settings import Config
from vesper.effects.database.performer import DatabasePerformer
from vesper.effects.performer import EffectFailed
from vesper.effects.settings import ConfigError
from vesper.host.performers import Performers
from vesper.host.permissions import declared_by
from vesper.host.plans import MachineConflict
from vesper.language.diagnostics.capability_words import nearest_word
from vesper.language.ir.nodes import Node

LEAST_PRIVILEGE = "docs/how-to/configure-databases.md#use-a-role-with-few-rights"


def check_grants(settings: Config, nodes: Mapping[str, Node | None]) -> Iterator[Finding]:
    """Yield entries and words of `[[grants]]` that can match nothing in this collection of nodes."""
    declared: dict[str, set[str]] = {}
    for name, node in nodes.items():
        whole = None if node is None else call_tree(node, nodes)
        if whole is None:
            yield Finding("error", name, "the node has errors", "run `vesper check`")
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


def check_providers(settings: Config) -> Iterator[Finding]:
    """Yield the merged settings of each provider, and secrets that it needs and the source does not have."""
    performers = Performers(replace(settings, path=None, modules=()), {})
    for name, provider in settings.parts.providers.items():
        yield Finding("ok", f"providers.{name}", str(provider))
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
        for name in settings.parts.databases:
            try:
                risks = performer.role_risks(name)
            except (EffectFailed, ConfigError) as problem:
                text = performers.secrets.redact(str(problem))
                yield Finding("error", f"databases.{name}", text, "correct `dsn`, or start the database")
                continue
            for risk in risks:
                yield Finding("warning", f"databases.{name}", risk, f"use a role with few rights: {LEAST_PRIVILEGE}")
    finally:
        performer.close()
