// The cluster menu: its links lead to the page as it is now, and the socket brings the state of each cluster.
import { moment } from "leaseboard/age";
import { now } from "leaseboard/clock";

const here = () => location.pathname + location.search;

// htmx changes the address without drawing the menu, or the way to save the page, again.
for (const press of ["click", "auxclick"]) {
  document.addEventListener(press, ({ target }) => {
    const link = target.closest?.("a[data-save-view]");
    if (!link) return;
    const url = new URL(link.href);
    url.searchParams.set("from", here());
    link.href = url;
  });
}
document.addEventListener(
  "toggle",
  ({ target }) => {
    if (!target.open) return;
    for (const link of target.querySelectorAll("a[data-switch]")) {
      const url = new URL(link.href);
      url.searchParams.set("from", here());
      link.href = url;
    }
  },
  true, // this event does not bubble
);

export const hasMenu = () => Boolean(document.querySelector("[data-cluster]"));

/** `states`: {name: html}. */
export function placeStates(states) {
  for (const el of document.querySelectorAll("[data-cluster]")) {
    const html = states[el.dataset.cluster];
    if (html) el.outerHTML = html;
  }
}

/** Say as of when the states are, unless they are live: `heardAt` is when the server sent the last frame. */
export function dateStates(live, heardAt) {
  const line = document.querySelector("[data-menu-as-of]");
  if (!line || line.hidden === live) return;
  line.hidden = live;
  line.textContent = `As of ${moment(heardAt, now())}`;
}
