"""Edits know the form that they were sent with, and the version that they wrote."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("leases", "0009_change_record")]

    operations = [
        migrations.AddField(
            model_name="edit",
            name="once",
            field=models.CharField(max_length=64, null=True, unique=True),
        ),
        migrations.AddField(
            model_name="edit",
            name="resource_version",
            field=models.CharField(default="", max_length=32),
        ),
    ]
