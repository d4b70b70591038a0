from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("leases", "0023_trusted_clock"),
    ]

    operations = [
        migrations.AddField(
            model_name="incidentrecord",
            name="unlisted",
            field=models.TextField(db_default="", default=""),
        ),
    ]
