"""`[models.NAME]` of the configuration: the provider of a model, its limits, its prices and its fallbacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from vesper.effects.custom.registry import check_effect_name
from vesper.effects.http.settings import HttpSettings
from vesper.effects.models.limits import ModelLimits, read_limits
from vesper.effects.models.prices import FREE, ModelFacts, Prices, facts_of, known_models, read_prices
from vesper.effects.settings import ConfigError, Table, close_to
from vesper.values.generated.effects import EFFECTS

Api = Literal["anthropic", "openai", "ollama", "azure", "vertex", "bedrock", "custom"]
PromptCache = Literal["off", "5m", "1h"]
_BASE_URLS: Mapping[str, str] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "ollama": "http://127.0.0.1:11434",
}
_NEEDS_URL: Mapping[str, str] = {
    "azure": "https://RESOURCE.openai.azure.com",
    "vertex": "https://REGION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/REGION",
    "bedrock": "https://bedrock-runtime.REGION.amazonaws.com",
}
_KEY_HEADERS: Mapping[str, tuple[str, str]] = {
    "anthropic": ("x-api-key", "{secret:%s}"),
    "azure": ("api-key", "{secret:%s}"),
    "openai": ("Authorization", "Bearer {secret:%s}"),
    "ollama": ("Authorization", "Bearer {secret:%s}"),
    "vertex": ("Authorization", "Bearer {secret:%s}"),
}
_OF_ANTHROPIC = ("anthropic", "vertex", "bedrock")
_OF_PROVIDER = (
    *("headers", "auth", "timeout", "connect_timeout", "max_response", "max_connections", "retry_after_max"),
    *("allow_private_addresses", "allow_http", "ca_file"),
)
"""Settings that mean what they mean for a provider."""
_DEFAULTS: Mapping[str, object] = {"timeout": "10m", "max_response": "8 MiB"}
_FALLBACK_ON = ("rate_limit", "overloaded", "timeout", "unavailable")
_MAX_TOKENS = 100_000_000


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """One model. Prices and limits are those of the settings, or else of Vesper's own table."""

    name: str
    api: Api
    model: str
    context: int | None
    max_output: int | None
    prices: Prices
    long_prices: tuple[int, Prices] | None = None
    """Prices of requests with more input tokens than this."""
    prompt_cache: PromptCache = "off"
    is_adaptive: bool = False
    """Whether the model decides on its own how long it reasons."""
    fallback: tuple[str, ...] = ()
    fallback_on: tuple[str, ...] = _FALLBACK_ON
    adapter: str = ""
    """Name of the registered effect that answers, of `api = "custom"`."""
    http: HttpSettings | None = None
    """None for a model of the application."""
    limits: ModelLimits | None = None

    def secret_names(self) -> set[str]:
        """Return the secrets without which no request can be sent."""
        return set() if self.http is None else self.http.secret_names()


def read_models(tables: Mapping[str, Table], folder: Path) -> dict[str, ModelSettings]:
    """Read all models. Raises `ConfigError`."""
    found = {name: _read_model(name, table, folder) for name, table in tables.items()}
    for name, each in found.items():
        for other in each.fallback:
            if other not in found:
                hint = close_to(other, sorted(found))
                raise tables[name].error("fallback", f"there is no [models.{other}]{hint}")
            if other == name or each.fallback.count(other) > 1:
                raise tables[name].error("fallback", f"`{other}` would be asked twice for one request")
    return found


def _read_model(name: str, table: Table, folder: Path) -> ModelSettings:
    api = cast(Api, table.choice("api", (*_BASE_URLS, *_NEEDS_URL, "custom")))
    cached = cast(PromptCache, table.choice("prompt_cache", ("off", "5m", "1h"), "off"))
    if cached != "off" and api not in _OF_ANTHROPIC:
        problem = f"`{api}` has no such request: it caches on its own or not at all"
        raise table.error("prompt_cache", problem)
    if api == "custom":
        adapter = table.text("adapter")
        try:
            check_effect_name(adapter)
        except ValueError as problem:
            raise table.error("adapter", str(problem)) from None
        model, http = table.text("model", adapter), None
    else:
        model, adapter, http = table.text("model"), "", _provider(name, api, table, folder)
    if not model or len(model) > 512 or not model.isprintable():
        raise table.error("model", "the name that the provider knows the model by is expected")
    facts = facts_of(model, is_kept_an_hour=cached == "1h")
    prices, facts = _prices(api, model, table, facts, cached)
    is_of_table = facts is not None and prices is facts.prices
    found = ModelSettings(
        name=name,
        api=api,
        model=model,
        context=_tokens(table, "context", None if facts is None else facts.context),
        max_output=_tokens(table, "max_output", None if facts is None else facts.max_output),
        prices=prices,
        long_prices=_long_prices(table) or (facts.long_prices if facts is not None and is_of_table else None),
        prompt_cache=cached,
        is_adaptive=table.boolean("adaptive_thinking", facts is not None and facts.is_adaptive),
        fallback=table.texts("fallback", ()),
        fallback_on=_codes(table),
        adapter=adapter,
        http=http,
        limits=read_limits(table, None if http is None else http.timeout),
    )
    table.done()
    return found


