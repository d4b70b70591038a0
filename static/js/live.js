// Keeps the page in step with the server: says what it shows, and puts what comes in its place.
import { tellChanges } from "leaseboard/changes";
import { correct, now } from "leaseboard/clock";
import { addLines, feedShown, seen } from "leaseboard/feed";
import { takeGroups, takePhases } from "leaseboard/field";
import { placeShared, refetch } from "leaseboard/regions";
import { dropAll, placeAll, renewAll, shown } from "leaseboard/rows";
import { connect } from "leaseboard/socket";

/** `tell({state, heardAt, since, detail, behind, rate})` is called whenever how live the page is may have moved. */
export function startLive(url, tell, { drawn = () => {} } = {}) {
  const { live, last } = (document.body.dataset.live ? document.body : document.documentElement).dataset;
  let heardAt = now();
  let socketState = "retry";
  // The cluster's own connection: as the page was drawn, then as the last frame said.
  let watch = { state: live, since: Number(last) };

  function report() {
    if (socketState !== "live" && (watch.state === "live" || WHY[socketState])) {
      tell({ state: STATES[socketState] ?? socketState, heardAt, detail: WHY[socketState] });
      return;
    }
    tell({
      state: watch.state,
      heardAt,
      since: watch.state === "live" ? undefined : watch.since,
      detail: watch.detail,
      behind: watch.behind_seconds ?? null,
      rate: watch.events_per_second ?? 0,
      problem: watch.problem,
    });
  }

  function show() {
    const groups = document.querySelector("[data-groups]")?.dataset.groups.split(" ") ?? [];
    const query = document.querySelector("[data-elsewhere]") ? location.search : null;
    const field = document.querySelector("[data-field]")?.dataset.field ?? null;
    socket.send({ show: shown(), ...feedShown(), groups, query, field });
  }

  function apply(frame) {
    if (frame.groups) return takeGroups(frame.groups);
    correct(frame.now);
    heardAt = frame.now;
    watch = frame.connection;
    if (frame.html) placeAll(frame.html, !frame.shown);
    if (frame.renewed) renewAll(frame.renewed);
    if (frame.gone) dropAll(frame.gone);
    if (frame.feed && addLines(frame.feed, frame.seq)) refetch("changed");
    if (frame.changes) seen(frame.seq);
    if (frame.feed || frame.changes || frame.refetch) tellChanges(frame.refetch ? null : frame.changes ?? frame.feed.length);
    if (frame.counts) count(frame.counts);
    if (frame.regions) placeShared(frame.regions);
    if ("elsewhere" in frame) offer(frame.elsewhere);
    if (frame.renewed || frame.html?.lease) refetch("renewed");
    if (frame.gone) refetch("gone");
    if (frame.counts || (frame.html?.row && !frame.shown)) refetch("counts");
    if (frame.refetch) refetch("all");
    report();
    if (frame.html || frame.gone) drawn();
  }

  const socket = connect(url, {
    onOpen: show,
    onFrame: apply,
    onBytes: takePhases,
    onState(state) {
      socketState = state;
      if (state !== "live") report();
    },
  });
  if (watch.state !== "live") report();
  setInterval(report, 1000);
  return { show };
}

const MOST = 1000; // see dashboard/live/elsewhere.py
const STATES = { unknown: "refused" };
const WHY = {
  refused: "The server does not let this page look any more. Sign in again, or ask for a new link.",
  unknown: "The server no longer watches this cluster.",
};

function count(counts) {
  for (const el of document.querySelectorAll("[data-count]")) {
    const number = counts[el.dataset.count];
    if (number !== undefined) el.textContent = number.toLocaleString("en");
    if (number !== undefined) el.toggleAttribute("data-none", number === 0);
  }
}

function offer(number) {
  const bar = document.querySelector("[data-elsewhere]");
  if (!bar) return;
  if (number && !document.querySelector("[data-key]")) bar.click(); // nothing there that could move
  const many = number >= MOST ? `${MOST.toLocaleString("en")} or more` : number;
  bar.textContent = `${many} new problem${number === 1 ? "" : "s"} outside this page · Show`;
  bar.hidden = number === 0;
}
