from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("leases", "0030_time_zones"),
    ]

    operations = [
        migrations.AddField(
            model_name="walllink",
            name="fleet",
            field=models.BooleanField(default=False),
        ),
        migrations.AlterField(
            model_name="walllink",
            name="namespace",
            field=models.CharField(default="", max_length=1024),
        ),
    ]
