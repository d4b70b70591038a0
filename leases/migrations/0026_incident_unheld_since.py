from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("leases", "0025_receiver_address_and_decisions"),
    ]

    operations = [
        migrations.AddField(
            model_name="incidentrecord",
            name="unheld_since",
            field=models.DateTimeField(null=True),
        ),
    ]
