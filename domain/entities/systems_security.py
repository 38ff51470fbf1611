"""Systems.Security: users, roles and trusted applications; the app identity owns their tables."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext_lazy as _

from audit.record import record
from domain.model.admin_options import AdminOptions
from domain.model.attributes import AtCommit, Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from identity.access_revocation import own_rows_delete, user_access_revoke
from identity.applications import SECRET_JWT, application_warnings, check_application, client_secrets, is_secret_hash
from identity.audit_actors import actor_of_call
from identity.audit_kinds import SecretChanged
from identity.changes import access_changed
from identity.email_change import old_address_notify
from identity.logins import check_login_unused, reserve_login
from identity.models import Role, RoleUser, TrustedApplication, User

if TYPE_CHECKING:
    from domain.dataset.records.record import Record, UnitOfWork


def access_changes(record: Record) -> None:
    """Last validation: invalidate the caches of access data with the commit."""
    model = record.repository.model
    record.dataset.defer_write(("access", model), lambda: access_changed(model))


def keep_logins_apart(user: Record) -> None:
    """Validation: a used login is never given to another user, also after rename or delete (spec 01, 1.5)."""
    if user.is_deleted or not user.is_changed("login"):
        return
    check_login_unused(user.login, user.id)
    user.dataset.defer_write(("login", user.id), partial(reserve_login, user.login, user.id))


def notify_old_address(user: Record) -> None:
    """Validation: notify the old e-mail address after the new one is committed."""
    if user.state == "Modified" and user.is_changed("email") and (old := user.original("email")):
        notify = partial(old_address_notify, user.id, old, user.email or "")
        # Runs after the commit; robust: a failure of the queue does not fail the request.
        user.dataset.defer_write(("old address", user.id), lambda: transaction.on_commit(notify, robust=True))


def end_access(user: Record) -> None:
    """Validation: end the sessions and tokens of a deactivated user, and of one whose login, their `sub`, changed.

    Show a reactivated user to directories (SCIM) again.
    """
    if user.state != "Modified":
        return
    if user.is_changed("active") and user.active:
        user.dataset.defer_write(("directory", user.id), partial(show_to_directories, user.id))
    if user.is_changed("login") or (user.is_changed("active") and not user.active):
        user.dataset.defer_write(
            ("end of access", user.id), partial(user_access_revoke, user.id, by=actor_of_call(user.dataset.context))
        )


def show_to_directories(user_id: str) -> None:
    """Undo a deletion by a directory (domain.scim)."""
    User.objects.filter(pk=user_id).update(provisioning_removed=False)


def remove_own_rows(record: Record) -> None:
    """Validation: delete the rows of a deleted user or role, too; end a user's sessions and tokens before."""
    if not record.is_deleted:
        return
    if record.repository.model is User:
        record.dataset.defer_write(
            ("end of access", record.id),
            partial(user_access_revoke, record.id, by=actor_of_call(record.dataset.context)),
        )
    delete = partial(own_rows_delete, record.repository.model, record.id)
    record.dataset.defer_write(("own rows", record.id), delete)


@repositories.register
class Users(Repository[User]):
    name = "Systems.Security.Users"
    base_table = "Sec_Users"
    old_names = {"Public.Users": "1.0"}
    code_member = "login"
    name_member = "name"
    display_format = "{Name} <{Login}>"
    admin = AdminOptions(hints={"is_admin": _("May do everything, and needs no role.")})
    children = (Child("RoleUsers", "Systems.Security.RoleUsers"),)
    validations = (keep_logins_apart, notify_old_address, remove_own_rows, end_access, access_changes)
    decides_access = True
    # Not the name: row policies may use it ($user.Name).
    left_to_roles = frozenset(
        {
            "default_language",
            "phone_number",
            "time_zone",
            "notes",
            "external_id",
            "external_system",
            "additional_data_json",
        }
    )
    read_only = frozenset({"creation_time_utc"})
    unpublished = frozenset({"password", "last_login", "provisioning_removed"})


