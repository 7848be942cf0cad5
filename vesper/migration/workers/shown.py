"""What the helper process says, as far as it shows that it was done.

That nothing was wrong is no agreement: a process that did nothing finds nothing. So whoever ran a part of an
enumeration says a word for each input, and whoever asked looks at a few of these words, which nobody knew beforehand.
An agreement on records says what came of their requests.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from vesper.journal.typed_json import encode
from vesper.migration.compare.paths import PathNote, settled_of
from vesper.migration.compare.reports import Agreement, Disagreement, Fault, Report
from vesper.migration.compare.transcript import Transcript

_WORD = 8
_LOOKS = 32


@dataclass(frozen=True, slots=True)
class PartAgreed(Agreement):
    """Of no path, and no evidence by itself: an enumeration is, when all of it agreed."""

    words: bytes = b""

    @staticmethod
    def on(words: bytes) -> PartAgreed:
        return PartAgreed(PathNote(b"", (), "enumerated"), 0, words=words)

    def is_of(self, count: int, at: Callable[[int], object]) -> bool:
        """Whether it says that so many inputs were run, and that input *n* of them was `at(n)`. Only a few are looked
        at: this takes time from callers, and running the inputs does not."""
        if len(self.words) != _WORD * count:
            return False
        looks = random.sample(range(count), min(_LOOKS, count))
        return all(self.words[_WORD * each : _WORD * (each + 1)] == word_of(at(each)) for each in looks)


def word_of(inputs: object) -> bytes:
    return hashlib.blake2b(encode(inputs), digest_size=_WORD, person=b"vesper.part.word").digest()


def shown(report: Report | None, transcript: Transcript | None) -> Report | None:
    """A report on these records; None for a part of an enumeration, which `enumerate_all` looks at. Raises for what is
    on something else. The records are ours: what came back of them is not needed."""
    match report:
        case PartAgreed():
            is_so = transcript is None
        case Agreement(note):
            is_so = transcript is not None and note.settled == settled_of(transcript.exchanges)
        case Disagreement() | Fault() if transcript is not None:
            return replace(report, transcript=transcript)
        case _:
            return report
    if not is_so:
        raise ValueError("an agreement on something else")
    return report
