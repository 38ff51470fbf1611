"""Systems.Security: users, roles and trusted applications, whose tables belong to identity."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError

from domain.model.attributes import Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from identity.applications import application_warnings, check_application, is_secret_hash
from identity.changes import access_changed
from identity.logins import check_login_unused, claim_login
from identity.models import Role, RoleUser, TrustedApplication, User

if TYPE_CHECKING:
    from domain.dataset.records.record import Record


def access_changes(record: Record) -> None:
    """Last validation: once it is written, nobody may go on with what they have cached of it."""
    model = record.repository.model
    record.dataset.defer_write(("access", model), lambda: access_changed(model))


def keep_logins_apart(user: Record) -> None:
    """Validation: a login once used is never given to another user, also after rename or delete (spec 01, 1.5)."""
    if user.is_deleted or not user.is_changed("login"):
        return
    check_login_unused(user.login, user.id)
    user.dataset.defer_write(("login", user.id), partial(claim_login, user.login, user.id))


@repositories.register
class Users(Repository[User]):
    """Declares Systems.Security.Users."""

    name = "Systems.Security.Users"
    code_member = "login"
    name_member = "name"
    display_format = "{Name} <{Login}>"
    search_members = ("login", "name")
    children = (Child("RoleUsers", "Systems.Security.RoleUsers"),)
    validations = (keep_logins_apart, access_changes)
    decides_access = True
    # Not the name: row policies may ask for it ($user.Name).
    left_to_roles = frozenset(
        {"default_language", "phone_number", "time_zone", "notes", "external_id", "external_system"}
    )
    read_only = frozenset({"creation_time_utc"})
    unpublished = frozenset({"password", "last_login"})


@repositories.register
class RoleUsers(Repository[RoleUser]):
    """Declares Systems.Security.RoleUsers."""

    name = "Systems.Security.RoleUsers"
    name_member = "user.name"
    display_format = "{User.Name:T}"
    search_members = ("user.name",)
    validations = (access_changes,)
    decides_access = True
    old_names = ("Systems.Workflow.RoleUsers",)


@repositories.register
class Roles(Repository[Role]):
    """Declares Systems.Security.Roles."""

    name = "Systems.Security.Roles"
    name_member = "name"
    display_format = "{Name}"
    search_members = ("name",)
    validations = (access_changes,)
    decides_access = True


def rules_of_applications(application: Record) -> None:
    """Validation: the rules that hold in the admin too (spec 01, 1.3)."""
    if application.is_deleted:
        return
    members = application.repository.by_python_name
    as_model = _as_model(application)
    try:
        check_application(as_model)
    except ValidationError as exc:
        problems = exc.message_dict
        target = members[next(iter(problems))].name
        texts = [f"{members[name].name}: {text}" for name, found in problems.items() for text in found]
        details = [
            errors.Detail(errors.APPLICATION_INVALID, (text,), members[name].name)
            for name, found in problems.items()
            for text in found
        ]
        raise errors.Refused(errors.APPLICATION_INVALID, " ".join(texts), target=target, details=details) from exc


def warn_of_what_cannot_work(application: Record) -> None:
    """Last validation but one: tells whoever saves it, in X-Warnings and in the admin (spec 01, 1.3 and 1.4)."""
    if application.is_deleted:
        return
    dataset = application.dataset
    stored = TrustedApplication.objects.filter(pk=application.id).exclude(application_secret_hash=None)
    has_secret = _secret_key(application) in dataset.deferred.writes or stored.exists()
    for text in application_warnings(_as_model(application), has_secret=has_secret):
        if text not in dataset.warnings:
            dataset.warnings.append(text)


def _as_model(application: Record) -> TrustedApplication:
    """The record's values as an unsaved row, for rules that know nothing of records."""
    members = application.repository.by_python_name
    fields = [field for field in TrustedApplication._meta.concrete_fields if field.name in members]
    return TrustedApplication(
        **{field.attname: application.values.get(members[field.name].name) for field in fields if field.attname != "id"}
    )


def _secret_key(application: Record) -> tuple[str, str]:
    return "secret", str(application.id)


def keep_secret_hash(application: Record) -> None:
    """Late default: the hash goes where no way of reading leads, and the attribute is empty again.

    None leaves the secret as it is, because whoever writes back what they have read writes None.
    """
    digest = application.new_secret_hash
    if not digest or not is_secret_hash(digest):
        return  # what is no hash stays for rules_of_applications to refuse
    application.new_secret_hash = None
    rows = TrustedApplication.objects.filter(pk=application.id)

    def write() -> None:
        rows.update(application_secret_hash=digest)
        access_changed(TrustedApplication)

    application.dataset.defer_write(_secret_key(application), write)


@repositories.register
class TrustedApplications(Repository[TrustedApplication]):
    """Declares Systems.Security.TrustedApplications."""

    name = "Systems.Security.TrustedApplications"
    name_member = "name"
    display_format = "{Name}"
    search_members = ("name", "application_uri")
    late_defaults = (keep_secret_hash,)
    decides_access = True
    validations = (rules_of_applications, warn_of_what_cannot_work, access_changes)
    read_only = frozenset({"creation_time_utc"})
    unpublished = frozenset({"application_secret_hash", "previous_secret_hash", "previous_secret_expires_utc"})
    # The model facts call the policy of reference tokens by what it governs.
    api_names = {"access_tokens": "ReferenceTokens", "new_secret_hash": "ApplicationSecretHash"}
    admin_only = True
