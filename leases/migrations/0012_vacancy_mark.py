"""An admin can say of a Lease that it may be vacant."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("leases", "0011_audit_log")]

    operations = [
        migrations.CreateModel(
            name="VacancyMark",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("cluster", models.CharField(max_length=32)),
                ("namespace", models.CharField(max_length=63)),
                ("name", models.CharField(max_length=253)),
                ("username", models.CharField(max_length=150)),
                ("at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("cluster", "namespace", "name"),
                        name="vacancy_mark_once",
                    )
                ],
            },
        ),
    ]
