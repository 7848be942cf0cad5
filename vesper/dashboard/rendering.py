"""Templates: the environment, its filters, and addresses of assets."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from vesper import __version__
from vesper.dashboard import words
from vesper.dashboard.action import Action
from vesper.dashboard.page import Page, filled

FOLDER: Final = Path(__file__).parent
STATIC: Final = FOLDER / "static"
_MENU: Final = (
    *(
        "/",
        "/versions",
        "/divergences",
        "/executions",
        "/workload",
        "/journal",
        "/verification",
        "/batches",
        "/alerts",
        "/audit",
    ),
    *("/milestones", "/play"),
)
"""Pages in the order of the menu; others come last."""


@cache
def asset(name: str) -> str:
    """Return the address of a file of `static`, which changes with its content."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/static/{name}?{digest}"


def make_environment(
    pages: Sequence[Page[Any]], actions: Mapping[str, Action], folders: Sequence[Path] = ()
) -> Environment:
    """Return the environment of all templates, in further folders too; it escapes everything."""
    found = Environment(
        loader=FileSystemLoader([FOLDER / "templates", *folders]),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals.update(
        asset=asset,
        url=lambda path, **parameters: filled(path, {name: str(each) for name, each in parameters.items()}),
        now_us=lambda: time.time_ns() // 1000,
        actions=actions,
        menu=sorted(((each.menu, each.path) for each in pages if each.menu), key=_menu_place),
        version=__version__,
    )
    found.filters.update(
        number=words.number_text,
        share=words.share_text,
        utc=words.utc_text,
        duration=words.duration_text,
        size=words.size_text,
        queue_place=words.queue_place,
        prose=prose,
    )
    found.globals["when_text"] = words.when_text
    found.globals["ui"] = found.get_template("macros.html").module
    return found


def prose(text: str) -> Markup:
    """Return a text with the parts between backticks as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    codes = (Markup("<code>{}</code>").format(part) if n % 2 else escape(part) for n, part in enumerate(parts))
    return Markup("").join(codes)


def _menu_place(item: tuple[str, str]) -> int:
    return _MENU.index(item[1]) if item[1] in _MENU else len(_MENU)
