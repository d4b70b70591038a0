// Redraws the parts of a page that the server draws as a whole, for this page alone:
//   <section id="why" data-region="renewed">   htmx fetches it when its cause occurs
// hx-trigger on each part would send one request per part. So this module collects the parts for SPACING and
// lets htmx fetch and swap all of them with one request, except those that the person is using.
import { followed } from "leaseboard/clock";
import { inUse } from "leaseboard/in_use";
import { holdStill } from "leaseboard/steady";

const SPACING = 2500; // ms between two fetches
const SOON = 50; // ms
const WRITTEN = 1000; // ms until history has a change or an incident that the socket spoke of
const waiting = new Map(); // id of a part -> when it may be fetched, and when the server has all that it shall show
let timer = null;
let last = 0;
let settle = () => {};
const here = () => location.pathname + location.search;

/** Redraw the regions that depend on `cause` soon; "all" is every region. */
export function refetch(cause) {
  const moved = cause === "all" ? "[data-region]" : `[data-region~="${cause}"]`;
  const now = performance.now();
  const whole = cause === "changed" || cause === "incidents" ? now + WRITTEN : now;
  for (const { id } of document.querySelectorAll(moved)) {
    const { from, whole: before } = waiting.get(id) ?? { from: Math.max(whole, now + SOON), whole };
    waiting.set(id, { from, whole: Math.max(whole, before) });
  }
  fetchInTurn();
}

function fetchInTurn() {
  clearTimeout(timer);
  const next = Math.min(...[...waiting.values()].map(({ from }) => from));
  if (waiting.size) timer = setTimeout(fetchRegions, Math.ceil(Math.max(next, last + SPACING) - performance.now()));
}

async function fetchRegions() {
  if (document.querySelector("[data-live=refused]")) return waiting.clear(); // its right has ended
  last = performance.now();
  const due = [...waiting.keys()].filter((id) => waiting.get(id).from <= last);
  const ids = due.filter((id) => !inUse(document.getElementById(id)));
  if (ids.length) {
    const selectOOB = ids.map((id) => `#${id}`).join();
    const headers = { "X-Regions": ids.join(" ") };
    const how = { source: "body", target: "body", swap: "none settle:0", selectOOB, headers };
    await htmx.ajax("GET", here(), how).catch(() => {}); // the socket says why
  }
  fetchInTurn();
}

/** Forget that a part waits, unless the answer came too early for what it shall show. */
function note(id) {
  const { whole } = waiting.get(id) ?? {};
  if (whole > last) waiting.set(id, { from: whole, whole });
  else waiting.delete(id);
}

// The page of a deleted Lease has status 404 and regions.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const ids = detail.requestConfig.headers["X-Regions"];
  if (!ids) return;
  const drawnBy = Number(detail.xhr.getResponseHeader("X-Clock-Jumps"));
  const left = detail.target === document.body && detail.pathInfo.finalRequestPath !== here();
  if (!detail.requestConfig.elt.isConnected) return (detail.shouldSwap = false); // what replaced it asks
  if (left || drawnBy !== followed()) return (detail.shouldSwap = false); // of another URL or clock: fetch again
  if (detail.xhr.status === 404) Object.assign(detail, { shouldSwap: true, isError: false });
  if (detail.xhr.status === 403) waiting.clear(); // asking again changes nothing
  if (!detail.shouldSwap) return;
  ids.split(" ").forEach(note);
  settle = holdStill(ids.split(" ").flatMap((id) => document.getElementById(id) ?? []));
});

document.addEventListener("htmx:oobAfterSwap", () => settle());

document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
  const { target, fragment } = detail;
  if (inUse(target)) {
    detail.shouldSwap = false;
    waiting.set(target.id, { from: 0, whole: 0 });
  }
  for (const control of fragment.querySelectorAll("[data-js]")) control.hidden = false;
  for (const { id } of target.querySelectorAll("details[open][id]")) {
    fragment.querySelector(`#${CSS.escape(id)}`)?.setAttribute("open", "");
  }
});
