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
  const due = [...kept].filter(([id]) => !inUse(document.getElementById(id)));
  for (const [id] of due) kept.delete(id);
  // What was drawn by a clock that was set since, the socket sends anew.
  const fresh = due.filter(([id, [, jumps]]) => jumps === followed() && document.getElementById(id));
  if (!fresh.length) return;
  const places = fresh.map(([id]) => document.getElementById(id));
  steadily(places, () => {
    for (const [number, [, [html]]] of fresh.entries()) {
      const place = places[number];
      const putBack = deletedIn(place);
      place.innerHTML = html;
      putBack();
      recount(place);
    }
  });
  places.forEach((place) => scan(place));
  if (places.some((place) => place.querySelector("[data-key]"))) drawn();
}
setInterval(placeKept, 1000);
