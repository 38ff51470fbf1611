"""The templates as processes keep them: loaded once, compiled once, again when they or what they name has changed.

Events must not pay for a look-up, so the templates live in memory under version stamps (foundation.stamps): their own,
and that of the custom properties, which they may name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import orjson

from domain.dataset.records.record import Record
from domain.entities.systems_config import WebHook
from domain.model import custom_properties
from domain.model.registry import repositories
from foundation import stamps
from foundation.egress.policy import destination_of
from foundation.stamped_cache import StampedCache
from foundation.vault import Unreadable, key_ids, seal
from webhooks.headers import Header, header_text, is_secret_name, masked
from webhooks.render import CompiledRequest, compile_request
from webhooks.reschedule import retries_of

STAMP = "webhooks"


#: What templates were loaded and compiled from: their own stamp, that of custom properties, the registry, and the key
#: that secrets are sealed with.
@dataclass(frozen=True)
class WebHookTemplate:
    """One template, ready to be rendered.

    unreadable   why its headers cannot be decrypted; its deliveries then fail for that reason
    """

    id: str
    code: str
    repository_name: str
    is_active: bool
    timeout_seconds: int
    max_retries: int
    url: str = field(repr=False)
    headers: str | None = field(repr=False)
    body: str | None = field(repr=False)
    content_type: str | None = None
    unreadable: str = ""

    @cached_property
    def compiled(self) -> CompiledRequest:
        """Raises InvalidTemplate or InvalidHeader where something it names is gone since it was saved."""
        return compile_request(
            repositories.get(self.repository_name),
            url=self.url,
            headers=self.headers,
            body=self.body,
            content_type=self.content_type,
        )

    @cached_property
    def fixed_destination(self) -> str | None:
        """host:port where no placeholder is part of it. Raises ValueError where it is none."""
        origin = self.compiled.url.fixed_origin
        return None if origin is None else destination_of(origin).name

    def kept_headers(self, headers: tuple[Header, ...]) -> tuple[str, str]:
        """(as people may see them, as JSON for WebHookDelivery.headers) of rendered headers; made once where fixed."""
        return self._kept_fixed if headers is self.compiled.fixed_headers else self._kept(headers)

    @cached_property
    def _kept_fixed(self) -> tuple[str, str]:
        return self._kept(self.compiled.fixed_headers or ())

    def _kept(self, headers: Sequence[Header]) -> tuple[str, str]:
        if self.unreadable:
            return "", orjson.dumps(self.unreadable).decode()
        stored = [
            (name, self._sealed_fixed.get(value) or seal(value), True)
            if value and is_secret_name(name)
            else (name, value)
            for name, value in headers
        ]
        return header_text(masked(headers)), orjson.dumps(stored).decode()

    @cached_property
    def _sealed_fixed(self) -> dict[str, str]:
        """Secrets that are the same for every entity, sealed once: each commit with the webhook would pay for it."""
        literals = ((name, template.literal) for name, template in self.compiled.headers)
        return {value: seal(value) for name, value in literals if value and is_secret_name(name)}


def web_hook_get(reference: str) -> WebHookTemplate | None:
    """The template with this code (in any case) or guid, active or not."""
    templates = _templates.get()
    return templates.get(reference) or templates.get(reference.strip().lower())


def _load() -> dict[str, WebHookTemplate]:
    """Code, guid and code in lower case → template."""
    found = [_template(row) for row in WebHook._default_manager.all()]
    in_lower_case = {template.code.lower(): template for template in found}
    as_written = {name: template for template in found for name in (template.code, template.id)}
    return {**in_lower_case, **as_written}


_templates = StampedCache(_load, STAMP, custom_properties.STAMP, state=lambda: (repositories.generation, key_ids()[0]))


def _template(row: WebHook) -> WebHookTemplate:
    return WebHookTemplate(
        id=str(row.pk),
        code=row.code,
        repository_name=row.repository_name,
        is_active=row.is_active,
        timeout_seconds=row.timeout_seconds,
        max_retries=retries_of(row),
        url=row.url,
        headers=None if isinstance(row.headers, Unreadable) else row.headers,
        body=row.body,
        content_type=row.content_type or None,
        unreadable=row.headers.reason if isinstance(row.headers, Unreadable) else "",
    )


def announce_change(record: Record) -> None:
    """Every process reads the templates again once this change of one is committed."""
    record.dataset.defer_write(STAMP, lambda: stamps.bump(STAMP))


def forget() -> None:
    """Read them again at the next event (tests that roll back)."""
    _templates.forget()
