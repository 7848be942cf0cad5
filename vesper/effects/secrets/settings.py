"""The settings of secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vesper.effects.settings import Table

_FUNCTION: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class SecretSettings:
    """`[secrets]`."""

    source: str
    prefix: str = "VESPER_SECRET_"
    """Of environment variables: `stripe_key` is `VESPER_SECRET_STRIPE_KEY`."""
    path: Path | None = None
    """Of files: the folder with one file for each secret."""
    function: str | None = None
    """`module:function`, which takes the name and gives the text, or None where there is none."""
    ttl: float = 60.0
    """Seconds after which the source is asked again, so that a new text is picked up."""
    timeout: float = 10.0
    """Seconds that `function` may take."""

    @classmethod
    def from_table(cls, name: str, table: Table, base: Path | None = None) -> SecretSettings:  # noqa: ARG003
        """There is one such table, so `name` is not looked at. A relative `path` is below `base`."""
        source = table.choice("source", ("environment", "file", "python"), "environment")
        for setting, of in (("prefix", "environment"), ("path", "file"), ("function", "python"), ("timeout", "python")):
            if setting in table and source != of:
                raise table.error(setting, f'only `source = "{of}"` has this setting')
        path = None
        if source == "file":
            path = Path(table.text("path"))
            if not path.is_absolute():
                if base is None:
                    raise table.error("path", f"an absolute path is expected, not `{path}`")
                path = base / path
            if not path.is_dir():
                raise table.error("path", f"there is no folder `{path}`")
        function = table.text("function") if source == "python" else None
        if function is not None and not _FUNCTION.fullmatch(function):
            raise table.error("function", f"`module:function` is expected, not `{function}`")
        found = cls(
            source,
            table.text("prefix", "VESPER_SECRET_"),
            path,
            function,
            table.seconds("ttl", 60.0),
            table.seconds("timeout", 10.0),
        )
        table.done()
        return found
