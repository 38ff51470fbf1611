"""Systems.Core: the change history over the API, and its settings (spec 12, 12.2)."""

from __future__ import annotations

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from domain.dataset.commit import tracking
from domain.dataset.records.record import Record
from domain.dataset.tables.history import (
    ATTRIBUTES,
    DEFAULTS,
    LAST_CHANGE,
    TRACKING_LEVEL,
    ObjectChange,
    ObjectChangeset,
    RepositoryTracking,
)
from domain.entities.behaviour import refuse_change
from domain.model.admin_options import AdminOptions
from domain.model.attributes import Child, DescribedEntity
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors


@repositories.register
class ObjectChangesets(Repository[ObjectChangeset]):
    name = "Systems.Core.ObjectChangesets"
    display_format = "{ChangeTimeUtc}: {UserLogin}"
    ordering = ("-ChangeTimeUtc",)
    category = "SystemData"
    access = "ReadOnly"
    search_members = ("user_login", "request_id", "reason")
    children = (Child("Changes", "Systems.Core.ObjectChanges"),)
    visible_through = "Changes"
    validations = (refuse_change,)
    # Other users must not see a user's session.
    unpublished = frozenset({"session_id", "audit_entry"})
    admin = AdminOptions(open_collections=frozenset({"Changes"}))


@repositories.register
class ObjectChanges(Repository[ObjectChange]):
    name = "Systems.Core.ObjectChanges"
    display_format = "{Operation} {RepositoryName}"
    category = "SystemData"
    access = "ReadOnly"
    describes = DescribedEntity("RepositoryName", "EntityItemId", values=("Changes", "OldValues"))
    validations = (refuse_change,)
    # No pages: the version pages of an entity show its changes, with the reader's rights.
    admin = AdminOptions(
        hidden=frozenset({"changes", "old_values"}),
        unlisted=frozenset({"changes", "old_values"}),
        row_columns=("operation", "repository_name", "entity_item_id", "item_version", "rules"),
    )


def is_known_root(setting: Record) -> None:
    """Validation: the setting is for a root repository or for all (`*`), is never deleted and never moved."""
    name = setting.repository_name
    if setting.is_deleted or (not setting.is_new and setting.is_changed("repository_name")):
        # The history would have a gap that no setting records.
        raise _invalid(gettext("A setting stays with its repository: set another level."))
    if name == DEFAULTS:
        return
    if name not in repositories:
        raise _invalid(gettext("There is no repository {0}.").replace("{0}", name))
    root = tracking.root_of(repositories[name])
    if root.name != name:
        raise _invalid(gettext("Parts are kept as their root: set it for {0}.").replace("{0}", root.name))
    if tracking.default_level(root) == 0:
        raise _invalid(gettext("The history keeps nothing of {0}.").replace("{0}", name))


def note_start(setting: Record) -> None:
    """Late default: set `tracked_since` at level 3 and above, clear it at a lower level."""
    name = setting.repository_name
    if name == DEFAULTS:
        _note_start_of_all(setting)
        return
    former = tracking.tracking().get(name)
    if _level(setting) < ATTRIBUTES:
        since = None
    elif former is not None and former.since is not None:
        since = former.since
    else:
        since = setting.dataset.now()
    if setting.tracked_since != since:
        setting.tracked_since = since


def _note_start_of_all(setting: Record) -> None:
    """Of the repositories without a level of their own: those with level 3 by their kind, and the others."""
    levels = (setting.original("tracking_level"), setting.tracking_level)
    is_moved = not setting.is_new and setting.is_changed("tracking_level")
    for attribute, by_kind in (("tracked_since", ATTRIBUTES), ("others_tracked_since", LAST_CHANGE)):
        # Where the level was and is 3 or above no change is missing.
        keeps = (by_kind if level is None else TRACKING_LEVEL.members[level] for level in levels)
        is_gap = is_moved and not all(level >= ATTRIBUTES for level in keeps)
        if is_gap or getattr(setting, attribute) is None:
            setattr(setting, attribute, setting.dataset.now())


def _level(setting: Record) -> int:
    if setting.tracking_level is not None:
        return TRACKING_LEVEL.members[setting.tracking_level]
    everywhere = setting.dataset.find_one(setting.repository.name, repository_name=DEFAULTS)
    if everywhere is not None and everywhere.tracking_level is not None:
        return TRACKING_LEVEL.members[everywhere.tracking_level]
    name = setting.repository_name
    return tracking.default_level(repositories[name]) if name in repositories else 0


def _invalid(why: str) -> errors.Refused:
    return errors.Refused(errors.VALIDATION_FAILED, why, target="RepositoryName")


@repositories.register
class RepositoryTrackings(Repository[RepositoryTracking]):
    name = "Systems.Core.RepositoryTracking"
    code_member = "repository_name"
    display_format = "{RepositoryName}"
    category = "Settings"
    cache_version = tracking.CACHE_VERSION
    # A setting decides which changes can be proved later, so only administrators may write it.
    decides_access = True
    read_only = frozenset({"tracked_since", "others_tracked_since"})
    late_defaults = (note_start,)
    validations = (is_known_root,)
    admin = AdminOptions(
        repository_names=frozenset({"repository_name"}),
        hints={
            "repository_name": _("A repository, or * for all that have no setting of their own."),
            "tracking_level": _("What is kept of each change. Empty: by the kind of the repository."),
            "retention_days": _("How long changes are kept. Empty: as for all; 0: forever."),
            "tracked_since": _("Queries as of a time can go back to here."),
            "others_tracked_since": _("Of *: the same for repositories that only its level tracks."),
        },
    )
