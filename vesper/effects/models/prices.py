"""The dated table of prices and limits of models that is part of Vesper."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from vesper.effects.settings import Table

TABLE = Path(__file__).parent / "prices.toml"
_PRICE = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?")
_DATED = re.compile(r"(?:[-@][0-9]{8}|-[0-9]{4}-[0-9]{2}-[0-9]{2})?(?:-v[0-9]+(?::[0-9]+)?)?$")
_OF_BEDROCK = re.compile(r"^(?:[a-z]{2,6}\.)?anthropic\.")


class Prices(NamedTuple):
    """Prices in US dollars for a million tokens, as exact decimals."""

    input: str
    output: str
    cached_input: str
    cache_write: str


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts about a model from the table."""

    context: int
    max_output: int
    prices: Prices
    long_prices: tuple[int, Prices] | None = None
    """Prices of requests with more input tokens than this."""
    is_adaptive: bool = False


FREE = Prices("0", "0", "0", "0")


@cache
def known_models() -> Mapping[str, Mapping[str, Any]]:
    """Return the rows of the table by model name."""
    with TABLE.open("rb") as file:
        rows: Mapping[str, Mapping[str, Any]] = tomllib.load(file)["models"]
    return rows


def facts_of(model: str, *, is_kept_an_hour: bool = False) -> ModelFacts | None:
    """Return the facts of a model, also for a name with a date or in Bedrock's form. None if it is unknown."""
    row = known_models().get(model) or known_models().get(_DATED.sub("", _OF_BEDROCK.sub("", model)))
    if row is None:
        return None
    written = "cache_write_1h" if is_kept_an_hour else "cache_write"
    long = row.get("long")
    return ModelFacts(
        row["context"],
        row["max_output"],
        _row_prices(row, written),
        None if long is None else (long["above"], _row_prices(long, written)),
        row.get("is_adaptive", False),
    )


def _row_prices(row: Mapping[str, Any], written: str) -> Prices:
    return Prices(row["input"], row["output"], row["cached_input"], row.get(written, row["input"]))


def read_prices(table: Table) -> Prices:
    """Read `{input, output}` and the prices of cached input, by default that of `input`. Raises `ConfigError`."""
    found = table.text("input"), table.text("output")
    prices = Prices(*found, table.text("cached_input", found[0]), table.text("cache_write", found[0]))
    for name, text in zip(Prices._fields, prices, strict=True):
        if not _PRICE.fullmatch(text):
            raise table.error(name, f"dollars for a million tokens such as `0.25` are expected, not `{text}`")
    return prices
