"""Reader of the id that a text declares.

It reads no further than the id's entry. A file with errors has an id too, so that it can be found and named. Its errors
are reported elsewhere.
"""

from __future__ import annotations

from vesper.language.diagnostics.diagnostic import CheckingStopped, DiagnosticBag
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.syntax.yaml.flow import TooLarge, WantedValue
from vesper.language.syntax.yaml.parser import YamlParser
from vesper.language.syntax.yaml.reader import check_characters
from vesper.language.syntax.yaml.scalars import YamlFault
from vesper.language.syntax.yaml_tree import Scalar


def declared_id(text: str) -> tuple[str, Span] | None:
    """Return the value of the top-level key `node_id`, or of `library_id`, and its span.

    Returns None where it cannot be read.
    """
    return _value_of("node_id", text) or (_value_of("library_id", text) if "library_id" in text else None)


def _value_of(key: str, text: str) -> tuple[str, Span] | None:
    bag = DiagnosticBag(SourceFile("", text))
    try:
        if not check_characters(bag):
            return None
        YamlParser(bag, wanted_key=key).parse()
    except WantedValue as found:
        return (found.value.text, found.value.span) if isinstance(found.value, Scalar) else None
    except (YamlFault, TooLarge, CheckingStopped):
        return None
    return None
