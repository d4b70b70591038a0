// Draws again the parts of a page that all pages share:
//   <main data-groups="overview ages">   the socket sends each part by its id
import { followed, scan } from "leaseboard/clock";
import { recount } from "leaseboard/counts";
import { deletedIn } from "leaseboard/deleted_rows";
import { inUse } from "leaseboard/in_use";
import { steadily } from "leaseboard/steady";

let drawn = () => {};

/** Call `then` after rows were drawn. */
export const afterDrawing = (then) => (drawn = then);

const kept = new Map(); // [HTML, jumps of the clock before it] that came while its place was in use

export const groupsShown = () => document.querySelector("[data-groups]")?.dataset.groups.split(" ") ?? [];

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
    steadily([place], () => {
      const putBack = deletedIn(place);
      place.innerHTML = html;
      putBack();
      recount(place);
    });
    scan(place);
    if (place.querySelector("[data-key]")) rows.push(place);
  }
  if (rows.length) drawn();
}
setInterval(placeKept, 1000);