def system_user_create(dataset: UnitOfWork, application_uri: str, name: str) -> str:
    """The guid of a new system user for a service. It has no rights until an administrator gives it roles."""
    # The random suffix makes the login unique: a used login is never given again.
    login = f"{application_uri[:50]}-{secrets.token_hex(4)}"
    return dataset.create(
        Users.name, {"Login": login, "Name": {"EN": name}, "UserType": "SystemUserNoLogin"}, by_client=True
    ).id


@repositories.register
class RoleUsers(Repository[RoleUser]):
    name = "Systems.Security.RoleUsers"
    base_table = "Wf_Role_Users"
    name_member = "user.name"
    validations = (access_changes,)
    decides_access = True
    old_names = {"Systems.Workflow.RoleUsers": "24.1.101.1"}


@repositories.register
class Roles(Repository[Role]):
    name = "Systems.Security.Roles"
    base_table = "Wf_Roles"
    category = "Settings"
    name_member = "name"
    admin = AdminOptions(
        hints={
            "required_factor": _(
                "With what its users must sign in besides the password: any second factor, or a passkey. Whoever has "
                "none registers one at the next sign-in; sign-ins without it end at once."
            )
        }
    )
    validations = (remove_own_rows, access_changes)
    decides_access = True


def rules_of_applications(application: Record) -> None:
    """Validation: the same checks of applications as in the admin (spec 01, 1.3)."""
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


def warn_of_unusable_settings(application: Record) -> None:
    """Last validation but one: warn of settings that cannot work, in X-Warnings and the admin (spec 01, 1.3, 1.4)."""
    if application.is_deleted:
        return
    dataset = application.dataset
    writes, stored = dataset.deferred.writes, TrustedApplication.objects.filter(pk=application.id).first()
    if application.client_authentication == SECRET_JWT:
        has_secret = _encrypted_secret_key(application) in writes or bool(stored and client_secrets(stored))
    else:
        has_secret = _secret_key(application) in writes or bool(stored and stored.application_secret_hash)
    for text in application_warnings(_as_model(application), has_secret=has_secret):
        if text not in dataset.warnings:
            dataset.warnings.append(text)


def _as_model(application: Record) -> TrustedApplication:
    """The record's values as an unsaved model instance, for the checks of the app identity."""
    members = application.repository.by_python_name
    fields = [field for field in TrustedApplication._meta.concrete_fields if field.name in members]
    result = TrustedApplication(
        **{field.attname: application.values.get(members[field.name].name) for field in fields if field.attname != "id"}
    )
    # From the dataset, where the user may be created or changed together with the application.
    if (user := application.system_user) is not None:
        result.system_user = User(
            id=user.id, login=user.login, user_type=user.user_type, active=user.active, is_admin=user.is_admin
        )
    return result


def _secret_key(application: Record) -> tuple[str, str]:
    return "secret", str(application.id)


def _encrypted_secret_key(application: Record) -> tuple[str, str]:
    return "encrypted secret", str(application.id)


def keep_secret_hash(application: Record) -> None:
    """Late default: store the hash outside of readable attributes, and empty the attribute.

    None keeps the secret, because a client that writes back its read value writes None.
    """
    digest = application.new_secret_hash
    if not digest or not is_secret_hash(digest):
        return  # rules_of_applications refuses an invalid hash
    application.new_secret_hash = None
    rows = TrustedApplication.objects.filter(pk=application.id)
    by, uri = actor_of_call(application.dataset.context), application.application_uri

    def write() -> None:
        rows.update(application_secret_hash=digest)
        access_changed(TrustedApplication)
        record(SecretChanged, by=by, subject=f"application {uri}")

    application.dataset.defer_write(_secret_key(application), write)


def store_secret(application: Record, secret: str) -> None:
    """With the commit, store the secret itself, encrypted: the key of the application's client_secret_jwt."""
    key = _encrypted_secret_key(application)
    application.dataset.defer_write(key, partial(_write_secret, application.id, secret))


