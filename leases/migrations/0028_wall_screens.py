import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("leases", "0027_saved_view"),
    ]

    operations = [
        migrations.AddField(
            model_name="walllink",
            name="kinds",
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name="walllink",
            name="namespace",
            field=models.CharField(default="", max_length=63),
        ),
        migrations.CreateModel(
            name="WallScreen",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("code_digest", models.CharField(max_length=64, unique=True)),
                ("code_ends_at", models.DateTimeField()),
                ("digest", models.CharField(max_length=64, null=True, unique=True)),
                ("redeemed_at", models.DateTimeField(null=True)),
                (
                    "link",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="screens",
                        to="leases.walllink",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
    ]
