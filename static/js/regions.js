// Parts of a page that the server draws as a whole.
//   <section id="why" data-region="renewed">   one page's own: fetched again when what it names moved
//   <main data-groups="overview ages">         the same for everyone: the socket brings them by id
import { scan } from "leaseboard/clock";
import { recount } from "leaseboard/counts";

const SPACING = 2500; // ms between two fetches
const WRITTEN = 1000; // ms until history has what the socket told
const waiting = new Set();
let timer = null;
let last = 0;
let drawn = () => {};

/** Call `then` after regions were drawn. */
export const afterDrawing = (then) => (drawn = then);

/** Draw the regions moved by `cause` anew, soon; "all" is every region. */
export function refetch(cause) {
  const moved = cause === "all" ? "[data-region]" : `[data-region~="${cause}"]`;
  for (const { id } of document.querySelectorAll(moved)) waiting.add(id);
  if (waiting.size && !timer) {
    const soonest = cause === "changed" ? WRITTEN : 50;
    timer = setTimeout(fetchPage, Math.max(soonest, last + SPACING - performance.now()));
  }
}

const kept = new Map(); // what came while its place was in use

/** `regions`: {id: html} as the socket brought them. */
export function placeShared(regions) {
  for (const [id, html] of Object.entries(regions)) kept.set(id, html);
  placeKept();
}

function placeKept() {
  const rows = [];
  for (const [id, html] of kept) {
    const place = document.getElementById(id);
    if (inUse(place)) continue;
    kept.delete(id);
    if (!place) continue;
    place.innerHTML = html;
    recount(place);
    scan(place);
    if (place.querySelector("[data-key]")) rows.push(place);
  }
  if (rows.length) drawn();
}
setInterval(placeKept, 1000);

async function fetchPage() {
  timer = null;
  if (document.querySelector("[data-live=refused]")) return waiting.clear(); // its right has ended
  last = performance.now();
  const ids = [...waiting].filter((id) => !inUse(document.getElementById(id)));
  const html = ids.length ? await read(ids) : null;
  if (html !== null) place(ids, html);
  if (waiting.size) timer = setTimeout(fetchPage, SPACING);
}

/** The page with these regions drawn anew; null: they stay marked and are fetched later. */
async function read(ids) {
  try {
    const response = await fetch(location.href, { headers: { Accept: "text/html", "X-Regions": ids.join(" ") } });
    if (response.status === 403) waiting.clear(); // the socket says why; asking again changes nothing
    return response.ok || response.status === 404 ? await response.text() : null;
  } catch {
    return null; // the socket says that the server is away
  }
}

function place(ids, html) {
  const page = new DOMParser().parseFromString(html, "text/html");
  for (const id of ids) {
    waiting.delete(id);
    const [old, fresh] = [document.getElementById(id), page.getElementById(id)];
    if (!old || !fresh) continue;
    const opened = [...old.querySelectorAll("details[open][id]")].map((details) => details.id);
    old.replaceChildren(...fresh.childNodes);
    if (fresh.dataset.feed) old.dataset.feed = fresh.dataset.feed;
    for (const control of old.querySelectorAll("[data-js]")) control.hidden = false;
    for (const details of opened) document.getElementById(details)?.setAttribute("open", "");
    globalThis.htmx?.process(old); // the wall has none
    scan(old);
  }
  drawn();
}

/** Nothing moves under the pointer, the focus or a selection. */
function inUse(el) {
  if (!el) return false;
  const selection = getSelection();
  return (
    el.matches(":hover") ||
    el.contains(document.activeElement) ||
    (!selection.isCollapsed && el.contains(selection.anchorNode))
  );
}
