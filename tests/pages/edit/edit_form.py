"""The edit form as a browser reads and sends it."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from dashboard.watched_cluster import WatchedCluster
from leases.domain.lease import ObjectName
from tests.support.values.untouched_form import as_typed

PATH = "/c/a/leases/default/story/edit/"
KEY = ObjectName("default", "story")


async def typed(cluster: WatchedCluster, **given: str) -> dict[str, Any]:
    """What a browser sends: the form as it is drawn now, with what was typed into it."""
    shown = as_typed(await cluster.client.get(KEY))
    return dict(shown.lists()) | {"reason": "drill"} | given


def sent(text: str) -> dict[str, str]:
    """The fields of a drawn form, as a browser would send them."""
    text = re.sub("(?s)<template>.*?</template>", "", text)
    inputs = re.findall(r'<input([^>]*) name="([\w-]+)"[^>]*?(?: value="([^"]*)")?[^>]*>', text)
    shown = {name: unescape(value) for kind, name, value in inputs if "radio" not in kind}
    return {name: value for name, value in shown.items() if name != "q"}
