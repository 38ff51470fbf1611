"""References to tables of the domain, which need the users first."""

import django.db.models.deletion
from django.db import migrations, models

import foundation.fields
from foundation.migration_operations import AtOnce


class Migration(migrations.Migration):
    dependencies = [
        ("domain", "0001_initial"),
        ("identity", "0001_initial"),
    ]

    operations = [
        AtOnce(
            [
                migrations.AddField(
                    model_name="roleuser",
                    name="company_location",
                    field=foundation.fields.ReferenceField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="domain.companylocation",
                    ),
                ),
                migrations.AddField(
                    model_name="roleuser",
                    name="enterprise_company",
                    field=foundation.fields.ReferenceField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="domain.enterprisecompany",
                    ),
                ),
                migrations.AddField(
                    model_name="user",
                    name="person",
                    field=foundation.fields.ReferenceField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="domain.person",
                    ),
                ),
                migrations.AddIndex(
                    model_name="roleuser",
                    index=models.Index(fields=["enterprise_company", "id"], name="identity_ro_enterpr_8dbffc_idx"),
                ),
                migrations.AddIndex(
                    model_name="roleuser",
                    index=models.Index(fields=["company_location", "id"], name="identity_ro_company_006a82_idx"),
                ),
                migrations.AddIndex(
                    model_name="user",
                    index=models.Index(fields=["person", "id"], name="identity_us_person__6a48bb_idx"),
                ),
                migrations.AddConstraint(
                    model_name="roleuser",
                    constraint=models.UniqueConstraint(
                        condition=models.Q(("company_location", None), ("enterprise_company", None)),
                        fields=("user", "role"),
                        name="identity_roleuser_once",
                    ),
                ),
                migrations.AddConstraint(
                    model_name="roleuser",
                    constraint=models.UniqueConstraint(
                        condition=models.Q(("company_location", None)),
                        fields=("user", "role", "enterprise_company"),
                        name="identity_roleuser_once_in_company",
                    ),
                ),
                migrations.AddConstraint(
                    model_name="roleuser",
                    constraint=models.UniqueConstraint(
                        condition=models.Q(("enterprise_company", None)),
                        fields=("user", "role", "company_location"),
                        name="identity_roleuser_once_at_location",
                    ),
                ),
                migrations.AddConstraint(
                    model_name="roleuser",
                    constraint=models.UniqueConstraint(
                        fields=("user", "role", "enterprise_company", "company_location"),
                        name="identity_roleuser_once_each",
                    ),
                ),
            ]
        )
    ]
