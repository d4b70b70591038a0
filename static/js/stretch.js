// A stretch of time: in a URL, in words, and where the focus goes when another is drawn.
import { age, clockTime, moment } from "leaseboard/age";

const COARSE = 600; // s: a longer stretch is told to the minute

export const momentOf = (t) => new Date(t * 1000).toISOString().replace(".000", "");

/** The URL of this page with another stretch. */
export function urlWith(from, to) {
  const url = new URL(location.href);
  for (const name of ["range", "page"]) url.searchParams.delete(name);
  url.searchParams.set("from", momentOf(Math.round(from)));
  url.searchParams.set("to", momentOf(Math.round(to)));
  return url;
}

/** As a person would say it: `03:12 to 04:40 UTC, 1 h 28 m`. */
export function inWords(from, to, now) {
  const told = (text) => (to - from >= COARSE ? text.slice(0, -3) : text);
  const sameDay = momentOf(from).slice(0, 10) === momentOf(to).slice(0, 10);
  const end = sameDay ? clockTime(to) : moment(to, now);
  const length = age(Math.round(to - from)).replace(/ 0 [a-z]$/, "");
  return `${told(moment(from, now))} to ${told(end)} UTC, ${length}`;
}

let wanted = null; // what gets the focus after the swap under way

document.addEventListener("htmx:beforeSwap", () => {
  const had = document.activeElement;
  if (had === document.body) return; // a swap that has not settled took it
  wanted = had.matches("[data-zoom]") ? "zoomed" : had.dataset.focus;
});

/** Give the focus to what a swap drew anew and hid, or after a zoom, whose link is gone, to what moves on from there. */
export function refocus() {
  const next = document.querySelector(`[data-focus="${wanted}"]`);
  if (document.activeElement === document.body) next?.focus({ preventScroll: true });
  wanted = null;
}
