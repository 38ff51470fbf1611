"""Users and roles (spec 01, 1.6): Systems.Security.Users, RoleUsers and Roles, exposed by the domain's registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.contrib.auth.models import PermissionsMixin
from django.contrib.auth.password_validation import validate_password
from django.db import models, transaction
from django.db.models import Value
from django.db.models.functions import Lower

from foundation.fields import EnumField, GuidField, MultilanguageField, ReferenceField, utc_now
from foundation.models import AggregateRoot, Entity
from foundation.validators import TextValidator, email_problem, language_problem, time_zone_problem
from identity.context import Caller
from identity.enums import REQUIRED_FACTOR, USER_TYPE

if TYPE_CHECKING:
    from identity.context import Caller, UserType


class UserManager(BaseUserManager["User"]):
    """Finds users by login in any case, as the table's unique index does."""

    def get_by_natural_key(self, username: str | None) -> User:
        """The user with this login. Raises User.DoesNotExist."""
        # The database lowers both sides: SQLite's LOWER knows only ASCII, Python's knows more.
        return self.annotate(login_lower=Lower("login")).get(login_lower=Lower(Value(username or "")))

    @transaction.atomic
    def create_user(self, login: str, password: str | None = None, **fields: Any) -> User:
        """Create a user, and reserve the login in the same transaction; without a password the user cannot log in."""
        user = self.model(login=login, **{"name": {"EN": login}, **fields})
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, login: str, password: str | None = None, **fields: Any) -> User:
        """A new administrator (`manage.py createsuperuser`). Raises ValidationError for a weak password."""
        if password is not None:
            validate_password(password, self.model(login=login, **fields))
        return self.create_user(login, password, is_admin=True, **fields)


class Role(AggregateRoot):
    """Systems.Security.Roles: named sets of permissions (RolePermission, RowPolicy) for the API and the admin.

    Roles replace Django's groups, which would grant permissions beside the platform's; RoleUser is the membership.

    required_factor  the factor that its users need besides the password (identity.factors)
    """

    name = models.CharField(max_length=254, unique=True)
    role_description = models.TextField(null=True, blank=True)
    visual_style = models.CharField(max_length=64, null=True, blank=True)
    is_active = models.BooleanField(default=True)
    required_factor = EnumField(REQUIRED_FACTOR, default="None", db_default="None")

    objects: ClassVar[models.Manager[Role]]

    def __str__(self) -> str:
        return self.name


# The toolkit's abstract models have no types, so the plugin does not see the managers of models that refer to User.
class User(AggregateRoot, AbstractBaseUser, PermissionsMixin):  # type: ignore[django-manager-missing]
    """Systems.Security.Users. A system user is the identity of service applications and never logs in."""

    # Users written by the dataset have no password: "!" matches none.
    password = models.CharField(max_length=128, default=UNUSABLE_PASSWORD_PREFIX, db_default=UNUSABLE_PASSWORD_PREFIX)
    login = models.CharField(max_length=64)
    name = MultilanguageField(max_length=254)
    email = models.EmailField(max_length=254, null=True, blank=True, validators=[TextValidator(email_problem)])
    user_type = EnumField(USER_TYPE, default="InternalUser")
    active = models.BooleanField(default=True)
    is_admin = models.BooleanField(default=False)
    default_language = models.CharField(
        max_length=15, null=True, blank=True, validators=[TextValidator(language_problem)]
    )
    phone_number = models.CharField(max_length=64, null=True, blank=True)
    time_zone = models.CharField(max_length=64, null=True, blank=True, validators=[TextValidator(time_zone_problem)])
    notes = models.CharField(max_length=254, null=True, blank=True)
    creation_time_utc = models.DateTimeField(default=utc_now, editable=False)
    # The provisioning client has deleted the user (domain.scim), and no longer sees it.
    provisioning_removed = models.BooleanField(default=False, db_default=False, editable=False)
    person = ReferenceField("domain.Person", null=True, blank=True)
    roles = models.ManyToManyField(Role, through="identity.RoleUser", related_name="users")

    # Membership is in `roles`; Django's permissions are not used (identity.backends).
    groups = None  # type: ignore[assignment]
    user_permissions = None  # type: ignore[assignment]

    USERNAME_FIELD = "login"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    objects: ClassVar[UserManager] = UserManager()

    class Meta:
        constraints = [models.UniqueConstraint(Lower("login"), name="identity_user_login_any_case")]

    def __str__(self) -> str:
        return self.login

    @property
    def is_active(self) -> bool:  # type: ignore[override]
        """Django's name for `active`."""
        return self.active

    @property
    def is_superuser(self) -> bool:  # type: ignore[override]
        """Django's name for `is_admin`."""
        return self.is_admin

    def get_username(self) -> str:
        return self.login

    @property
    def person_name(self) -> str:
        """The name in all languages, for the check that a password is not similar to it."""
        return " ".join((self.name or {}).values())

    def display_name(self, language: str = "en") -> str:
        """The name in the language, else in English, else in any, else the login."""
        texts: dict[str, str] = self.name or {}
        return texts.get(language.upper()) or texts.get("EN") or next(iter(texts.values()), "") or self.login

    def may_call(self, *, as_service: bool = False) -> bool:
        """Whether the API admits this type of user, as the user of a service or as a person (spec 01, 1.3 and 1.5)."""
        return self.user_type == "InternalUser" or (as_service and self.user_type == "SystemUserNoLogin")

    def as_caller(self, language: str = "en") -> Caller:
        """The immutable form for a CallContext."""
        user_type: UserType = self.user_type
        return Caller(
            id=self.pk,
            login=self.login,
            name=self.display_name(language),
            email=self.email or "",
            user_type=user_type,
            is_admin=self.is_admin,
        )


class UsedLogin(models.Model):
    """A current or former login of a user, who may be deleted; no other user gets it (identity.logins)."""

    login = models.CharField(max_length=64)
    user_id = GuidField(db_index=True)
    since = models.DateTimeField(default=utc_now)

    objects: ClassVar[models.Manager[UsedLogin]]

    class Meta:
        constraints = [models.UniqueConstraint(Lower("login"), name="identity_usedlogin_any_case")]

    def __str__(self) -> str:
        return self.login


class RoleUser(Entity):
    """Systems.Security.RoleUsers: a user's membership in a role.

    enterprise_company, company_location  selectable for a request (spec 08, 8.4); the role's rights do not depend on
    them
    """

    user = ReferenceField(User, owner=True, related_name="role_users")
    role = ReferenceField(Role, on_delete=models.CASCADE, related_name="role_users")
    enterprise_company = ReferenceField("domain.EnterpriseCompany", null=True, blank=True)
    company_location = ReferenceField("domain.CompanyLocation", null=True, blank=True)

    objects: ClassVar[models.Manager[RoleUser]]

    class Meta:
        # NULLs are distinct in a unique constraint, so each pattern of NULLs has its own constraint.
        constraints = [
            models.UniqueConstraint(
                fields=["user", "role"],
                condition=models.Q(enterprise_company=None, company_location=None),
                name="identity_roleuser_once",
            ),
            models.UniqueConstraint(
                fields=["user", "role", "enterprise_company"],
                condition=models.Q(company_location=None),
                name="identity_roleuser_once_in_company",
            ),
            models.UniqueConstraint(
                fields=["user", "role", "company_location"],
                condition=models.Q(enterprise_company=None),
                name="identity_roleuser_once_at_location",
            ),
            models.UniqueConstraint(
                fields=["user", "role", "enterprise_company", "company_location"], name="identity_roleuser_once_each"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.role_id}"
