"""Reads and checks environment variables; an invalid value stops the start with a message (spec 09, 9.2)."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from zoneinfo import available_timezones

import environ
from django.core.exceptions import ImproperlyConfigured

from foundation.catalogue import Catalogue

T = TypeVar("T")
BASE_DIR = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Setting:
    """A documented environment variable: the name of its type, its default in words, its meaning."""

    name: str
    type: str
    default: str
    meaning: str


#: Filled by platform_site.settings, in the order of declaration.
SETTINGS: Catalogue[Setting] = Catalogue("setting", pattern=r"[A-Z]+(_[A-Z]+)*")


class Environment:
    """Reads settings from the environment and an optional `.env` next to manage.py; the environment takes precedence.

    Each method declares a setting and returns its value. Raises ImproperlyConfigured for a value that does not fit the
    type, and ValueError for a setting that is declared twice.
    """

    def __init__(self) -> None:
        dotenv = BASE_DIR / ".env"
        if dotenv.exists():
            environ.Env.read_env(dotenv, overwrite=False)

    def text(self, name: str, default: str, meaning: str, *, kind: str = "text") -> str:
        """Any text. kind is the type in the documentation."""
        return self._read(name, kind, default, meaning, lambda raw: raw)

    def url(self, name: str, default: str, meaning: str, *, schemes: tuple[str, ...] = ()) -> str:
        """A URL, without a trailing slash. schemes: those that are allowed, if not all."""

        return self._read(name, "url", default, meaning, lambda raw: to_url(name, raw, schemes))

    def root_url(self, name: str, default: str, meaning: str) -> str:
        """The http or https URL of a host, perhaps with a port, without a trailing slash."""

        def convert(raw: str) -> str:
            try:
                parts = urlsplit(raw)
                is_root = parts.scheme in {"http", "https"} and parts.hostname and "@" not in parts.netloc
                is_root = is_root and parts.port != 0 and not (parts.path.strip("/") or parts.query or parts.fragment)
            except ValueError:  # no port, or no IPv6 address
                is_root = False
            if not is_root:
                raise ImproperlyConfigured(
                    f"{name} must be https:// or http:// and a host, without a path, not {raw!r}."
                )
            return raw.rstrip("/")

        return self._read(name, "url", default, meaning, convert)

    def time_zone(self, name: str, default: str, meaning: str) -> str:
        """The name of a time zone."""

        def convert(raw: str) -> str:
            if raw not in available_timezones():
                raise ImproperlyConfigured(f"{name} must be a time zone such as Europe/Berlin, not {raw!r}.")
            return raw

        return self._read(name, "time zone", default, meaning, convert)

    def number(self, name: str, default: int, meaning: str, *, least: int = 0, most: int | None = None) -> int:
        """An integer of at least `least` and at most `most`."""

        def convert(raw: str) -> int:
            number = to_number(name, raw)
            if number < least:
                raise ImproperlyConfigured(f"{name} must be at least {least}, not {raw}.")
            if most is not None and number > most:
                raise ImproperlyConfigured(f"{name} must be at most {most}, not {raw}.")
            return number

        return self._read(name, "number", default, meaning, convert)

    def decimal(self, name: str, default: float, meaning: str) -> float:
        """A number such as 2 or 0.5."""
        return self._read(name, "decimal", default, meaning, lambda raw: _decimal(name, raw))

    def decimals(self, name: str, default: tuple[float, ...], meaning: str) -> tuple[float, ...]:
        """Comma-separated numbers."""

        def convert(raw: str) -> tuple[float, ...]:
            return tuple(_decimal(name, item) for item in raw.split(","))

        return self._read(name, "numbers", default, meaning, convert)

    def switch(self, name: str, default: bool, meaning: str, *, default_text: str = "") -> bool:
        """true or false, in several spellings. default_text: documents a computed default."""

        def convert(raw: str) -> bool:
            lowered = raw.lower()
            if lowered not in _SWITCHES:
                raise ImproperlyConfigured(f"{name} must be true or false, not {raw!r}.")
            return _SWITCHES[lowered]

        return self._read(name, "switch", default, meaning, convert, default_text)

    def texts(self, name: str, default: list[str], meaning: str) -> list[str]:
        """Comma-separated texts."""

        return self._read(name, "list", default, meaning, to_texts)

    def destinations(self, name: str, default: list[str], meaning: str) -> list[str]:
        """Comma-separated host names, also `*.` and a domain, addresses and networks (CIDR)."""

        def convert(raw: str) -> list[str]:
            entries = to_texts(raw)
            for entry in entries:
                if not _HOST.fullmatch(entry) and not _is_network(entry.strip("[]")):
                    raise ImproperlyConfigured(f"{name} must have hosts or networks such as 10.0.0.0/8, not {entry!r}.")
            return entries

        return self._read(name, "list", default, meaning, convert)

    def proxies(self, name: str, default: list[str], meaning: str) -> list[str]:
        """Comma-separated addresses and networks (CIDR), or `*` alone."""

        def convert(raw: str) -> list[str]:
            entries = [item.strip() for item in raw.split(",") if item.strip()]
            for entry in entries if entries != ["*"] else ():
                # The server would ignore a host name, and a network with host bits.
                if not _is_network(entry, strict=True):
                    raise ImproperlyConfigured(
                        f"{name} must be addresses and networks such as 10.0.0.0/8, not {entry!r}."
                    )
            return entries

        return self._read(name, "list", default, meaning, convert)

    def replicas(self, name: str, meaning: str) -> list[dict[str, Any]]:
        """Django's database settings for comma-separated URLs of PostgreSQL servers."""
        return self._read(name, "list", [], meaning, lambda raw: to_replicas(name, raw))

    def declare(self, name: str, default: Any, meaning: str) -> Any:
        """A setting of the default's type: int, float or a tuple of numbers."""
        read: dict[type, Callable[[str, Any, str], Any]] = {int: self.number, float: self.decimal, tuple: self.decimals}
        return read[type(default)](name, default, meaning)

    def _read(
        self, name: str, kind: str, default: T, meaning: str, convert: Callable[[str], T], default_text: str = ""
    ) -> T:
        SETTINGS.add(name, Setting(name, kind, default_text or _in_words(default), meaning))
        raw = os.environ.get(name)
        return convert(raw) if raw else default

    @staticmethod
    def email(url: str) -> dict[str, Any]:
        """Django's EMAIL_ settings for a URL; schemes of django-environ (smtp, smtp+tls, smtp+ssl, consolemail …)."""
        try:
            result = dict(environ.Env.email_url_config(url))
        except Exception as exc:
            raise ImproperlyConfigured(f"EMAIL_URL cannot be read: {exc}") from exc
        return {name: value for name, value in result.items() if name.startswith("EMAIL_") and value is not None}

    @staticmethod
    def database(url: str, *, of: str = "DATABASE_URL") -> dict[str, Any]:
        """Django's database settings for a URL, which may name several servers (scheme://user@host:port,host:port/name).

        of: the setting that errors name. Raises ImproperlyConfigured.
        """
        url = to_url(of, url)
        before, at, behind = url.rpartition("@")
        servers, slash, rest = behind.partition("/")
        first, *others = servers.split(",")
        try:
            found = dict(environ.Env.db_url_config(f"{before}{at}{first}{slash}{rest}" if others else url))
        except Exception as exc:
            raise ImproperlyConfigured(f"{of} cannot be read: {exc}") from exc
        if found.get("ENGINE") not in _ENGINES:
            raise ImproperlyConfigured(f"{of} must begin with postgres:// or sqlite://, not {url.partition(':')[0]!r}.")
        if others:
            # The driver accepts lists of hosts and ports, and tries one server after the other.
            places = [each.partition(":") for each in (first, *others)]
            found |= {
                "HOST": ",".join(host for host, _, _ in places),
                "PORT": ",".join(port or "5432" for _, _, port in places),
            }
        return found


