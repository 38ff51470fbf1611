"""Systems.Core.Extensions: extensions of pages by applications, each at an extension path.

The only supported path is `/mainmenu/apps`, the list of applications on the home page of the admin. Its ExtensionData
is a JSON object with the members of the reference platform: `uri`, the URL to open, with placeholders as in templates
(`{$user}`, `{$enterprisecompany}`); `slug`, unique; `category` and `icon`, which this page ignores.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

import orjson
from django.db import models
from django.utils.translation import gettext as _

from domain.dataset.templates.record_template import InvalidTemplate, compile_template
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from foundation.fields import MultilanguageField
from foundation.models import AggregateRoot

if TYPE_CHECKING:
    from domain.dataset.records.record import Record

MAIN_MENU = "/mainmenu/apps"
_SLUG = re.compile(r"[a-z0-9]([a-z0-9_-]*[a-z0-9])?")


class Extension(AggregateRoot):
    """An application's addition to a page.

    application_uri  the extended application; extension_uri is the application that extends it
    extension_path   the path; only MAIN_MENU has an effect
    extension_data   JSON text, in the format of the path
    """

    application_uri = models.CharField(max_length=128)
    extension_data = models.TextField(null=True, blank=True)
    extension_path = models.CharField(max_length=128, null=True, blank=True, db_index=True)
    extension_uri = models.CharField(max_length=128)
    hint = MultilanguageField(null=True, blank=True)
    is_active = models.BooleanField(default=True)
    name = models.CharField(max_length=128)
    title = MultilanguageField(max_length=254, null=True, blank=True)

    objects: ClassVar[models.Manager[Extension]]


def check_menu_entry(extension: Record) -> None:
    """Validation: an active entry of the main menu has a URL to open and a unique slug."""
    if extension.is_deleted or extension.extension_path != MAIN_MENU or not extension.is_active:
        return
    data = _parsed(extension.extension_data)
    uri, slug = data.get("uri"), data.get("slug")
    if not isinstance(uri, str) or not uri:
        raise _invalid(_("it has no uri"))
    if not isinstance(slug, str) or not _SLUG.fullmatch(slug):
        raise _invalid(_("its slug must have lowercase letters, digits, - and _, and begin and end with neither sign"))
    try:
        compile_template(repositories["Systems.Core.Extensions"], uri)
    except InvalidTemplate as exc:
        raise _invalid("; ".join(exc.problems)) from exc
    if urlsplit(uri.partition("{")[0]).scheme not in ("https", "http"):
        raise _invalid(_("its uri must begin with https:// or http://"))
    others = Extension.objects.filter(extension_path=MAIN_MENU, is_active=True).exclude(pk=extension.id)
    if any(data_of(other.extension_data).get("slug") == slug for other in others):
        raise _invalid(_("another extension has its slug"))


def _parsed(text: str | None) -> dict[str, Any]:
    try:
        data = orjson.loads(text or "")
    except orjson.JSONDecodeError as exc:
        raise _invalid(_("it is not JSON")) from exc
    if not isinstance(data, dict):
        raise _invalid(_("it is not a JSON object"))
    return data


def data_of(text: str | None) -> dict[str, Any]:
    """The parsed ExtensionData of an entry; {} if it is invalid."""
    try:
        return _parsed(text)
    except errors.Refused:
        return {}


def _invalid(why: str) -> errors.Refused:
    return errors.Refused(errors.EXTENSION_INVALID, why, target="ExtensionData")


@repositories.register
class Extensions(Repository[Extension]):
    name = "Systems.Core.Extensions"
    base_table = "Sys_Extensions"
    name_member = "name"
    display_format = "{Name}"
    search_members = ("name",)
    validations = (check_menu_entry,)
    # The admin shows its links to all users.
    decides_access = True
