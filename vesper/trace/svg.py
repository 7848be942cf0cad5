"""Elements of SVG: every text and attribute is escaped here."""

from __future__ import annotations

from html import escape


def element(name: str, *children: str, text: str = "", title: str = "", **attributes: object) -> str:
    """Return an element. `class_` is the attribute `class`; underscores become hyphens.

    Children are elements, and `text` and `title` are texts.
    """
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(each)}"' for key, each in attributes.items())
    inside = (element("title", text=title) if title else "") + "".join(children) + escape(text)
    return f"<{name}{written}>{inside}</{name}>" if inside else f"<{name}{written}/>"


def _value(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else escape(str(value))
