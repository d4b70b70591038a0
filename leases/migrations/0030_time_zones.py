from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("leases", "0029_added_cluster"),
    ]

    operations = [
        migrations.AddField(
            model_name="person",
            name="zone",
            field=models.CharField(default="UTC", max_length=64),
        ),
        migrations.AddField(
            model_name="walllink",
            name="zone",
            field=models.CharField(default="UTC", max_length=64),
        ),
    ]
