// Keeps the playhead in the URL and in every link to the same instant.
import { momentOf } from "leaseboard/stretch";
import { ZONE } from "leaseboard/zone_choice";
import { typedOf } from "leaseboard/zones";

let awaited = ""; // the URL of the only answer that may be drawn

/** Draw no answer that is under way. To abort its request would be an error in the console. */
export const dropAnswer = () => (awaited = "");

document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const { headers, path } = detail.requestConfig;
  if (headers["X-Regions"] === "lanes" && path !== awaited) detail.shouldSwap = false;
});

/** Put `t` into the URL, the links and the fields. Fetch the rows that do not know who held their Lease then. */
export function setAt(board, t, rows) {
  const at = momentOf(t);
  const url = withAt(location.href, at);
  history.replaceState(history.state, "", url);
  for (const link of board.querySelectorAll("a[data-at-link]")) link.href = withAt(link.href, at);
  for (const field of board.querySelectorAll("[data-at-field]")) field.value = at;
  const input = board.querySelector("[data-at-input]");
  if (input !== document.activeElement) input.value = typedOf(ZONE, t * 1000);
  const ids = rows.filter((row) => row.many).flatMap(({ cell, dot }) => [cell.id, dot.id]);
  if (!ids.length) return;
  const selectOOB = ids.map((id) => `#${CSS.escape(id)}`).join();
  const headers = { "X-Regions": "lanes" };
  awaited = url;
  htmx.ajax("GET", url, { source: board, swap: "none", selectOOB, headers }).catch(() => {}); // the row keeps what it says
}

/** Change only `at`: a link to a zoom or a page keeps its own stretch. */
function withAt(href, at) {
  const url = new URL(href);
  url.searchParams.set("at", at);
  return url.toString();
}

/** Keep the playhead in the URL of another stretch only if it lies inside: elsewhere it would move the stretch. */
export function keepAt(url) {
  const { searchParams: asked } = url;
  const at = new URL(location.href).searchParams.get("at");
  const inside = Date.parse(asked.get("from")) <= Date.parse(at) && Date.parse(at) <= Date.parse(asked.get("to"));
  if (inside) asked.set("at", at);
  else asked.delete("at");
  return url;
}

/** Send a link's present href, or a band's with the present playhead: htmx requests what it read when it was drawn. */
document.addEventListener("htmx:configRequest", ({ detail }) => {
  let url = null;
  if (detail.elt.matches("a[data-at-link]")) url = new URL(detail.elt.href);
  else if (detail.elt.matches("a[data-zoom]")) url = keepAt(new URL(detail.path, location.href));
  if (url) detail.path = url.pathname + url.search;
});
