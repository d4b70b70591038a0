from typing import Any

from django.db import migrations, models
from django.db.models import Q

PLANNED = ("graceful_stop", "rollout", "scaled_down", "preferred_holder", "drain", "by_hand")
USUAL_DURATION = 15  # seconds; rows of before do not say how long their Leases last


def judge(apps: Any, _schema_editor: object) -> None:
    incidents = apps.get_model("leases", "IncidentRecord").objects.filter(cause__in=PLANNED)
    short = Q(worst_gap_seconds=None) | Q(worst_gap_seconds__lte=USUAL_DURATION)
    incidents.update(standing="overran")
    incidents.exclude(ended=None).filter(short).update(standing="planned", shown=False)


class Migration(migrations.Migration):
    dependencies = [
        ("leases", "0021_incident_lasted_long"),
    ]

    operations = [
        migrations.AddField(
            model_name="incidentrecord",
            name="standing",
            field=models.CharField(db_default="unplanned", default="unplanned", max_length=16),
        ),
        migrations.AddField(
            model_name="incidentrecord",
            name="shown",
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.RunPython(judge, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="incidentrecord",
            index=models.Index(
                condition=models.Q(("shown", True)),
                fields=["cluster", "began", "incident"],
                name="incident_unplanned",
            ),
        ),
    ]
