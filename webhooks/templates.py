"""Cache of compiled webhook templates; reloaded after a change of templates or custom properties.

Events must not cost a query, so the templates are cached. Sources of the cache: the cache versions
(foundation.cache_versions) of templates and of custom properties, which they may name, the registry, and the key that
encrypts secrets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import orjson

from domain.dataset.checks.authority import NOBODY, Authority
from domain.dataset.checks.authors import Authors
from domain.dataset.lookups.name_binding import EventValues
from domain.dataset.records.record import Record
from domain.entities.systems_config import WebHook
from domain.model import custom_properties
from domain.model.registry import repositories
from foundation import cache_versions
from foundation.egress.policy import destination_of
from foundation.encryption import Unreadable, encrypt, key_ids
from foundation.guids import new_guid
from foundation.versioned_cache import VersionedCache
from rules.read_access import Reads, hidden_entity, unreadable
from webhooks.headers import Header, header_text, is_secret_name, masked
from webhooks.models import TemplateAuthor
from webhooks.render import CompiledRequest, compile_request
from webhooks.reschedule import retries_of

CACHE_VERSION = "webhooks"
AUTHORS = Authors(TemplateAuthor)


@dataclass(frozen=True)
class WebHookTemplate:
    """A template, ready to be rendered.

    unreadable   the reason why its headers cannot be decrypted, which fails its deliveries
    author       the user who saved it last
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
    author: Authority = NOBODY

    def hidden_from_author(self, record: Record, events: EventValues) -> str:
        """The first repository of read data that is hidden from the author; "" for none."""
        return unreadable(self.author, self.reads, record, events) or hidden_entity(self.author, record)

    @cached_property
    def compiled(self) -> CompiledRequest:
        """The compiled template. Raises InvalidTemplate or InvalidHeader if a name has become invalid since it was
        saved.
        """
        return compile_request(
            repositories.get(self.repository_name),
            url=self.url,
            headers=self.headers,
            body=self.body,
            content_type=self.content_type,
        )

    @cached_property
    def reads(self) -> Reads:
        """Data that it reads. Raises as `compiled`."""
        return Reads(self.repository_name, frozenset(self.compiled.paths))

    @cached_property
    def read_repositories(self) -> str:
        """The repositories that it reads besides the entity, each between spaces. Raises as `compiled`."""
        names = sorted({hop.target for path in self.compiled.paths for hop in path if hop.target})
        return f" {' '.join(names)} " if names else ""

    @cached_property
    def fixed_destination(self) -> str | None:
        """host:port if it has no placeholder. Raises ValueError for an invalid one."""
        origin = self.compiled.url.fixed_origin
        return None if origin is None else destination_of(origin).name

    def stored_headers(self, headers: tuple[Header, ...]) -> tuple[str, str]:
        """(masked for display, as JSON for WebHookDelivery.headers) of rendered headers; cached if fixed."""
        return self._stored_fixed if headers is self.compiled.fixed_headers else self._stored(headers)

    @cached_property
    def _stored_fixed(self) -> tuple[str, str]:
        return self._stored(self.compiled.fixed_headers or ())

    def _stored(self, headers: Sequence[Header]) -> tuple[str, str]:
        if self.unreadable:
            return "", orjson.dumps(self.unreadable).decode()
        stored = [
            (name, self._encrypted_fixed.get(value) or encrypt(value), True)
            if value and is_secret_name(name)
            else (name, value)
            for name, value in headers
        ]
        return header_text(masked(headers)), orjson.dumps(stored).decode()

    @cached_property
    def _encrypted_fixed(self) -> dict[str, str]:
        """Constant headers with encrypted secrets; cached, because each commit with the webhook needs them."""
        literals = ((name, template.literal) for name, template in self.compiled.headers)
        return {value: encrypt(value) for name, value in literals if value and is_secret_name(name)}


def web_hook_get(reference: str) -> WebHookTemplate | None:
    """The template with this code (in any case) or guid, active or not."""
    templates = _templates.get()
    return templates.get(reference) or templates.get(reference.strip().lower())


def _load() -> dict[str, WebHookTemplate]:
    """Code, guid and code in lower case → template."""
    rows = list(WebHook._default_manager.all())
    authors = AUTHORS.of({str(row.pk) for row in rows})
    result = [_template(row, authors.get(str(row.pk), NOBODY)) for row in rows]
    in_lower_case = {template.code.lower(): template for template in result}
    as_written = {name: template for template in result for name in (template.code, template.id)}
    return {**in_lower_case, **as_written}


_templates = VersionedCache(
    _load,
    CACHE_VERSION,
    custom_properties.CACHE_VERSION,
    state=lambda: (repositories.generation, key_ids()[0]),
)


def _template(row: WebHook, author: Authority) -> WebHookTemplate:
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
        author=author,
    )


def draft_template(values: Mapping[str, str], author: Authority) -> WebHookTemplate:
    """A template that need not be stored: code, repository_name, url, headers, body and content_type, "" for none."""
    return WebHookTemplate(
        id=new_guid(),
        code=values["code"],
        repository_name=values["repository_name"],
        is_active=True,
        timeout_seconds=1,
        max_retries=0,
        url=values["url"],
        headers=values["headers"] or None,
        body=values["body"] or None,
        content_type=values["content_type"] or None,
        author=author,
    )


def announce_change(record: Record) -> None:
    """Invalidate the cached templates of all processes once this change is committed."""
    record.dataset.defer_write(CACHE_VERSION, lambda: cache_versions.bump(CACHE_VERSION))


def forget() -> None:
    """Drop the cache: within a transaction that has saved a template, and after its rollback."""
    _templates.forget()