def remove_stored_secret(application: Record) -> None:
    """Late default: remove the secret itself once the application no longer signs with it."""
    if application.is_changed("client_authentication") and application.client_authentication != SECRET_JWT:
        key = _encrypted_secret_key(application)
        application.dataset.defer_write(key, partial(_write_secret, application.id, None))


def _write_secret(application_id: str, secret: str | None) -> None:
    TrustedApplication.objects.filter(pk=application_id).update(encrypted_secret=secret, previous_encrypted_secret=None)


@repositories.register
class TrustedApplications(Repository[TrustedApplication]):
    name = "Systems.Security.TrustedApplications"
    base_table = "Sec_Trusted_Applications"
    name_member = "name"
    search_members = ("name", "application_uri")
    admin = AdminOptions(
        hidden=frozenset({"new_secret_hash"}),
        short_texts=frozenset({"notes", "scope", "json_web_key_set", "token_exchange_applications"}),
        hints={
            "application_uri": _("The client id by which the application introduces itself."),
            "scope": _(
                "What it may ask for, with spaces between: read update exec (the API), openid profile email (who "
                "somebody is), offline_access (refresh tokens), scim (a service that provisions users)."
            ),
            "client_authentication": _(
                "How a confidential application authenticates. Secret: it sends its secret. PrivateKeyJwt: it signs "
                "with its private key, and this instance knows the public one. SecretJwt: it signs with its secret, "
                "which is then kept encrypted here."
            ),
            "json_web_key_set": _("For PrivateKeyJwt: its public keys as a JSON Web Key Set, unless it has a URL."),
            "json_web_key_set_url": _("For PrivateKeyJwt: where the application publishes its public keys."),
            "pushed_requests_required": _(
                "Whether it may ask people to sign in by pushed authorization requests only (RFC 9126), with PKCE."
            ),
            "dpop_required": _(
                "Whether it gets only tokens that are bound to a key of its own (DPoP, RFC 9449), so that a stolen "
                "token is of no use."
            ),
            "impersonate_as_internal_user_allowed": _("Internal users may sign in to it."),
            "device_flow_allowed": _("People may connect devices that have no browser, by a code (RFC 8628)."),
            "impersonate_as_community_user_allowed": _(
                "External users may sign in to it; it learns who they are and gets no access token."
            ),
            "impersonate_login_url": _("Where sign-ins return to: exact addresses with commas between them."),
            "impersonate_logout_url": _(
                "Where people may be sent after they signed out: exact addresses with commas between them."
            ),
            "token_exchange_applications": _(
                "Application URIs with commas between them. When one of these calls it, it may exchange the user's "
                "access token for one of its own with no more scopes (RFC 8693), and so act for that user. Empty: none."
            ),
            "top_paging": _(
                "Whether answers to $top=n have a next link while more rows remain, as clients of the reference "
                "platform expect; without it $top is the total. Empty: as the setting TOP_PAGING says."
            ),
            "system_user_allowed": _(
                "It works by itself (client credentials), with the rights of the system user. Where people sign in to "
                "it, too, it does so by its application URI with -service behind it, and needs a logout URL."
            ),
        },
    )
    # Their writes cannot be kept for a later request.
    late_defaults = (AtCommit(keep_secret_hash), AtCommit(remove_stored_secret))
    decides_access = True
    validations = (rules_of_applications, warn_of_unusable_settings, access_changes)
    read_only = frozenset({"creation_time_utc", "registration_source", "document_expires_utc"})
    unpublished = frozenset(
        {
            "application_secret_hash",
            "previous_secret_hash",
            "previous_secret_expires_utc",
            "encrypted_secret",
            "previous_encrypted_secret",
        }
    )
    # The model facts name the policy of reference tokens by its subject.
    api_names = {"access_tokens": "ReferenceTokens", "new_secret_hash": "ApplicationSecretHash"}
    admin_only = True
