"""Queue messages about incidents, in the transaction that writes them; mutes and acknowledgements.

So a killed process loses none, and of several replicas one queues each message: the rows of a
receiver and an incident are numbered, and a number is there once.
"""

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from django.db import DatabaseError, transaction
from django.db.models import F, Q, QuerySet

from leases.domain import notify
from leases.domain.incident import Incident
from leases.domain.lease import ObjectName
from leases.history.database import is_text, to_stored
from leases.history.refused_rows import is_of_the_value
from leases.history.rows import as_text, story_of
from leases.models import Acknowledgement, IncidentRecord, Notification, QuietTime, Receiver

MAX_OUTCOME = 300  # characters
MUTED = "It waits for the end of a mute or a maintenance window."
SETTLES = timedelta(seconds=130)  # the casebook settles an incident within 120 s
LATER = timedelta(seconds=1)  # than its group: such a message is not sent with others before


def acknowledgement_of(cluster: str, incident: str) -> Acknowledgement | None:
    return Acknowledgement.objects.filter(cluster=cluster, incident=incident).first()


def acknowledge(
    cluster: str, incident: str, *, who: str, at: datetime, take_over: bool = False
) -> Acknowledgement:
    """Note who takes care of it. The first person stays, unless another takes over. That it
    worsened is not sent any more, unless a receiver may have been sent it already."""
    note = Acknowledgement.objects
    with transaction.atomic():
        found, _ = (note.update_or_create if take_over else note.get_or_create)(
            cluster=cluster, incident=incident, defaults={"who": who, "at": at}
        )
        Notification.objects.filter(
            cluster=cluster,
            incident=incident,
            stage=notify.Stage.WORSENED.value,
            state=Notification.WAITING,
            attempts=0,
        ).update(
            state=Notification.WITHDRAWN,
            ended_at=at,
            outcome=f"Not sent: {found.who} takes care of the incident."[:MAX_OUTCOME],
        )
    return found


def take_back(incident: Incident, *, at: datetime) -> None:
    """Take back the newest that a person said of it: that it is over, else that they take care of
    it. Receivers hear that it goes on."""
    mine = Acknowledgement.objects.filter(cluster=incident.cluster, incident=incident.id)
    with transaction.atomic():
        was_over = mine.exclude(over_at=None).exists()
        cared_before = mine.filter(at__lt=F("over_at")).update(over_at=None)
        if not cared_before:
            mine.delete()
        if was_over:
            _tell(incident, at)


def _tell(incident: Incident, at: datetime) -> None:
    """Queue what a person decided."""
    queue = _Queue(incident.cluster, list(Receiver.objects.filter(enabled=True)))
    queue.add([(incident, at)], decided=True)


def decide_over(incident: Incident, *, who: str, at: datetime) -> None:
    """Note that a person calls it over, and tell the receivers that heard of it. Who took care of
    it so far does so again if it goes on."""
    mine = Acknowledgement.objects.filter(cluster=incident.cluster, incident=incident.id)
    with transaction.atomic():
        if not mine.filter(who=who, over_at=None).update(over_at=at):
            mine.update_or_create(
                cluster=incident.cluster,
                incident=incident.id,
                defaults={"who": who, "at": at, "over_at": at},
            )
        _tell(incident, at)


class Care(msgspec.Struct, frozen=True):
    """What people do about incidents, by cluster and id, and what they muted."""

    taken: dict[tuple[str, str], Acknowledgement] = {}
    quiet: Sequence[notify.Quiet] = ()


def care(incidents: Collection[Incident] | None = None) -> Care:
    """Of these incidents, else of all that go on."""
    if incidents is not None:
        rows = Acknowledgement.objects.filter(
            cluster__in={one.cluster for one in incidents},
            incident__in=[one.id for one in incidents],
        )
    else:
        going_on = IncidentRecord.objects.filter(ended=None)
        rows = Acknowledgement.objects.filter(incident__in=going_on.values("incident"))
    return Care({(row.cluster, row.incident): row for row in rows}, quiet_times())


def mutes_of(cluster: str, key: ObjectName, now: datetime) -> list[QuietTime]:
    """Those that hold back the messages about a Lease now, the narrowest first."""
    rows = _not_ended(now).filter(
        cluster__in=("", cluster),
        namespace__in=("", key.namespace),
        name__in=("", key.name),
        since__lte=now,
    )
    return list(rows.order_by("-name", "-namespace", "pk"))


def alike(row: QuietTime, now: datetime) -> QuietTime | None:
    """One that holds back the same at the same time, for the longest."""
    rows = _not_ended(now).filter(cluster=row.cluster, namespace=row.namespace, name=row.name)
    if row.until is not None:
        rows = rows.filter(since__lt=row.until)
    overlap = rows.filter(Q(until=None) | Q(until__gt=row.since))
    return overlap.order_by(F("until").desc(nulls_first=True), "pk").first()


def quiet_times() -> list[notify.Quiet]:
    """All that are stored: `forget_quiet_times` deletes those that ended long ago."""
    return [
        notify.Quiet(
            cluster=row.cluster,
            namespace=row.namespace,
            name=row.name,
            since=row.since,
            until=row.until,
        )
        for row in QuietTime.objects.all()
    ]


