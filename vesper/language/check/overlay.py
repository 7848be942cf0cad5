"""An overlay: entries that replace or add values of parameters for a run. It may describe a planned reform.

The file has one field, `parameters`, with values by date for each name. A name `LIBRARY.NAME` means the parameter of
that library or node only. Errors are reported at the overlay's own lines.
"""

from __future__ import annotations

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.syntax import library_ast
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_to_ast import build_overlay


class Overlay:
    """The entries of an overlay, and which of them were used."""

    def __init__(self, source: SourceFile) -> None:
        self.bag = DiagnosticBag(source)
        tree = read_yaml(self.bag)
        found = () if tree is None else build_overlay(tree, self.bag)
        self._entries = {name.text: (name, entries) for name, entries in found}
        self._declared: set[str] = set()
        self._used: set[str] = set()

    def entries_of(self, document_id: str, name: str) -> tuple[library_ast.ParameterEntry, ...]:
        """Return the entries for a parameter that this document declares."""
        exact = f"{document_id}.{name}"
        self._declared |= {name, exact}
        found = [each for each in (name, exact) if each in self._entries]
        self._used |= set(found)
        return tuple(entry for each in found for entry in self._entries[each][1])

    def report_unused(self) -> None:
        """Report names that are not parameters. The node, its libraries and called nodes are searched."""
        for text, (name, _) in self._entries.items():
            if text not in self._used:
                help_ = did_you_mean(text, sorted(self._declared))
                self.bag.error(Code.UNKNOWN_NAME, name.span, kinds="no parameter", name=text, help=help_)
