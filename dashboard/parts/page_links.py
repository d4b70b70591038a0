"""Links between a Lease, the timeline, history and holders, with the time that a page shows."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from urllib.parse import urlencode

import msgspec
from django.http import Http404, QueryDict
from django.urls import reverse

from dashboard.lists.url_parameters import (
    LIMIT,
    BadFilter,
    Parameter,
    UrlState,
    holder_text,
    one_of,
    read_moment,
    true_or_false,
    words,
    write_moment,
)
from dashboard.parts.holdings import host_of
from dashboard.parts.names import cluster_path, holder_in_path, holder_parameter, lease_url
from dashboard.parts.time_range import RANGES, TimeRange
from leases.domain.change import ChangeType
from leases.domain.incident import Cause
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.history.indexed_search import HistoryFilter

_SECOND = timedelta(seconds=1)
FAST_CLOCK = timedelta(minutes=1)  # of a program that asks for what is new by its own clock


class ShownTime(msgspec.Struct, frozen=True, kw_only=True):
    """A range that ends now or at the instant `at`, or the stretch from `since` to `until`."""

    range: str = ""
    since: datetime | None = None
    until: datetime | None = None
    at: datetime | None = None

    def of_timeline(self) -> dict[str, str]:
        if self.since is not None:
            ends = {"from": write_moment(self.since), "to": write_moment(self.until)}
        else:
            ends = {"range": self.range}
        return ends | {"at": write_moment(self.at)}

    def of_history(self) -> dict[str, str]:
        """An instant becomes the end of the stretch; what happened at it is included."""
        since, until = self.since, self.until
        if since is None and self.at is not None:
            until = self.at.replace(microsecond=0) + _SECOND
            since = until - RANGES[self.range] if self.range else None
        elif since is None:
            return {"range": self.range}
        return {"since": write_moment(since), "until": write_moment(until)}


def shown_time(shown: TimeRange, name: str, at: datetime | None) -> ShownTime:
    """The time of a page that shows a stretch; `name` is that of its range, if it is live."""
    if shown.live:
        return ShownTime(range=name, at=at)
    return ShownTime(since=shown.since, until=shown.until, at=at)


NOW = ShownTime()
LAST_HOUR = ShownTime(range="1h")


def lease_pages(
    cluster: str, key: ObjectName, kind: Kind | None, time: ShownTime
) -> dict[str, str]:
    """The pages and the file that tell more of the same Lease and time."""
    return {
        "cluster": cluster,
        "timeline": timeline_url(cluster, key, kind, time),
        "history": history_url(cluster, key, time),
        "csv": history_url(cluster, key, time, "csv"),
        "ranking": ranking_url(cluster, time),
        "reliability": reliability_url(cluster, key) if kind is Kind.ELECTION else "",
    }


def reliability_url(cluster: str, key: ObjectName) -> str:
    """The totals of one election."""
    return _url("reliability", cluster, {"namespace": key.namespace, "lease": key.name})


def lease_url_at(cluster: str, key: ObjectName, time: ShownTime) -> str:
    """The page of a Lease; its parameters are those of the timeline."""
    query = urlencode({name: value for name, value in time.of_timeline().items() if value})
    return f"{lease_url(cluster, key)}?{query}"


def timeline_url(
    cluster: str, key: ObjectName, kind: Kind | None = None, time: ShownTime = NOW
) -> str:
    """The lane of one Lease. The timeline shows elections unless told another kind."""
    other = kind.value if kind is not None and kind is not Kind.ELECTION else ""
    return _url("timeline", cluster, time.of_timeline() | {"kind": other, "q": str(key)})


def history_url(cluster: str, key: ObjectName, time: ShownTime = NOW, answer_as: str = "") -> str:
    """The changes of one Lease, as a page or as a file."""
    which = {"namespace": key.namespace, "lease": key.name}
    return _url("history", cluster, which | time.of_history() | {"format": answer_as})


def ranking_url(cluster: str, time: ShownTime, kinds: Iterable[Kind] = ()) -> str:
    """All Leases of a stretch, ranked. A range that ends at an instant becomes a stretch."""
    if time.since is None and time.at is not None and time.range:
        time = ShownTime(since=time.at - RANGES[time.range], until=time.at)
    query = time.of_timeline() | {"at": "", "kind": [kind.value for kind in kinds]}
    pairs = {name: value for name, value in query.items() if value}
    return f"{cluster_path('stretch', cluster)}?{urlencode(pairs, doseq=True)}"


def holder_url(
    cluster: str, identity: str, *, at: datetime | None = None, in_leases: bool = False
) -> str:
    """What the host of a holder holds: on its page, or `in_leases`, which knows an instant too."""
    host = host_of(identity)
    if at is None and not in_leases:
        return holder_page(cluster, host)
    return _url("leases", cluster, {"holder": holder_parameter(host), "at": write_moment(at)})


class NotKnown(Http404):
    """What is not there, and a link to where more is known."""

    def __init__(self, text: str, url: str, label: str, title: str = "") -> None:
        super().__init__(text)
        self.url, self.label, self.title = url, label, title


def holder_page(cluster: str, host: str) -> str:
    """Everything about one host, or one identity that names no host."""
    return f"{cluster_path('holders', cluster)}{holder_in_path(host)}/"


def all_clusters_url() -> str:
    """The page of all clusters, also for people who start with another one."""
    return f"{reverse('home')}?all"


def _url(page: str, cluster: str, query: dict[str, str]) -> str:
    kept = urlencode({name: value for name, value in query.items() if value})
    path = cluster_path(page, cluster)
    return f"{path}?{kept}" if kept else path


_TRUTH = {"true": True, "false": False}
TABLE, LINES = VIEWS = ("table", "sentences")


def _truth(query: QueryDict, name: str) -> bool | None:
    return _TRUTH.get(true_or_false(query, name))


class HistoryState(UrlState, HistoryFilter, frozen=True, kw_only=True):
    """What the URL of history says. `range` ends now; `before` is the cursor of a page."""

    PARAMETERS = {
        "change": Parameter("change", words, ChangeType),
        "kind": Parameter("kind", words, Kind),
        "cause": Parameter("cause", words, Cause),
        "namespace": Parameter("namespace"),
        "lease": Parameter("lease"),
        "holder": Parameter("holder", holder_text),
        "text": Parameter("q"),
        "inferred": Parameter("inferred", _truth),
        "since": Parameter("since", read_moment),
        "until": Parameter("until", read_moment),
        "range": Parameter("range", one_of, ("", *RANGES)),
        "view": Parameter("view", one_of, VIEWS),
        "before": Parameter("before", QueryDict.get),
        "limit": LIMIT,
    }
    range: str = ""
    view: str = TABLE
    before: str = ""
    limit: int = 50
    page: int = 1  # its pages have cursors

    def as_of(self, now: datetime) -> HistoryFilter:
        """The filter alone, with the range applied. Raises BadFilter if that leaves no time."""
        found = {name: getattr(self, name) for name in HistoryFilter.__struct_fields__}
        if self.range:
            found["since"] = max(filter(None, (self.since, now - RANGES[self.range])))
        since = found["since"]
        if since is not None and since > now + FAST_CLOCK:
            raise BadFilter("since lies in the future: nothing has happened then yet.")
        if since is not None and self.until is not None and self.until <= since:
            begin = "since" if since == self.since else "the beginning of the range"
            raise BadFilter(f"until must be later than {begin}.", names=("since",))
        return HistoryFilter(**found)