def listed(now: datetime) -> list[QuietTime]:
    """Those that have not ended, the next one to begin last."""
    return list(_not_ended(now).order_by("since", "pk"))


def add(row: QuietTime) -> None:
    row.reason = to_stored(row.reason)
    row.save()


def end(number: int, now: datetime) -> None:
    """End it now, and look now at what waits for it; one that has not begun is deleted."""
    QuietTime.objects.filter(pk=number, since__gt=now).delete()
    _not_ended(now).filter(pk=number).update(until=now)
    Notification.objects.filter(state=Notification.WAITING, outcome=MUTED).update(due_at=now)


def forget_quiet_times(before: datetime) -> None:
    QuietTime.objects.filter(until__lt=before).delete()


def _not_ended(now: datetime) -> QuerySet[QuietTime]:
    return QuietTime.objects.filter(Q(until=None) | Q(until__gt=now))


logger = logging.getLogger(__name__)

MAX_WAITING = 1000  # messages for one receiver; those beyond are logged as not sent
_NEVER_SENT = (Notification.SILENCED, Notification.WITHDRAWN)
decode_choice = msgspec.json.Decoder(notify.Choice).decode
_decode = msgspec.json.Decoder(notify.Message).decode


def stored_message(row: Notification) -> notify.Message | None:
    """The message of a row; None where it cannot be read: one row must not hold up all others."""
    try:
        return _decode(row.content) if is_text(row.content) else None
    except ValueError:
        return None


def queue_messages(reviewed: Mapping[str, Sequence[tuple[Incident, datetime]]]) -> None:
    """Queue what is news in these incidents by cluster, as they were concluded at these moments.

    A failure that is not of the database itself is logged: history must go on.
    """
    receivers = list(Receiver.objects.filter(enabled=True))
    for cluster, some in reviewed.items() if receivers else ():
        try:
            with transaction.atomic():
                _Queue(cluster, receivers).add(some)
        except Exception as error:
            if isinstance(error, DatabaseError) and not is_of_the_value(error):
                raise
            logger.exception("%s: messages about incidents are not queued", cluster)


