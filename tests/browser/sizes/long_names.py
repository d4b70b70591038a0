"""A cluster whose names are long, and differ in few letters; and how much of a name is seen."""

from __future__ import annotations

import zlib
from typing import Any

from playwright.sync_api import Page

from tests.support.api_client import LeaseApi, leases, timestamp

CERT_MANAGER = [
    "cert-manager-cainjector-leader-election",
    "cert-manager-cainjector-leader-election-core",
    "cert-manager-controller",
]
KYVERNO = [f"kyverno-{part}-controller" for part in ("admission", "background", "cleanup")]
CSI = [f"external-{part}-leader-ebs-csi-aws-com" for part in ("attacher", "provisioner", "resizer")]
GRID = [
    f"payments-eu-west-{zone}-worker-{n}-leader-election" for zone in (1, 2) for n in (1, 2, 11)
]
OF_63 = [f"{'b' * 30}-{one}-{'a' * 30}" for one in "xyz"]
OF_253 = [f"{'shard-' * 20}{one}{'-leader' * 18}-{'z' * 5}" for one in "123456"]
NODES = [
    f"gke-production-pool-1-8d3f2a11-{tail}.eu-central-1.internal" for tail in ("x2vf", "x2vg")
]
UUID = "8c2e41f0-5b1d-4f0e-9a57-2d9a3c1b7e44"
TEAM = "team-payments-production-eu-central-1"
EXPIRED = [*OF_253, *GRID]
# Who wrote them by hand, two Leases each: three together would be an incident with a row.
PERSONS = ("annotate", "apply", "create", "edit", "label", "patch")
WRITERS = {name: f"kubectl-{PERSONS[n % 6]}" for n, name in enumerate(EXPIRED)}


def fill(api: LeaseApi, *, heartbeats: int = 1) -> None:
    """Long names in five namespaces; the elections in EXPIRED have run out.

    So have the heartbeats, unless they last for more seconds: then no Node is down.
    """
    for namespace in ("cert-manager", "kyverno", TEAM):
        api.send("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    _create(api, "cert-manager", CERT_MANAGER)
    _create(api, "kyverno", KYVERNO)
    _create(api, TEAM, OF_63)
    _create(api, TEAM, GRID, leaseDurationSeconds=1)
    _create(api, "default", CSI)
    _create(api, "default", OF_253, leaseDurationSeconds=1)
    for name in NODES:
        heartbeat = {
            "acquireTime": None,
            "leaseTransitions": None,
            "leaseDurationSeconds": heartbeats,
        }
        _create(api, "kube-node-lease", [name], holderIdentity=name, **heartbeat)


def _create(api: LeaseApi, namespace: str, names: list[str], **spec: Any) -> None:
    for name in names:
        held = {
            "holderIdentity": _pod(name),
            "leaseDurationSeconds": 3600,
            "acquireTime": timestamp(),
            "renewTime": timestamp(),
            "leaseTransitions": 1,
        }
        body = {"metadata": {"name": name}, "spec": held | spec}
        manager = WRITERS.get(name, "leader")
        api.send("POST", f"{leases(namespace)}?fieldManager={manager}", body)


def _pod(name: str) -> str:
    """A pod of a Deployment, as a controller names itself."""
    letters = "bcdfghjklmnpqrstvwxz2456789"
    number = zlib.crc32(name.encode())
    tail = "".join(letters[number // len(letters) ** place % len(letters)] for place in range(5))
    return f"{name[:40].strip('-')}-59d4c9cf7d-{tail}_{UUID}"


# Each name on the page with the letters of it that are seen: not those behind an edge, nor those
# that an ellipsis hides (it is at most as wide as the letters are high).
SEEN = """(names) => {
  const seen = (el) => {
    const letters = [];
    const walker = document.createTreeWalker(el, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      let [left, right, cut] = [0, innerWidth, false];
      for (let box = node.parentElement; box; box = box.parentElement) {
        const style = getComputedStyle(box);
        if (style.overflowX === "visible" || style.display === "inline") continue;
        const place = box.getBoundingClientRect();
        const hides = style.textOverflow === "ellipsis" && box.scrollWidth > box.clientWidth;
        cut ||= hides;
        left = Math.max(left, place.left);
        right = Math.min(right, place.right - (hides ? parseFloat(style.fontSize) : 0));
      }
      const range = document.createRange();
      range.selectNodeContents(node);
      const whole = range.getBoundingClientRect();
      if (!cut && whole.width && whole.left >= left && whole.right <= right) {
        letters.push(node.data);
        continue;
      }
      for (let at = 0; at < node.data.length; at += 1) {
        range.setStart(node, at);
        range.setEnd(node, at + 1);
        const { width, left: from, right: to } = range.getBoundingClientRect();
        if (width && from >= left - 0.5 && to <= right + 0.5) letters.push(node.data[at]);
      }
      if (cut) letters.push("…");
    }
    return letters.join("").trim();
  };
  return [...document.querySelectorAll(names)]
    .filter((el) => el.checkVisibility({ visibilityProperty: true }))
    .map((el) => [el.textContent.trim(), seen(el)]);
}"""

# Pixels between the ellipsis of each cut piece and what follows it.
GAPS = """() => [...document.querySelectorAll(".cut > i, .holder .host")]
  .filter((el) => el.checkVisibility())
  .filter((el) => {
    const range = document.createRange();
    range.selectNodeContents(el);
    const { width } = el.getBoundingClientRect();
    return range.getBoundingClientRect().width > width + 0.02 || el.scrollWidth > el.clientWidth;
  })
  .map((el) => {
    const { fontWeight, fontSize, fontFamily } = getComputedStyle(el);
    const range = document.createRange();
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `${fontWeight} ${fontSize} ${fontFamily}`;
    const room = el.getBoundingClientRect().width - pen.measureText("…").width;
    let gap = 0;
    for (let letters = 1; letters <= el.firstChild.length; letters += 1) {
      range.setStart(el.firstChild, 0);
      range.setEnd(el.firstChild, letters);
      const left = room - range.getBoundingClientRect().width;
      if (left < 0) break;
      gap = left;
    }
    return gap;
  })"""


def names_seen(page: Page, css: str) -> dict[str, str]:
    """Whole names with what is seen of them where least is seen."""
    least: dict[str, str] = {}
    for whole, seen in page.evaluate(SEEN, css):
        if whole not in least or len(seen) < len(least[whole]):
            least[whole] = seen
    return least
