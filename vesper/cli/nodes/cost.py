"""`vesper nodes cost`: the worst case of a node in requests to models, tokens, money and time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import Any

import click

from vesper.cli.settings import read_settings
from vesper.compiler import Compiled
from vesper.effects.models.prices import Prices, facts_of, known_models
from vesper.effects.models.settings import ModelSettings
from vesper.effects.settings import close_to
from vesper.engines.model_cost import INFINITE, Cost, CostReport, ModelTerms, UnknownModel, cost_of

_UNBOUNDED = "unbounded"
_DEFAULT_TIMEOUT_SECONDS = 600.0
_UNITS = ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "m"))


def worst_case(compiled: Compiled, model: str | None, config: Path | None) -> CostReport:
    """Return the worst case with the configured models, or with one model in the place of all."""
    configured = read_settings(config).parts.models
    terms = terms_of(configured)
    try:
        return cost_of(compiled, terms if model is None else _SingleModel(_terms_of_name(model, terms)))
    except UnknownModel as problem:
        name = str(problem)
        hint = close_to(name, sorted(terms)) or f": configure [models.{name}], or choose other prices with --model"
        raise click.ClickException(f"{compiled.node.node_id} asks `{name}`, which is not configured{hint}") from None


def terms_of(configured: Mapping[str, ModelSettings]) -> dict[str, ModelTerms]:
    """Return prices and limits of the configured models, each with its fallback models."""
    return {name: _terms(each, configured) for name, each in configured.items()}


class _SingleModel(dict[str, ModelTerms]):
    """A table of models that returns one model under every name."""

    def __init__(self, terms: ModelTerms) -> None:
        super().__init__()
        self._terms = terms

    def get(self, _name: str, _default: object = None) -> ModelTerms:
        return self._terms


def _terms_of_name(model: str, terms: Mapping[str, ModelTerms]) -> ModelTerms:
    if model in terms:
        return terms[model]
    facts = facts_of(model)
    if facts is None:
        known = [*terms, *known_models()]
        hint = close_to(model, sorted(known)) or f"; known are {', '.join(sorted(known))}"
        raise click.BadParameter(f"`{model}` is neither a configured model nor one of the table of prices{hint}")
    long = () if facts.long_prices is None else (facts.long_prices[1],)
    return ModelTerms(
        model, _highest_prices((facts.prices, *long)), facts.context, facts.max_output, _DEFAULT_TIMEOUT_SECONDS
    )


def _terms(settings: ModelSettings, configured: Mapping[str, ModelSettings], has_fallback: bool = True) -> ModelTerms:
    fallback = [_terms(configured[name], configured, False) for name in settings.fallback] if has_fallback else []
    long = () if settings.long_prices is None else (settings.long_prices[1],)
    return ModelTerms(
        settings.name,
        _highest_prices((settings.prices, *long)),
        settings.context,
        settings.max_output,
        None if settings.http is None else settings.http.timeout,
        tuple(fallback),
    )


def _highest_prices(listed: tuple[Prices, ...]) -> tuple[tuple[Decimal, Decimal], ...]:
    return tuple(
        (max(map(Decimal, (each.input, each.cached_input, each.cache_write))), Decimal(each.output)) for each in listed
    )


# -- text -----------------------------------------------------------------------------------------


def cost_lines(compiled: Compiled, report: CostReport) -> Iterator[str]:
    """Yield the totals, then the requests by step and by model, then the reasons for missing bounds."""
    total = report.total
    yield f"{compiled.node.node_id}: the most of one execution"
    if not report.steps:
        yield "  it asks no model"
        return
    rows = [
        ("requests", _count(total.requests)),
        ("input tokens", _count(total.input_tokens)),
        ("output tokens", _count(total.output_tokens)),
        ("money", _money(total.usd)),
        ("time", _duration(total.time_us)),
    ]
    width = max(len(text) for _, text in rows)
    yield from (f"  {name:<14}{text:>{width}}" for name, text in rows)
    for heading, table in (("step", report.steps), ("model", report.models)):
        yield ""
        yield from _table(heading, table)
    if any(_exceeds(each, total) for each in report.steps.values()):
        yield ""
        yield "Steps and models are shown without budgets, which hold for the totals."
    for path, reason in report.unbounded.items():
        yield f"note: `{path}` is unbounded: {reason}"


def _exceeds(part: Cost, total: Cost) -> bool:
    return part.usd > total.usd or part.input_tokens > total.input_tokens or part.requests > total.requests


def _table(heading: str, table: Mapping[str, Cost]) -> Iterator[str]:
    rows = [(heading, "requests", "input", "output", "money")]
    rows += [
        (name, _count(each.requests), _count(each.input_tokens), _count(each.output_tokens), _money(each.usd))
        for name, each in table.items()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        name, *cells = (f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        yield f"  {name.strip():<{widths[0]}}  {'  '.join(cells)}"


def _count(amount: Decimal) -> str:
    return _UNBOUNDED if amount == INFINITE else f"{int(amount):,}"


def _money(amount: Decimal) -> str:
    if amount == INFINITE:
        return _UNBOUNDED
    whole = amount.normalize()
    return f"${whole if whole.as_tuple().exponent in range(-20, -2) else amount.quantize(Decimal('0.01')):f}"


def _duration(amount: Decimal) -> str:
    """Return a time without its parts below a second, rounded up."""
    if amount == INFINITE:
        return _UNBOUNDED
    left, parts = _rounded_up(amount / 1_000_000) * 1_000_000, []
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        parts += [f"{count}{unit}"] if count else []
    parts += [f"{left // 1_000_000}s"] if left or not parts else []
    return " ".join(parts)


def _rounded_up(amount: Decimal) -> int:
    return int(amount.to_integral_value(ROUND_CEILING))


# -- json -----------------------------------------------------------------------------------------


def cost_json(compiled: Compiled, report: CostReport) -> dict[str, Any]:
    """Return the report as JSON data; an amount without a bound is null."""
    return {
        "node": compiled.node.node_id,
        "total": _amounts(report.total, with_time=True),
        "steps": {name: _amounts(each, with_time=False) for name, each in report.steps.items()},
        "models": {name: _amounts(each, with_time=False) for name, each in report.models.items()},
        "unbounded": report.unbounded,
    }


def _amounts(cost: Cost, with_time: bool) -> dict[str, Any]:
    whole = {"requests": cost.requests, "input_tokens": cost.input_tokens, "output_tokens": cost.output_tokens}
    whole |= {"time_us": cost.time_us} if with_time else {}
    found: dict[str, Any] = {name: None if each == INFINITE else _rounded_up(each) for name, each in whole.items()}
    return {**found, "usd": None if cost.usd == INFINITE else f"{cost.usd:f}"}
