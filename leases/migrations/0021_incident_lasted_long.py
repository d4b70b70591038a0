from datetime import timedelta
from typing import Any

from django.db import migrations, models
from django.db.models import F

LONG = timedelta(hours=6)


def mark(apps: Any, _schema_editor: object) -> None:
    incidents = apps.get_model("leases", "IncidentRecord").objects
    incidents.filter(ended__gt=F("began") + LONG).update(lasted_long=True)


class Migration(migrations.Migration):
    dependencies = [
        ("leases", "0020_reliability"),
    ]

    operations = [
        migrations.AddField(
            model_name="incidentrecord",
            name="lasted_long",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.RunPython(mark, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="incidentrecord",
            index=models.Index(
                condition=models.Q(("lasted_long", True)),
                fields=["cluster", "began", "incident"],
                name="incident_that_lasted",
            ),
        ),
    ]
