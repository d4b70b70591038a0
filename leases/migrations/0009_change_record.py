"""Rename the model alone: its table and its permissions keep their names."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("leases", "0008_wall_link_secret")]

    operations = [
        migrations.AlterModelTable(name="change", table="leases_change"),
        migrations.RenameModel(old_name="Change", new_name="ChangeRecord"),
        migrations.AlterModelOptions(
            name="changerecord",
            options={
                "default_permissions": (),
                "permissions": [
                    ("add_change", "Can add change"),
                    ("change_change", "Can change change"),
                    ("delete_change", "Can delete change"),
                    ("view_change", "Can view change"),
                ],
            },
        ),
    ]
