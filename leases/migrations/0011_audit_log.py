"""The audit log knows where a request came from, what it changed and what the API answered."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("leases", "0010_edit_once")]

    operations = [
        migrations.AddField("edit", "address", models.CharField(default="", max_length=64)),
        migrations.AddField("edit", "batch", models.CharField(default="", max_length=64)),
        migrations.AddField("edit", "as_user", models.CharField(default="", max_length=150)),
        migrations.AddField("edit", "changes", models.JSONField(default=list)),
        migrations.AddField("edit", "request", models.JSONField(default=dict)),
        migrations.AddField("edit", "answer", models.JSONField(default=dict)),
        migrations.AddField("edit", "resolved_at", models.DateTimeField(null=True)),
        migrations.AddIndex(
            "edit",
            models.Index(fields=["cluster", "namespace", "name", "at"], name="edit_by_lease"),
        ),
        migrations.AddIndex(
            "edit",
            models.Index(
                condition=models.Q(("outcome", "intended")), fields=["at"], name="edit_open"
            ),
        ),
        migrations.AddIndex(
            "edit",
            models.Index(
                condition=models.Q(("batch", ""), _negated=True),
                fields=["batch"],
                name="edit_by_batch",
            ),
        ),
    ]
