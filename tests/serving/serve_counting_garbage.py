"""`manage.py` that collects no garbage by itself. At SIGUSR2 it does, and prints the types of what
it found that are ours, or a template's context.
"""

import gc
import os
import signal
import sys
from typing import Any

from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

CONTEXT = "django.template.context."


def _collect(*_given: Any) -> None:
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    types = {f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.garbage}
    ours = sorted(name for name in types if name.startswith(("dashboard.", "leases.", CONTEXT)))
    gc.garbage.clear()
    gc.set_debug(0)
    gc.collect()
    print(f"GARBAGE: {' '.join(ours)}.", file=sys.stderr, flush=True)


gc.disable()
signal.signal(signal.SIGUSR2, _collect)
execute_from_command_line(sys.argv)
