"""Deletions of many Leases are kept with what was chosen."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("leases", "0012_vacancy_mark"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Deletion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("batch", models.CharField(max_length=64, unique=True)),
                ("cluster", models.CharField(max_length=32)),
                ("username", models.CharField(max_length=150)),
                ("address", models.CharField(default="", max_length=64)),
                ("as_user", models.CharField(default="", max_length=150)),
                ("reason", models.TextField(default="")),
                ("words", models.TextField(default="")),
                ("chosen", models.BinaryField()),
                ("total", models.IntegerField()),
                ("made_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("state", models.CharField(default="waiting", max_length=16)),
                ("note", models.TextField(default="")),
                ("process", models.CharField(max_length=32)),
                ("beat_at", models.DateTimeField()),
                ("stop_asked", models.BooleanField(default=False)),
                ("once", models.CharField(max_length=64, null=True, unique=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index(fields=["cluster", "state"], name="deletion_by_state")],
            },
        ),
    ]
