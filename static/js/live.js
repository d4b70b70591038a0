// Keeps the page in step with the server: sends what the page shows, and puts each frame in its place.
import { tellChanges } from "leaseboard/changes";
import { correct, moveAll, now } from "leaseboard/clock";
import { dateStates, hasMenu, placeStates } from "leaseboard/cluster_menu";
import { count, figure, listShown, offer } from "leaseboard/counts";
import { drawing, reached } from "leaseboard/drawn";
import { addLines, explainLines, feedShown, seen } from "leaseboard/feed";
import { fieldShown, takeGroups, takePhases } from "leaseboard/field";
import { refetch } from "leaseboard/regions";
import { dropAll, placeAll, renewAll, shown } from "leaseboard/rows";
import { groupsShown, placeShared } from "leaseboard/shared_regions";
import { connect, STATES, WHY } from "leaseboard/socket";

/** Call `tell({state, heardAt, asOf, since, detail, behind, rate})` whenever the page may have become more or less live. */
export function startLive(url, tell, { drawn = () => {}, served = () => {} } = {}) {
  const { live, asOf } = (document.body.dataset.live ? document.body : document.documentElement).dataset;
  let [heardAt, socketState] = [now(), "retry"];
  let why = ""; // what the server said when it closed the socket for good
  let [answered, asks] = [false, null]; // whether the page has everything that `show` asked for, and its timer
  // The cluster's connection: first from the page, then from the last frame.
  let watch = { state: live, since: Number(asOf), as_of: Number(asOf) };

  function report() {
    // A page that slept still takes its socket for live: the time of the last frame decides.
    if (socketState === "live" && now() - heardAt > SILENCE) socketState = "retry";
    dateStates(socketState === "live", heardAt);
    if (socketState !== "live" && (watch.state === "live" || WHY[socketState])) {
      const asOf = watch.state === "live" ? heardAt : watch.as_of;
      tell({ state: STATES[socketState] ?? socketState, heardAt, asOf, detail: why || WHY[socketState] });
      return;
    }
    tell({
      state: watch.state,
      heardAt,
      asOf: watch.as_of,
      since: watch.state === "live" ? undefined : watch.since,
      detail: watch.detail, behind: watch.behind_seconds ?? null, rate: watch.events_per_second ?? null,
      problem: watch.problem, partly: watch.partly_live,
    });
  }

  function show() {
    answered = false;
    asks ??= setTimeout(ask, TOGETHER);
  }

  function ask() {
    asks = null;
    socket.send({ show: shown(), ...feedShown(), ...listShown(), ...fieldShown(), ...drawing(), clusters: hasMenu(), groups: groupsShown() });
  }

  function apply(frame) {
    if (frame.groups) return takeGroups(frame.groups);
    if (frame.version) served(frame.version);
    if ("moved" in frame) moveAll(frame.moved, frame.jumps);
    correct(frame.now);
    [heardAt, watch] = [frame.now, frame.connection];
    if (frame.html) placeAll(frame.html);
    if (frame.renewed) renewAll(frame.renewed);
    if (frame.gone) dropAll(frame.gone, frame.ends);
    if (frame.feed && addLines(frame.feed, frame.seq)) refetch("changed");
    const changes = frame.numbers || frame.changes || frame.refetch ? seen(frame) : (frame.feed?.length ?? 0);
    if (changes || frame.refetch) tellChanges(frame.refetch ? null : changes, frame.again);
    if (frame.counts) count(frame.counts);
    if (frame.figures) figure(frame.figures);
    if (frame.regions) placeShared(frame.regions);
    if (frame.clusters) placeStates(frame.clusters);
    offer(frame);
    if (frame.renewed || frame.html?.lease) refetch("renewed");
    for (const why of ["gone", "recount"]) if (frame[why]) refetch(why);
    if (answered && frame.html?.now) refetch("now");
    if (frame.counts || (answered && frame.html?.row)) refetch("counts");
    if (frame.explained) explainLines(frame.explained);
    if (frame.incidents) refetch("incidents");
    answered ||= frame.shown && !asks;
    if (answered) reached(frame.drawn);
    if (frame.refetch) refetch("all");
    report();
    if (frame.html || frame.gone) drawn();
  }

  const socket = connect(url, {
    onOpen: show,
    onFrame: apply,
    onBytes: takePhases,
    onState(state, reason) {
      [socketState, why] = [state, reason ?? ""];
      if (state !== "live") report();
    },
  });
  if (watch.state !== "live") report();
  setInterval(report, 1000);
  setInterval(() => document.hidden || socketState !== "live" || refetch("time"), 60_000);
  document.addEventListener("visibilitychange", report);
  return { show };
}

const SILENCE = 2.5; // s without a frame: the server sends one a second
const TOGETHER = 10; // ms in which the parts of one answer settle, one after the other
