"""Those who write Leases: electors as client-go's leaderelection.go runs them, and kubelets."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from tests.support.variants.api import Api, Object, Unavailable
from tests.support.variants.made import text


class Settings(msgspec.Struct, frozen=True):
    """Of one election, in seconds."""

    namespace: str
    name: str
    manager: str
    duration: int = 15
    deadline: float = 10
    retry: float = 2
    release: bool = True

    @property
    def lease(self) -> str:
        return f"{self.namespace}/{self.name}"


class Elector:
    """One contender; `cut` while its requests do not come through."""

    def __init__(self, api: Api, settings: Settings, identity: str, clock: float = 0) -> None:
        self.identity = identity
        self.alive = True
        self.cut_until = self.frozen_until = api.now
        self.trusts_renew_time = False
        self.lost: Any = lambda: None  # called when it gives up its lead
        self._api, self._settings = api, settings
        self._clock = timedelta(seconds=clock)
        self._seen: Object = {}
        self._seen_at = api.now
        self.leads = self._asked = False
        self._renewed = api.now
        api.after(api.between(0, 0.4), self._turn)

    # -- what a story does to it

    def stop(self) -> None:
        """End it as SIGTERM does: release, where it releases."""
        if self.alive and self.leads and self._settings.release and not self.cut:
            self._release()
        self.alive = False

    def kill(self) -> None:
        self.alive = False

    def freeze(self, seconds: float) -> None:
        """Stop its process, as SIGSTOP or a lack of CPU do."""
        self.frozen_until = self._api.now + timedelta(seconds=seconds)

    @property
    def cut(self) -> bool:
        return self._api.now < self.cut_until

    # -- its loop

    def _turn(self) -> None:
        if not self.alive:
            return
        api, settings = self._api, self._settings
        if (frozen := (self.frozen_until - api.now).total_seconds()) > 0:
            api.after(frozen + 0.01, self._turn)
            return
        if self.leads and api.now - self._renewed > timedelta(
            seconds=settings.deadline + settings.retry
        ):
            self._give_up()
            return
        if wait := api.stalled_for or self._slow():
            self._late(wait)
            return
        self._asked = False
        done = not self.cut and self._try()
        if (
            self.leads
            and not done
            and api.now - self._renewed >= timedelta(seconds=settings.deadline)
        ):
            self._give_up()
            return
        wait = settings.retry * (1 if self.leads else 1 + 1.2 * api.random.random())
        api.after(wait + api.between(0.001, 0.008), self._turn)

    def _slow(self) -> float:
        """How long the API server takes for this request; 0: it has answered."""
        wait = 0.0 if self._asked else self._api.slowness()
        self._asked = wait > 0
        return wait

    def _late(self, wait: float) -> None:
        """Its request is answered when the API server runs again, or its deadline passes."""
        left = self._settings.deadline - (self._api.now - self._renewed).total_seconds()
        if self.leads and wait > left:
            self._api.after(wait + 0.01, self._give_up)
        else:
            self._api.after(wait + self._api.between(0, 0.3), self._turn)

    def _give_up(self) -> None:
        if not self.alive:
            return
        if self._settings.release and not self.cut:
            self._release()
        self.alive = self.leads = False
        self.lost()

    def _try(self) -> bool:
        try:
            lease = self._api.get("leases", self._settings.namespace, self._settings.name)
            return self._acquire_or_renew(lease)
        except Unavailable:
            return False

    def _acquire_or_renew(self, lease: Object | None) -> bool:
        api, settings = self._api, self._settings
        if lease is None:
            meta = {"name": settings.name, "namespace": settings.namespace}
            spec = self._record() | {"leaseTransitions": 0}
            kind = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1"}
            api.create("leases", kind | {"metadata": meta, "spec": spec}, settings.manager)
            return self._led()
        spec = lease["spec"]
        if spec != self._seen:
            self._seen, self._seen_at = dict(spec), api.now
        holder = spec.get("holderIdentity")
        if holder and holder != self.identity and not self._ran_out(spec):
            return False  # one that led goes on trying until its deadline
        new = self._record()
        if holder == self.identity:
            new["acquireTime"] = spec.get("acquireTime") or new["acquireTime"]
            new["leaseTransitions"] = spec.get("leaseTransitions", 0)
        else:
            new["leaseTransitions"] = spec.get("leaseTransitions", 0) + 1
        api.write_lease(lease, new, settings.manager)
        self._seen, self._seen_at = dict(lease["spec"]), api.now
        return self._led()

    def _ran_out(self, spec: Object) -> bool:
        duration = timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
        if self.trusts_renew_time:
            renewed = datetime.fromisoformat(spec["renewTime"])
            return renewed + duration < self._api.now + self._clock
        return self._seen_at + duration < self._api.now

    def _led(self) -> bool:
        self.leads, self._renewed = True, self._api.now
        return True

    def _record(self) -> Object:
        now = text(self._api.now + self._clock)
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self._settings.duration,
            "acquireTime": now,
            "renewTime": now,
        }

    def _release(self) -> None:
        try:
            lease = self._api.get("leases", self._settings.namespace, self._settings.name)
            if lease is None or lease["spec"].get("holderIdentity") != self.identity:
                return
            freed = self._record() | {"holderIdentity": "", "leaseDurationSeconds": 1}
            self._api.write_lease(lease, freed, self._settings.manager)
        except Unavailable:
            pass


class Kubelet:
    """Renews its node's heartbeat every 10 s of 40 s."""

    def __init__(self, api: Api, node: str, uid: str, *, delay: float | None = None) -> None:
        self.alive = True
        self.cut_until = api.now
        self._api, self._node, self._uid = api, node, uid
        api.after(api.between(0, 10) if delay is None else delay, self._turn)

    def cut_for(self, seconds: float) -> None:
        self.cut_until = self._api.now + timedelta(seconds=seconds)

    def _turn(self) -> None:
        if not self.alive:
            return
        api = self._api
        if wait := api.stalled_for:
            api.after(wait + api.between(0, 0.3), self._turn)
            return
        done = False
        if api.now >= self.cut_until:
            try:
                self._renew()
                done = True
            except Unavailable:
                pass
        api.after(10 + api.between(0, 0.4) if done else api.between(0.2, 6), self._turn)

    def _renew(self) -> None:
        api, now = self._api, text(self._api.now)
        lease = api.get("leases", "kube-node-lease", self._node)
        if lease is not None:
            api.write_lease(lease, {"holderIdentity": self._node, "renewTime": now}, "kubelet")
            return
        owner = {"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": self._uid}
        meta = {"name": self._node, "namespace": "kube-node-lease", "ownerReferences": [owner]}
        spec = {"holderIdentity": self._node, "leaseDurationSeconds": 40, "renewTime": now}
        kind = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1"}
        api.create("leases", kind | {"metadata": meta, "spec": spec}, "kubelet")
