"""Incidents are kept, and each change can name its writer, its cause and its incident.

Old changes know none of them: their columns are null, and adding null columns rewrites no row.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("leases", "0013_deletion"),
    ]

    operations = [
        migrations.AddField(
            model_name="changerecord",
            name="cause",
            field=models.CharField(max_length=32, null=True),
        ),
        migrations.AddField(
            model_name="changerecord",
            name="incident",
            field=models.CharField(max_length=64, null=True),
        ),
        migrations.AddField(
            model_name="changerecord",
            name="writer",
            field=models.TextField(null=True),
        ),
        migrations.CreateModel(
            name="IncidentNote",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("cluster", models.CharField(max_length=32)),
                ("incident", models.CharField(max_length=64)),
                ("who", models.CharField(max_length=150)),
                ("at", models.DateTimeField()),
                ("text", models.TextField()),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["cluster", "incident", "at"], name="note_by_incident")
                ],
            },
        ),
        migrations.CreateModel(
            name="IncidentRecord",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("cluster", models.CharField(max_length=32)),
                ("incident", models.CharField(max_length=64)),
                ("cause", models.CharField(max_length=32)),
                ("confidence", models.CharField(max_length=16)),
                ("sentence", models.TextField()),
                ("began", models.DateTimeField()),
                ("ended", models.DateTimeField(null=True)),
                ("updated_at", models.DateTimeField()),
                ("settled", models.BooleanField(default=False)),
                ("worst_gap_seconds", models.FloatField(null=True)),
                ("changes", models.IntegerField()),
                ("writer", models.TextField(null=True)),
                ("part_of", models.CharField(default="", max_length=64)),
                ("leases", models.TextField(default="[]")),
                ("hosts", models.TextField(default="[]")),
                ("holders", models.TextField(default="[]")),
                ("evidence", models.TextField(default="[]")),
                ("without", models.TextField(default="[]")),
                ("members", models.TextField(default="[]")),
                ("story", models.TextField(default="[]")),
            ],
            options={
                "db_table": "leases_incident",
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["cluster", "began", "incident"], name="incident_by_time"),
                    models.Index(
                        condition=models.Q(("ended", None)),
                        fields=["cluster", "began", "incident"],
                        name="incident_going_on",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("cluster", "incident"), name="incident_once")
                ],
            },
        ),
    ]