class _Queue:
    """The outbox of one cluster within one transaction."""

    def __init__(self, cluster: str, receivers: Sequence[Receiver]) -> None:
        self._cluster = cluster
        self._receivers = [(one, decode_choice(one.choice)) for one in receivers]
        self._rows: dict[tuple[int, str], list[Notification]] = {}
        self._records: dict[str, IncidentRecord] = {}
        self._taken: dict[str, Acknowledgement] = {}
        self._quiet: list[notify.Quiet] = []
        self._waiting: Counter[int] = Counter()
        self._new: list[Notification] = []

    def add(self, reviewed: Sequence[tuple[Incident, datetime]], *, decided: bool = False) -> None:
        """`decided`: the news is what a person said, not a review."""
        self._read([incident.id for incident, _ in reviewed])
        for incident, at in reviewed:
            record = self._records.get(incident.id)
            # Otherwise another replica knows it better, or the database refused it.
            if record is not None and (decided or record.updated_at == at):
                self._add_incident(incident, record, at)
        Notification.objects.bulk_create(self._new, ignore_conflicts=True)

    def _read(self, ids: Sequence[str]) -> None:
        of_these = {"cluster": self._cluster, "incident__in": ids}
        for row in Notification.objects.filter(**of_these).order_by("step"):
            self._rows.setdefault((row.receiver_id, row.incident), []).append(row)
        columns = ("incident", "updated_at", "story")
        rows = IncidentRecord.objects.filter(**of_these).only(*columns)
        self._records = {row.incident: row for row in rows}
        taken = Acknowledgement.objects.filter(**of_these)
        self._taken = {row.incident: row for row in taken}
        self._quiet = quiet_times()
        waiting = Notification.objects.filter(state=Notification.WAITING)
        self._waiting = Counter(waiting.values_list("receiver", flat=True))

    def _add_incident(self, incident: Incident, record: IncidentRecord, at: datetime) -> None:
        taken = self._taken.get(incident.id)
        if incident.part_of and taken is not None:
            _move_acknowledgement(incident, incident.part_of)
        decided = taken is not None and taken.over_at is not None and incident.ended is None
        if taken is not None and decided:
            said = f"{incident.sentence}; {taken.who} decided that it is over"
            incident = msgspec.structs.replace(incident, ended=taken.over_at, sentence=said)
        subject: notify.Subject | None = None
        for receiver, choice in self._receivers:
            rows = self._rows.get((receiver.pk, incident.id), [])
            if all(row.state in _NEVER_SENT for row in rows):
                subject = subject or _subject(incident, record)
                over = incident.ended is not None and incident.ended < receiver.created_at
                if over or decided or incident.part_of or not notify.chooses(choice, subject):
                    continue
            self._add_message(receiver, choice, incident, rows, at)

    def _add_message(
        self,
        receiver: Receiver,
        choice: notify.Choice,
        incident: Incident,
        rows: list[Notification],
        at: datetime,
    ) -> None:
        """Change the message that waits, or add one."""
        heard = [row for row in rows if row.state not in _NEVER_SENT]
        unsent = heard.pop() if heard and _is_unsent(heard[-1]) else None
        if unsent is not None and self._rewrite(unsent, incident, heard, receiver, choice, at):
            return
        if unsent is not None:  # it was claimed meanwhile
            heard.append(unsent)
        last = stored_message(heard[-1]) if heard else None
        stage = self._stage(incident, last)
        if stage is None or not _wants(choice, stage):
            return
        step = rows[-1].step + 1 if rows else 0
        row = Notification(
            receiver=receiver,
            cluster=self._cluster,
            incident=incident.id,
            step=step,
            made_at=at,
            due_at=self._due(receiver, incident, last, at),
        )
        for name, value in self._content(row, stage, incident, last, choice, at).items():
            setattr(row, name, value)
        if self._waiting[receiver.pk] >= MAX_WAITING and row.state == Notification.WAITING:
            row.state, row.ended_at = Notification.FAILED, at
            row.outcome = f"Not sent: {MAX_WAITING:,} messages wait for this receiver already."
        self._waiting[receiver.pk] += 1
        self._new.append(row)

    @staticmethod
    def _due(
        receiver: Receiver, incident: Incident, last: notify.Message | None, at: datetime
    ) -> datetime:
        """What is over before anybody heard of it waits, if it may go on: else it would be over,
        new, and over again.
        """
        group = timedelta(seconds=receiver.group_seconds)
        waits = last is None and notify.may_go_on(incident)
        return at + (max(group + LATER, SETTLES) if waits else group)

    def _rewrite(
        self,
        unsent: Notification,
        incident: Incident,
        heard: Sequence[Notification],
        receiver: Receiver,
        choice: notify.Choice,
        at: datetime,
    ) -> bool:
        """Let a message that nobody has tried to send say what is known now."""
        last = stored_message(heard[-1]) if heard else None
        first_of_withdrawn = incident.part_of is not None and last is None
        stage = None if first_of_withdrawn else self._stage(incident, last)
        if stage is not None and not _wants(choice, stage):
            return True  # it is sent as it is
        values: dict[str, object]
        if stage is None:
            values = {"state": Notification.WITHDRAWN, "ended_at": at}
            values["outcome"] = (
                f"Not sent: it became a part of incident {incident.part_of}."
                if incident.part_of
                else "Not sent: it was no longer true."
            )
        else:
            values = self._content(unsent, stage, incident, last, choice, at)
            values["due_at"] = min(unsent.due_at, self._due(receiver, incident, last, at))
        rows = Notification.objects.filter(pk=unsent.pk, attempts=0, state=Notification.WAITING)
        return bool(rows.update(**values))

    def _stage(self, incident: Incident, last: notify.Message | None) -> notify.Stage | None:
        stage = notify.next_stage(incident, last)
        return None if stage is notify.Stage.WORSENED and incident.id in self._taken else stage

    def _content(
        self,
        row: Notification,
        stage: notify.Stage,
        incident: Incident,
        last: notify.Message | None,
        choice: notify.Choice,
        at: datetime,
    ) -> dict[str, object]:
        message = notify.message_of(
            incident, stage, receiver=row.receiver_id, step=row.step, last=last
        )
        values: dict[str, object] = {"stage": stage.value, "content": as_text(message)}
        if last is not None or stage is not notify.Stage.OVER:
            return values
        record = self._records.get(incident.id)
        leases = chosen_leases(choice, incident, "" if record is None else record.story)
        if notify.is_quiet(self._quiet, self._cluster, leases, at):
            values |= {"state": Notification.SILENCED, "ended_at": at}
            values["outcome"] = "Not sent: it was over before the mute or the window ended."
        return values


def chosen_leases(choice: notify.Choice, incident: Incident, story: str) -> tuple[ObjectName, ...]:
    """The Leases of an incident, told by its changes, for which a receiver is told of it."""
    changes = [change for _, change in story_of(story)] if choice.kinds and story else []
    return notify.chosen_of(choice, incident.leases, changes)


def _wants(choice: notify.Choice, stage: notify.Stage) -> bool:
    return not choice.stages or stage in choice.stages


def _is_unsent(row: Notification) -> bool:
    return row.state == Notification.WAITING and row.attempts == 0


def _subject(incident: Incident, record: IncidentRecord) -> notify.Subject:
    changes = [change for _, change in story_of(record.story)]
    return notify.Subject(
        cluster=incident.cluster,
        cause=incident.cause,
        leases=incident.leases,
        kinds=frozenset(change.kind for change in changes),
        phases=notify.phases_of(changes),
        standing=incident.standing,
        severity=notify.gravity(incident),
    )


def _move_acknowledgement(incident: Incident, heir: str) -> None:
    of_cluster = Acknowledgement.objects.filter(cluster=incident.cluster)
    if not of_cluster.filter(incident=heir).exists():
        of_cluster.filter(incident=incident.id).update(incident=heir)
