from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("leases", "0031_wall_of_the_fleet"),
    ]

    operations = [
        migrations.AddField(
            model_name="wallscreen",
            name="address",
            field=models.CharField(default="", max_length=64),
        ),
        migrations.AddField(
            model_name="wallscreen",
            name="last_seen_at",
            field=models.DateTimeField(null=True),
        ),
    ]