def to_url(name: str, raw: str, schemes: tuple[str, ...] = ()) -> str:
    """The URL, without a trailing slash. schemes: those that are allowed, if not all. Raises ImproperlyConfigured."""
    scheme, separator, _ = raw.partition("://")
    if not separator or (schemes and scheme not in schemes):
        example = " or ".join(f"{each}://…" for each in schemes or ("scheme",))
        raise ImproperlyConfigured(f"{name} must be a URL such as {example}, not {raw!r}.")
    return raw.rstrip("/")


def to_number(name: str, raw: str) -> int:
    """The non-negative integer. Raises ImproperlyConfigured."""
    # Not `isdigit`, which accepts digits that `int` does not; no setting is longer.
    if re.fullmatch(r"[0-9]{1,100}", raw) is None:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {raw!r}.")
    return int(raw)


def to_texts(raw: str) -> list[str]:
    """The comma-separated texts."""
    return [item.strip() for item in raw.split(",") if item.strip()]


def to_replicas(name: str, raw: str) -> list[dict[str, Any]]:
    """Django's database settings for comma-separated URLs of PostgreSQL servers. Raises ImproperlyConfigured."""
    urls = to_texts(raw)
    for url in urls:
        # A URL of several servers, which DATABASE_URL may be, falls apart at its commas.
        if environ.Env.DB_SCHEMES.get(url.partition("://")[0]) != POSTGRESQL:
            raise ImproperlyConfigured(
                f"{name} must be URLs that begin with postgres:// and name one server each, with commas between them; "
                f"{url!r} is none. A comma in a password is written %2C."
            )
    return [Environment.database(url, of=name) for url in urls]


POSTGRESQL = "django.db.backends.postgresql"
_ENGINES = frozenset({POSTGRESQL, "django.db.backends.sqlite3", "foundation.sqlite"})
#: A name of letters of any script, perhaps with `*.` in front.
_HOST = re.compile(r"(\*\.)?[\w-]+(\.[\w-]+)*\.?")


def _is_network(text: str, *, strict: bool = False) -> bool:
    try:
        ipaddress.ip_network(text, strict=strict)
    except ValueError:
        return False
    return True


_SWITCHES = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off"), False)


def _decimal(name: str, raw: str) -> float:
    # No signs, exponents, nan or inf, since these numbers are times and shares.
    if re.fullmatch(r"\s*\d+(\.\d+)?\s*", raw, re.ASCII) is None:
        raise ImproperlyConfigured(f"{name} must be made of numbers such as 2 or 0.5, not {raw!r}.")
    return float(raw)


def _in_words(default: object) -> str:
    match default:
        case bool():
            return "on" if default else "off"
        case "" | [] | ():
            return "empty"
        case list() | tuple():
            return f"`{','.join(map(str, default))}`"
    return f"`{default}`"
