"""Encryption of sensitive runs: a key for each run, which may lie under a master key, and which deletes the run.

A run's bodies are sealed with AES-256-GCM under a random key of its own; each is bound to its place, so that one cannot
be put where another stood. The key of the run is stored under the master key (`KeyRing`), bound to the execution.
Deleting it makes all bodies unreadable at once, in backups too, as far as those lack the key.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vesper.journal.errors import JournalError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE = 12
_KEY = 32


def _cipher(key: bytes) -> AESGCM:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise JournalError(
            "sensitive runs are encrypted, and that needs the package cryptography: pip install 'vesper[encryption]'"
        ) from None
    return AESGCM(key)


def _opened(cipher: AESGCM, data: bytes, place: bytes, what: str) -> bytes:
    from cryptography.exceptions import InvalidTag

    try:
        return cipher.decrypt(data[:_NONCE], data[_NONCE:], place)
    except (InvalidTag, ValueError):
        raise JournalError(f"{what} cannot be decrypted: it was changed, or moved from its place") from None


class RunKey:
    """The key of one run."""

    __slots__ = ("_cipher", "_digests", "_execution", "key")

    def __init__(self, key: bytes, execution: str) -> None:
        self.key = key
        self._cipher = _cipher(key)
        self._execution = execution
        # Another key than the one that encrypts: one secret, one use.
        self._digests = hmac.digest(key, b"vesper journal digests", "sha256")

    @staticmethod
    def new(execution: str) -> RunKey:
        return RunKey(os.urandom(_KEY), execution)

    def seal(self, data: bytes, seq: int) -> bytes:
        nonce = os.urandom(_NONCE)
        return nonce + self._cipher.encrypt(nonce, data, self._place(seq))

    def open(self, data: bytes, seq: int) -> bytes:
        return _opened(self._cipher, data, self._place(seq), f"entry {seq} of execution {self._execution}")

    def digest(self, data: bytes) -> str:
        return hmac.digest(self._digests, data, "sha256").hex()

    def _place(self, seq: int) -> bytes:
        return f"{self._execution}\n{seq}".encode()


class KeyRing:
    """The keys of a journal. `master` wraps the keys of runs; those that an `earlier` one wrapped stay readable.
    `audit` makes the hashes of the audit log ones that nobody can compute who does not have it."""

    def __init__(
        self, master: bytes | None = None, *, earlier: Sequence[bytes] = (), audit: bytes | None = None
    ) -> None:
        for key in (*([] if master is None else [master]), *earlier):
            if len(key) != _KEY:
                raise JournalError(f"a master key of the journal has {_KEY} bytes, this one has {len(key)}")
        if audit is not None and len(audit) < 16:
            raise JournalError(f"the key of the audit log has 16 bytes or more, this one has {len(audit)}")
        self._master = master
        self._by_name = {_name(key): key for key in (*earlier, *([] if master is None else [master]))}
        self.audit = audit

    def __repr__(self) -> str:
        return f"KeyRing({'a master key' if self.has_master else 'no master key'})"

    @property
    def has_master(self) -> bool:
        return self._master is not None

    def wrap(self, key: RunKey, execution: str) -> tuple[str, bytes]:
        """What is stored of a run's key: the name of the master key that it is under (none: `""`), and its bytes."""
        if self._master is None:
            return "", key.key
        nonce = os.urandom(_NONCE)
        return _name(self._master), nonce + _cipher(self._master).encrypt(nonce, key.key, execution.encode())

    def unwrap(self, name: str, data: bytes, execution: str) -> RunKey:
        if not name:
            return RunKey(_sized(data, execution), execution)
        master = self._by_name.get(name)
        if master is None:
            raise JournalError(
                f"the key of execution {execution} lies under the master key {name}, which is not configured; "
                "name its secret as `key_secret` or among `earlier_key_secrets` under [journal]"
            )
        key = _opened(_cipher(master), data, execution.encode(), f"the key of execution {execution}")
        return RunKey(_sized(key, execution), execution)


def _sized(key: bytes, execution: str) -> bytes:
    if len(key) != _KEY:
        raise JournalError(f"the key of execution {execution} is damaged: it has {len(key)} bytes")
    return key


def _name(master: bytes) -> str:
    """Tells master keys apart and says nothing about them."""
    return hashlib.sha256(b"vesper master key\n" + master).hexdigest()[:16]
