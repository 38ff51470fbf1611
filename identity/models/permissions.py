"""Permissions and row policies of roles (spec 01, 1.7)."""

from __future__ import annotations

from typing import ClassVar

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

from identity.models.users import Role
from identity.row_policies import check_filter, check_grant, check_repository


class RolePermission(models.Model):
    """A role's permission on a repository, a namespace (`Crm.Sales.*`) or all business data (`*`)."""

    role = models.ForeignKey(Role, on_delete=models.CASCADE, related_name="permissions")
    repository = models.CharField(max_length=128, help_text=_("Crm.Sales.SalesOrders, Crm.Sales.* or *"))
    can_read = models.BooleanField(default=True)
    can_create = models.BooleanField(default=False)
    can_update = models.BooleanField(default=False)
    can_delete = models.BooleanField(default=False)

    objects: ClassVar[models.Manager[RolePermission]]

    class Meta:
        constraints = [models.UniqueConstraint(fields=["role", "repository"], name="identity_rolepermission_once")]

    def __str__(self) -> str:
        return f"{self.role}: {self.repository}"

    def clean(self) -> None:
        if not self.repository:
            return  # The field says that it is required.
        try:
            check_grant(self.repository)
        except ValueError as exc:
            raise ValidationError({"repository": str(exc)}) from exc


class RowPolicy(models.Model):
    """The rows of a repository that a role sees or changes: an OData filter expression with `$user…` variables.

    Several policies of one role for one operation widen each other; a role without one sees every row.
    """

    role = models.ForeignKey(Role, on_delete=models.CASCADE, related_name="row_policies")
    repository = models.CharField(max_length=128)
    on_read = models.BooleanField(default=True)
    on_create = models.BooleanField(default=True)
    on_update = models.BooleanField(default=True)
    on_delete = models.BooleanField(default=True)
    filter = models.TextField(help_text=_("OData filter, for example: Responsible/Id eq $user.Id"))
    is_active = models.BooleanField(default=True)
    notes = models.CharField(max_length=254, blank=True, default="")

    objects: ClassVar[models.Manager[RowPolicy]]

    class Meta:
        verbose_name_plural = "row policies"

    def __str__(self) -> str:
        return f"{self.role}: {self.repository}"

    def clean(self) -> None:
        if not self.repository or not self.filter:
            return  # The fields say that they are required.
        field = "repository"
        try:
            check_repository(self.repository)
            field = "filter"
            check_filter(self.repository, self.filter)
        except ValueError as exc:
            raise ValidationError({field: str(exc)}) from exc
