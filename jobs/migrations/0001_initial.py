from django.db import migrations, models

import foundation.fields
import foundation.guids


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="JobState",
            fields=[
                ("job_id", foundation.fields.GuidField(primary_key=True, serialize=False)),
                ("author", models.CharField(blank=True, default="", max_length=36)),
                ("scheduled_from", models.DateTimeField(default=foundation.fields.utc_now)),
            ],
        ),
        migrations.CreateModel(
            name="JobRun",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=foundation.guids.new_guid,
                        editable=False,
                        max_length=36,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("job_id", foundation.fields.GuidField(db_index=True)),
                ("job_name", models.CharField(max_length=254)),
                ("job_type", models.CharField(max_length=64)),
                ("trigger", models.CharField(max_length=8)),
                ("due", models.DateTimeField()),
                ("state", models.CharField(default="Waiting", max_length=16)),
                ("started", models.DateTimeField(blank=True, null=True)),
                ("finished", models.DateTimeField(blank=True, null=True)),
                ("duration_ms", models.FloatField(default=0)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("lost", models.PositiveIntegerField(default=0)),
                ("progress", models.JSONField(default=dict)),
                ("message", models.TextField(blank=True, default="")),
                ("console", models.TextField(blank=True, default="")),
                ("output", models.TextField(blank=True, default="")),
                ("output_name", models.CharField(blank=True, default="", max_length=128)),
                ("started_by", models.CharField(blank=True, default="", max_length=64)),
                ("node", models.CharField(blank=True, default="", max_length=128)),
                ("lease_token", models.CharField(blank=True, default="", max_length=32)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["-due", "job_name"],
                "indexes": [models.Index(fields=["state", "due"], name="job_run_state_due")],
                "constraints": [
                    models.UniqueConstraint(fields=("job_id", "due"), name="job_run_due"),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "Running")), fields=("job_id",), name="job_run_running"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "Running"), ("trigger", "Night")),
                        fields=("trigger",),
                        name="job_run_night",
                    ),
                ],
            },
        ),
    ]
