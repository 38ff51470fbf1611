"""Encryption of stored secrets that the platform must read again. The keys are not in the database.

An encrypted text is `enc:<key id>:<token>`; the token is Fernet's (AES-128-CBC with HMAC-SHA256), the key id the
beginning of the key's SHA-256. The first key encrypts, every key decrypts. Keys come from ENCRYPTION_KEYS, else from
the file `encryption_keys` in DATA_DIR (one a line, newest first, mode 0600); the first use creates the file.

Encryption takes about 20 µs, decryption 30 µs. `decrypt` returns an Unreadable for a text that cannot be decrypted;
saving it stores the original text again. So a lost key makes its values unreadable, and everything else works.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings

from foundation import private_files

FILE_NAME = "encryption_keys"
PREFIX = "enc:"
#: An encrypted text, alone or inside a larger one; group 1 is the key id.
ENCRYPTED = re.compile(r"enc:([0-9a-f]{8}):[A-Za-z0-9_=-]+")
_KEY_ID = re.compile("[0-9a-f]{8}")


class Unreadable(str):
    """The value of an encrypted text that cannot be decrypted.

    encrypted   the stored text
    reason   why, as a sentence
    """

    encrypted: str
    reason: str
    __slots__ = ("encrypted", "reason")

    def __new__(cls, encrypted: str, reason: str) -> Unreadable:
        result = super().__new__(cls, f"*** ({reason})")
        result.encrypted, result.reason = encrypted, reason
        return result


@dataclass(frozen=True, slots=True)
class _Keys:
    """The keys: `fernets` by key id, newest first; `newest` is the id of the key that encrypts.

    `checksums`: the keys of checksums by key id, derived from the same keys.
    """

    newest: str
    fernets: dict[str, Fernet]
    checksums: dict[str, bytes]


_lock = threading.Lock()
_file_keys: tuple[tuple[str, int, int, int], _Keys] | None = None


def encrypt(text: str) -> str:
    """The text, encrypted with the newest key."""
    if isinstance(text, Unreadable):
        return text.encrypted
    keys = _keys()
    return f"{PREFIX}{keys.newest}:{keys.fernets[keys.newest].encrypt(text.encode()).decode()}"


def decrypt(stored: str) -> str:
    """The decrypted text, or Unreadable."""
    match = ENCRYPTED.fullmatch(stored)
    if match is None:
        return Unreadable(stored, "The stored value is not encrypted as secrets are.")
    fernet = _keys().fernets.get(match[1])
    if fernet is None:
        return Unreadable(stored, f"The value cannot be decrypted: the key {match[1]} is missing.")
    try:
        return fernet.decrypt(stored[match.start(1) + 9 :].encode()).decode()
    except InvalidToken:
        return Unreadable(stored, f"The value cannot be decrypted: it is damaged, or the key {match[1]} is.")


def checksum(data: bytes) -> str:
    """A keyed checksum (`<key id>:<32 hex>`, HMAC-SHA256); 3 µs."""
    keys = _keys()
    return f"{keys.newest}:{_checksum(keys.checksums[keys.newest], data)}"


def checksum_is_right(data: bytes, stored: str) -> bool | None:
    """Whether it is the checksum of the data; None if its key is missing."""
    key_id, _, value = stored.partition(":")
    key = _keys().checksums.get(key_id)
    if key is None:
        return None if _KEY_ID.fullmatch(key_id) else False
    return hmac.compare_digest(_checksum(key, data).encode(), value.encode())


def _checksum(key: bytes, data: bytes) -> str:
    return hmac.digest(key, data, "sha256").hex()[:32]


def key_ids() -> tuple[str, ...]:
    """Ids of the available keys, newest first; creates the first key if there is none."""
    return tuple(_keys().fernets)


def reencrypted(stored: str) -> str:
    """A stored text with each encrypted part encrypted with the newest key; unreadable parts stay as they are."""
    newest = key_ids()[0]
    return ENCRYPTED.sub(lambda match: match[0] if match[1] == newest else encrypt(decrypt(match[0])), stored)


def key_add() -> str:
    """Add a key that encrypts from now on, in all processes of this DATA_DIR; its id. Older keys still decrypt."""
    if settings.ENCRYPTION_KEYS:
        raise ValueError("the keys are set by ENCRYPTION_KEYS: put a new one in front there, and restart every node")
    with _locked():
        known = _path().read_text().split() if _path().exists() else []
        new = Fernet.generate_key().decode()
        _write([new, *known])
    return _id_of(new)


def keys_keep_newest() -> int:
    """Delete every key but the newest; returns how many. Their texts become unreadable, in backups too."""
    if settings.ENCRYPTION_KEYS:
        return 0  # the operator removes former keys from the setting
    key_ids()
    with _locked():
        first, *rest = _path().read_text().split()
        if rest:
            _write([first])
    return len(rest)


def key_is_valid(text: str) -> bool:
    """Whether it is a key: 32 bytes in base64url, as `Fernet.generate_key()` makes them."""
    try:
        Fernet(text)
    except ValueError:
        return False
    return True


def _keys() -> _Keys:
    """The current keys. Each call checks the file (stat), so that every process uses a new key at once."""
    global _file_keys
    if settings.ENCRYPTION_KEYS:
        return _keys_of(tuple(settings.ENCRYPTION_KEYS))
    path = _path()
    try:
        status = os.stat(path)
    except FileNotFoundError:
        _make_first()
        status = os.stat(path)
    state = (str(path), status.st_ino, status.st_mtime_ns, status.st_size)
    known = _file_keys
    if known is None or known[0] != state:
        with _lock:
            known = _file_keys = (state, _keys_of(tuple(path.read_text().split())))
    return known[1]


@lru_cache(maxsize=4)
def _keys_of(texts: tuple[str, ...]) -> _Keys:
    return _Keys(
        _id_of(texts[0]),
        {_id_of(text): Fernet(text) for text in texts},
        {_id_of(text): hashlib.sha256(f"checksum {text}".encode()).digest() for text in texts},
    )


def _id_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:8]


def _path() -> Path:
    return _path_in(settings.DATA_DIR)


@lru_cache(maxsize=4)
def _path_in(directory: Path | str) -> Path:
    """Cached: creating a Path takes five times as long as the stat of the file, which each use of the keys does."""
    return Path(directory) / FILE_NAME


def _make_first() -> None:
    """Create the file with one key, unless another process has created it meanwhile."""
    with _locked():
        if not _path().exists():
            _write([Fernet.generate_key().decode()])


def _write(keys: list[str]) -> None:
    private_files.write(_path(), "".join(f"{key}\n" for key in keys).encode())


def _locked() -> AbstractContextManager[None]:
    """The lock for changes of the file, between all processes of this DATA_DIR."""
    return private_files.lock(_path().with_name(f".{FILE_NAME}.lock"))
