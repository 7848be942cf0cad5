"""An entry as the line that is stored: canonical bytes, and the hash that chains it to the line before.

A line is a JSON array (docs/spec/journal.md). Its last two elements are the form of the body and the body: `plain` is
typed JSON, `sealed` is encrypted, `blob` stands in the table of blobs. The chain goes over what is stored, so that it
holds without any key, and after the key was deleted.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from json.encoder import encode_basestring
from typing import Any

from vesper.journal.entry import FORMAT, Entry, Kind
from vesper.journal.errors import JournalError, TooLarge
from vesper.journal.limits import Limits
from vesper.journal.sealing import RunKey
from vesper.journal.typed_json import EXACT_IN_PYTHON, as_bytes, decode, encode_text

try:
    from vesper._direct import journal_intent, journal_line
except ImportError:  # an installation without the Rust engine: every line is written here
    _HAS_NATIVE = False
else:
    _HAS_NATIVE = True

BRANCH = "main"
"""The only branch so far: what was executed. Others are for executions that leave it while somebody debugs."""
_START = f'[{FORMAT},"{BRANCH}",'
_quoted = encode_basestring


@dataclass(frozen=True, slots=True)
class Blob:
    """A body that stands beside its line. `name` is the SHA-256 of the content, or of the sealed data."""

    name: str
    size: int
    is_compressed: bool
    data: bytes


@dataclass(frozen=True, slots=True)
class BlobRef:
    """What stands in a line for a blob; `size` is that of the content."""

    name: str
    size: int
    is_sealed: bool


@dataclass(frozen=True, slots=True)
class Sealed:
    data: bytes


@dataclass(frozen=True, slots=True)
class Line:
    """A line that was read; the body may still be elsewhere, or sealed."""

    entry: Entry
    seq: int
    branch: str
    body: Mapping[str, object] | BlobRef | Sealed


def first_hash(execution: str) -> bytes:
    """What the chain of an execution starts from, so that no line can be moved to another one."""
    return sha256(b"vesper journal 1\n" + execution.encode("utf-8", "surrogatepass")).digest()


def next_hash(before: bytes, line: bytes) -> bytes:
    return sha256(before + line).digest()


def write_line(entry: Entry, seq: int, key: RunKey | None, limits: Limits) -> tuple[bytes, Blob | None]:
    """The canonical bytes of an entry, and its body where that is too large to stand in them."""
    body = encode_text(entry.body)
    form = "plain"
    blob = None
    name = entry.key
    if key is not None:
        # What names a request may be as sensitive as what it says.
        sealed = as_bytes(f"[{'null' if name is None else _quoted(name)},{body}]")
        name = None
        _check_size(entry, len(sealed), limits)
        if len(sealed) > limits.max_inline:
            is_compressed, data = _compressed(sealed)
            data = key.seal(data, seq)
            blob = Blob(sha256(data).hexdigest(), len(sealed), is_compressed, data)
            form, body = "blob", f'["{blob.name}",{blob.size},true]'
        else:
            form, body = "sealed", f'"{b64encode(key.seal(sealed, seq)).decode("ascii")}"'
    elif 4 * len(body) > limits.max_inline and len(content := as_bytes(body)) > limits.max_inline:
        _check_size(entry, len(content), limits)
        is_compressed, data = _compressed(content)
        blob = Blob(sha256(content).hexdigest(), len(content), is_compressed, data)
        form, body = "blob", f'["{blob.name}",{blob.size},false]'
    return as_bytes(
        f'[{FORMAT},"{BRANCH}",{seq},"{entry.kind}",{_quoted(entry.path)},{_quoted(entry.effect)},'
        f"{_quoted(entry.effect_class)},{'null' if name is None else _quoted(name)},{_quoted(entry.digest)},"
        f'{entry.at_us},"{form}",{body}]'
    ), blob


def native_line(entry: Entry, seq: int, before: bytes, most: int) -> tuple[bytes, bytes] | None:
    """The line of an entry that is not sealed, and its hash, as the Rust extension writes them: the same, in a fraction
    of the time, which every step pays. None where it leaves that to `write_line`."""
    if not _HAS_NATIVE:
        return None
    try:
        return journal_line(
            _START, before, seq, entry.kind, entry.path, entry.effect, entry.effect_class, entry.key, entry.digest,
            entry.at_us, entry.body, EXACT_IN_PYTHON, most,
        )  # fmt: skip
    except (OverflowError, RecursionError):
        return None


def native_intent(entry: Entry, seq: int, before: bytes, most: int) -> tuple[bytes, bytes, str] | None:
    """The same for an INTENT, with the digest of its request; both are made of one text of the arguments."""
    if not _HAS_NATIVE or entry.kind is not Kind.INTENT:
        return None
    try:
        return journal_intent(
            _START, before, seq, entry.path, entry.effect, entry.effect_class, entry.key, entry.at_us,
            entry.body["fixed"], entry.body["arguments"], EXACT_IN_PYTHON, most,
        )  # fmt: skip
    except (OverflowError, RecursionError):
        return None


def _check_size(entry: Entry, size: int, limits: Limits) -> None:
    if size > limits.max_body:
        where = f"of step `{entry.path}`" if entry.path else "of the execution"
        raise TooLarge(
            f"the {entry.kind.value} {where} has {size:,} bytes, and the journal takes {limits.max_body:,} at most: "
            "let the step give less, or raise `max_body` of the journal"
        )


def _compressed(content: bytes) -> tuple[bool, bytes]:
    smaller = zlib.compress(content, 1)
    return (True, smaller) if len(smaller) < len(content) else (False, content)


# -- reading --------------------------------------------------------------------------------------


def read_line(data: bytes) -> Line:
    """A stored line. Raises `JournalError` for bytes that are none, and for one of a format to come."""
    fields = decode(data)
    if type(fields) is not list or not fields or type(fields[0]) is not int:
        raise JournalError("an entry in the journal is malformed")
    if fields[0] != FORMAT:
        raise JournalError(
            f"an entry in the journal has the format {fields[0]}, and this Vesper reads {FORMAT}: a newer one wrote it"
        )
    match fields:
        case [
            _, str() as branch, int() as seq, str() as kind, str() as path, str() as effect, str() as effect_class,
            (None | str()) as key, str() as digest, int() as at_us, str() as form, body,
        ] if kind in Kind.__members__ and type(seq) is int and type(at_us) is int:  # fmt: skip
            entry = Entry(Kind(kind), path, effect, effect_class, key, digest, {}, at_us)
            return Line(entry, seq, branch, _body(form, body))
    raise JournalError("an entry in the journal is malformed")


def _body(form: str, body: Any) -> Mapping[str, object] | BlobRef | Sealed:
    match form, body:
        case "plain", dict():
            return body
        case "sealed", str():
            try:
                return Sealed(b64decode(body, validate=True))
            except ValueError:
                raise JournalError("a sealed body in the journal is not in base64") from None
        case "blob", [str() as name, int() as size, bool() as is_sealed] if type(size) is int and size >= 0:
            return BlobRef(name, size, is_sealed)
    raise JournalError("the body of an entry in the journal is malformed")


def read_blob(ref: BlobRef, blob: Blob | None, key: RunKey | None, seq: int) -> bytes:
    """The content of a blob, checked against its name."""
    if blob is None:
        raise JournalError(f"the body of entry {seq} is missing: the journal has no blob {ref.name}")
    data = blob.data
    if ref.is_sealed:
        if sha256(data).hexdigest() != ref.name or key is None:
            raise JournalError(f"the body of entry {seq} was changed: blob {ref.name} is not what its name says")
        data = key.open(data, seq)
    if blob.is_compressed:
        try:
            data = zlib.decompressobj().decompress(data, ref.size + 1)
        except zlib.error:
            raise JournalError(f"the body of entry {seq} is damaged: blob {ref.name} cannot be decompressed") from None
    if len(data) != ref.size or not (ref.is_sealed or sha256(data).hexdigest() == ref.name):
        raise JournalError(f"the body of entry {seq} was changed: blob {ref.name} is not what its name says")
    return data


def body_of(data: bytes) -> dict[str, object]:
    """A body that stood in a blob."""
    found = decode(data)
    if type(found) is not dict:
        raise JournalError("a body in the journal is no mapping")
    return found


def sealed_body_of(data: bytes) -> tuple[str | None, dict[str, object]]:
    """The key and the body that were sealed together."""
    match decode(data):
        case [(None | str()) as key, dict() as body]:
            return key, body
    raise JournalError("a sealed body in the journal is malformed")
