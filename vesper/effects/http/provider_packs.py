"""Provider packs: TOML files with the facts of a provider, which `extends` of `[providers.NAME]` names."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from vesper.effects.settings import ConfigError, Table, close_to
from vesper.storage.file_access import read_regular
from vesper.storage.trust import distrust

PACKS = Path(__file__).parent / "packs"
_NAME = re.compile(r"[a-z][a-z0-9_-]*", re.ASCII)
_MAX_BYTES = 1 << 20
_AUTH_FORMS = ("basic", "value")
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class Pack:
    """The settings and the place of a pack."""

    name: str
    version: int
    path: Path
    provider: Mapping[str, object]
    webhook: Mapping[str, object]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def find_pack(table: Table, folder: Path | None) -> Pack:
    """Return the pack that `extends` names, from `packs` in `folder` or from Vesper. Raises `ConfigError`."""
    name = table.text("extends")
    folders = [PACKS] if folder is None else [folder / "packs", PACKS]
    for each in folders:
        path = each / f"{name}.toml"
        if _NAME.fullmatch(name) and path.is_file():
            return _read(path, is_own=each is not PACKS)
    known = sorted({each.stem for where in folders for each in where.glob("*.toml")})
    hint = close_to(name, known) or f"; there are {', '.join(known)}"
    raise table.error("extends", f"there is no pack `{name}`: neither in Vesper nor as packs/{name}.toml{hint}")


def extend(table: Table, folder: Path | None, read: Callable[[Table, str | None], _Read]) -> _Read:
    """Read the settings of a provider, merged over those of its pack. Raises `ConfigError`."""
    if "extends" not in table:
        return read(table, None)
    pack = find_pack(table, folder)
    given = {name: value for name, value in table.values().items() if name != "extends"}
    try:
        return read(Table(table.where, _merge(pack.provider, given)), str(pack))
    except ConfigError as problem:
        setting = problem.where.removeprefix(f"{table.where}.").partition(".")[0].partition("[")[0]
        if setting not in pack.provider:
            raise
        text = str(problem).removeprefix(f"{problem.where}: ")
        raise ConfigError(problem.where, f"{text} (with the pack {pack}, {pack.path})") from None


def _merge(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    """Merge two tables: settings of `above` win, `headers` are joined, `failures` of `above` come first."""
    merged = {**below, **above}
    for name in ("headers", "auth", "failures"):
        low, high = below.get(name), above.get(name)
        if isinstance(low, list) and isinstance(high, list):
            merged[name] = [*high, *low]
        elif isinstance(low, dict) and isinstance(high, dict) and (name == "headers" or _is_same_form(low, high)):
            merged[name] = {**low, **high}
    return merged


def _is_same_form(below: Mapping[str, object], above: Mapping[str, object]) -> bool:
    """Return whether credentials complete those of a pack instead of replacing them."""
    forms = [each for each in _AUTH_FORMS if each in above]
    return above.get("type", below.get("type")) == below.get("type") and all(each in below for each in forms)


def _read(path: Path, is_own: bool) -> Pack:
    where = f"packs/{path.name}"
    if is_own and (distrusted := distrust(path)) is not None:
        raise ConfigError(where, distrusted)
    try:
        values = tomllib.loads(read_regular(path, _MAX_BYTES).decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(where, f"this pack cannot be read: {error}") from None
    table = Table(where, values)
    provider, webhook = table.table("provider"), table.table("webhook")
    table.text("documentation", "")
    pack = Pack(path.stem, table.integer("version", least=1), path, provider.values(), webhook.values())
    table.done()
    if "extends" in provider:
        raise provider.error("extends", "a pack extends no other pack: copy its settings")
    return pack
