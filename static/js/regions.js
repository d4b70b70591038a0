// Redraws the parts of a page that the server draws as a whole.
//   <section id="why" data-region="renewed">   a part of this page alone: htmx fetches it when its cause occurs
//   <main data-groups="overview ages">         a part that all pages share: the socket sends it by id
// hx-trigger on each part would send one request per part. So this module collects the parts for SPACING and
// lets htmx fetch and swap all of them with one request, except those that the person is using.
import { followed, scan } from "leaseboard/clock";
import { recount } from "leaseboard/counts";
import { inUse } from "leaseboard/in_use";

const SPACING = 2500; // ms between two fetches
const WRITTEN = 1000; // ms until history has a change that the socket sent
const waiting = new Set();
let timer = null;
let last = 0;
let drawn = () => {};
const here = () => location.pathname + location.search;

/** Call `then` after regions were drawn. */
export const afterDrawing = (then) => (drawn = then);

/** Redraw the regions that depend on `cause` soon; "all" is every region. */
export function refetch(cause) {
  const moved = cause === "all" ? "[data-region]" : `[data-region~="${cause}"]`;
  for (const { id } of document.querySelectorAll(moved)) waiting.add(id);
  if (waiting.size && !timer) {
    const soonest = cause === "changed" ? WRITTEN : 50;
    timer = setTimeout(fetchRegions, Math.max(soonest, last + SPACING - performance.now()));
  }
}

const kept = new Map(); // [HTML, jumps of the clock before it] that came while its place was in use

/** `regions`: {id: html} as the socket brought them. */
export function placeShared(regions) {
  for (const [id, html] of Object.entries(regions)) kept.set(id, [html, followed()]);
  placeKept();
}

function placeKept() {
  const rows = [];
  for (const [id, [html, jumps]] of kept) {
    const place = document.getElementById(id);
    if (inUse(place)) continue;
    kept.delete(id);
    if (!place || jumps !== followed()) continue; // the socket sends it anew, by the clock as set
    place.innerHTML = html;
    recount(place);
    scan(place);
    if (place.querySelector("[data-key]")) rows.push(place);
  }
  if (rows.length) drawn();
}
setInterval(placeKept, 1000);

async function fetchRegions() {
  timer = null;
  if (document.querySelector("[data-live=refused]")) return waiting.clear(); // its right has ended
  last = performance.now();
  const ids = [...waiting].filter((id) => !inUse(document.getElementById(id)));
  if (ids.length) {
    const selectOOB = ids.map((id) => `#${id}`).join();
    const headers = { "X-Regions": ids.join(" ") };
    const how = { source: "body", target: "body", swap: "none settle:0", selectOOB, headers };
    await htmx.ajax("GET", here(), how).catch(() => {}); // the socket says why
  }
  if (waiting.size) timer = setTimeout(fetchRegions, SPACING);
}

// The page of a deleted Lease has status 404 and regions.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const ids = detail.requestConfig.headers["X-Regions"];
  if (!ids) return;
  const drawnBy = Number(detail.xhr.getResponseHeader("X-Clock-Jumps"));
  const left = detail.target === document.body && detail.pathInfo.finalRequestPath !== here();
  if (left || drawnBy !== followed()) return (detail.shouldSwap = false); // of another URL or clock: fetch again
  if (detail.xhr.status === 404) Object.assign(detail, { shouldSwap: true, isError: false });
  if (detail.xhr.status === 403) waiting.clear(); // asking again changes nothing
  if (detail.shouldSwap) for (const id of ids.split(" ")) waiting.delete(id);
});

document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
  const { target, fragment } = detail;
  if (inUse(target)) {
    detail.shouldSwap = false;
    waiting.add(target.id);
  }
  for (const control of fragment.querySelectorAll("[data-js]")) control.hidden = false;
  for (const { id } of target.querySelectorAll("details[open][id]")) {
    fragment.querySelector(`#${CSS.escape(id)}`)?.setAttribute("open", "");
  }
});
