"""Wall links become random. Links of before were a signed row number, which opened again after the
database was made anew, so all of them end here: admins make new ones."""

from typing import Any

from django.db import migrations, models
from django.utils import timezone


def end_old_links(apps: Any, schema_editor: Any) -> None:
    links = apps.get_model("leases", "WallLink").objects
    links.using(schema_editor.connection.alias).filter(revoked_at=None).update(
        revoked_at=timezone.now()
    )


class Migration(migrations.Migration):
    dependencies = [
        ("leases", "0007_refused_rows"),
    ]

    operations = [
        migrations.AddField(
            model_name="walllink",
            name="clusters",
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name="walllink",
            name="created_by",
            field=models.CharField(default="", max_length=150),
        ),
        migrations.AddField(
            model_name="walllink",
            name="digest",
            field=models.CharField(max_length=64, null=True, unique=True),
        ),
        migrations.AddField(
            model_name="walllink",
            name="last_used_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AlterField(
            model_name="walllink",
            name="name",
            field=models.CharField(max_length=100),
        ),
        migrations.RunPython(end_old_links, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name="walllink",
            constraint=models.UniqueConstraint(
                condition=models.Q(("revoked_at", None)), fields=("name",), name="wall_link_once"
            ),
        ),
    ]
