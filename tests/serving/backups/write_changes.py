"""A writer of history without pause, in a process of its own.

python3 -m tests.serving.backups.write_changes    (LEASEBOARD_DATA says where)

Prints each change's number once it is stored.
"""

from __future__ import annotations

import itertools
import os


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
    import django

    django.setup()
    from leases.history.write_batch import write_changes
    from tests.support.values.changes import a_change

    for number in itertools.count(1):
        write_changes([a_change(number)])
        print(number, flush=True)


if __name__ == "__main__":
    main()
