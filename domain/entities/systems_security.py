"""Systems.Security: users, roles and trusted applications, whose tables belong to identity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError

from domain.model.attributes import Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from identity.applications import check_application, is_secret_hash
from identity.changes import access_changed
from identity.models import Role, RoleUser, TrustedApplication, User

if TYPE_CHECKING:
    from domain.dataset.record import Record


def only_administrators(record: Record) -> None:
    """Validation: whoever could change this could give themselves any right; no role is enough for it."""
    caller = record.dataset.context.user
    if record.by_client and caller is not None and not caller.is_admin:
        raise errors.Forbidden(errors.PERMISSION_DENIED, "change", record.repository.name)


def only_administrators_make_administrators(user: Record) -> None:
    """Validation: the same for the one attribute of a user that gives rights."""
    if user.is_changed("is_admin") and (user.is_admin or not user.is_new):
        only_administrators(user)


def access_changes(record: Record) -> None:
    """Last validation: once it is written, nobody may go on with what they have cached of it."""
    model = record.repository.model
    record.dataset.defer_write(("access", model), lambda: access_changed(model))


@repositories.register
class Users(Repository[User]):
    """Declares Systems.Security.Users."""

    name = "Systems.Security.Users"
    code_member = "login"
    name_member = "name"
    display_format = "{Name} <{Login}>"
    search_members = ("login", "name")
    children = (Child("RoleUsers", "Systems.Security.RoleUsers"),)
    validations = (only_administrators_make_administrators, access_changes)
    read_only = frozenset({"creation_time_utc"})
    unpublished = frozenset({"password", "last_login"})


@repositories.register
class RoleUsers(Repository[RoleUser]):
    """Declares Systems.Security.RoleUsers."""

    name = "Systems.Security.RoleUsers"
    name_member = "user.name"
    display_format = "{User.Name:T}"
    search_members = ("user.name",)
    validations = (only_administrators, access_changes)
    old_names = ("Systems.Workflow.RoleUsers",)


@repositories.register
class Roles(Repository[Role]):
    """Declares Systems.Security.Roles."""

    name = "Systems.Security.Roles"
    name_member = "name"
    display_format = "{Name}"
    search_members = ("name",)
    validations = (only_administrators, access_changes)
    unpublished = frozenset({"group"})


def rules_of_applications(application: Record) -> None:
    """Validation: the rules that hold in the admin too (spec 01, 1.3)."""
    if application.is_deleted:
        return
    members = application.repository.by_python_name
    fields = [field for field in TrustedApplication._meta.concrete_fields if field.name in members]
    values = {
        field.attname: application.values.get(members[field.name].name) for field in fields if field.attname != "id"
    }
    try:
        check_application(TrustedApplication(**values))
    except ValidationError as exc:
        problems = exc.message_dict
        target = members[next(iter(problems))].name
        texts = [f"{members[name].name}: {text}" for name, found in problems.items() for text in found]
        details = [
            errors.Detail(errors.VALIDATION_FAILED, (text,), members[name].name)
            for name, found in problems.items()
            for text in found
        ]
        raise errors.Refused(errors.VALIDATION_FAILED, " ".join(texts), target=target, details=details) from exc


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

    application.dataset.defer_write(("secret", application.id), write)


@repositories.register
class TrustedApplications(Repository[TrustedApplication]):
    """Declares Systems.Security.TrustedApplications."""

    name = "Systems.Security.TrustedApplications"
    name_member = "name"
    display_format = "{Name}"
    search_members = ("name", "application_uri")
    late_defaults = (keep_secret_hash,)
    validations = (only_administrators, rules_of_applications, access_changes)
    read_only = frozenset({"creation_time_utc"})
    unpublished = frozenset({"application_secret_hash", "previous_secret_hash", "previous_secret_expires_utc"})
    # The model facts call the policy of reference tokens by what it governs.
    api_names = {"access_tokens": "ReferenceTokens", "new_secret_hash": "ApplicationSecretHash"}
    admin_only = True