def _provider(name: str, api: Api, table: Table, folder: Path) -> HttpSettings:
    """Return the settings of the model's provider, read as those of `[providers.NAME]`."""
    merged: dict[str, Any] = {**_DEFAULTS, **{each: table.value(each) for each in _OF_PROVIDER if each in table}}
    if api in _NEEDS_URL and "base_url" not in table:
        raise table.error("base_url", f"`{api}` has an address for each customer: write `{_NEEDS_URL[api]}`")
    merged["base_url"] = table.text("base_url", _BASE_URLS.get(api, ""))
    if api == "ollama" and "base_url" not in table:
        merged = {"allow_private_addresses": True, **merged}
    if "key_secret" in table:
        if "auth" in table or api not in _KEY_HEADERS:
            problem = (
                "`auth` has the credentials already"
                if "auth" in table
                else f'`{api}` signs its requests: write `auth = {{type = "aws_sigv4", service = "{api}", …}}`'
            )
            raise table.error("key_secret", problem)
        header, value = _KEY_HEADERS[api]
        merged["auth"] = {"header": header, "value": value % table.text("key_secret")}
    elif "auth" not in table and api != "ollama":
        help_ = (
            '`auth = {type = "aws_sigv4", …}`' if api == "bedrock" else '`key_secret = "NAME"`, the name of a secret'
        )
        raise table.error("key_secret" if api != "bedrock" else "auth", f"the credentials are missing: write {help_}")
    try:
        return HttpSettings.from_table(name, Table(table.where, merged), folder)
    except ConfigError as problem:
        if problem.where == f"{table.where}.auth.value" and "key_secret" in table:
            raise table.error("key_secret", "the name of a secret in lower case is expected") from None
        raise


def _prices(
    api: Api, model: str, table: Table, facts: ModelFacts | None, cached: PromptCache
) -> tuple[Prices, ModelFacts | None]:
    """Return the prices, and the facts of the model or of the row that `prices` names."""
    if "prices" in table and isinstance(table.value("prices"), str):
        row = table.text("prices")
        facts = facts_of(row, is_kept_an_hour=cached == "1h")
        if facts is None:
            hint = close_to(row, sorted(known_models())) or f"; it has {', '.join(sorted(known_models()))}"
            raise table.error("prices", f"the table of prices has no `{row}`{hint}")
    elif "prices" in table:
        inner = table.table("prices")
        prices = read_prices(inner)
        inner.done()
        return prices, facts
    if facts is not None:
        return facts.prices, facts
    if api == "ollama":
        return FREE, None
    raise table.error(
        "prices",
        f"the table of prices has no `{model}`: write `{{input = …, output = …}}` in dollars for a million tokens, "
        "or the name of a model whose prices it has",
    )


def _long_prices(table: Table) -> tuple[int, Prices] | None:
    if "long_prices" not in table:
        return None
    inner = table.table("long_prices")
    found = inner.integer("above", least=1, most=_MAX_TOKENS), read_prices(inner)
    inner.done()
    return found


def _tokens(table: Table, name: str, default: int | None) -> int | None:
    return table.integer(name, least=1, most=_MAX_TOKENS) if name in table else default


def _codes(table: Table) -> tuple[str, ...]:
    found, known = table.texts("fallback_on", _FALLBACK_ON), EFFECTS["model_call"].codes()
    for code in found:
        if code not in known:
            raise table.error("fallback_on", f"a model does not fail with `{code}`" + close_to(code, sorted(known)))
    return found
