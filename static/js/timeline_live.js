// Redraws a timeline that shows now: when changes come, and when its lanes have moved on by a pixel.
import { onChanges } from "leaseboard/changes";
import { refetch } from "leaseboard/regions";

const SPACING = 5000; // ms between two drawings
const LANES = "[data-region~=moving] :is([data-timeline], [data-zoomer], [data-follows])"; // of Timeline, of a Lease's page, of several clusters
const PIXELS = 800; // of a lane
let timer = null;
let last = performance.now();

/** Redraw after one pixel of time, again and again. */
export function followClock() {
  const { start, end } = document.querySelector(LANES)?.dataset ?? { start: 0, end: 0 };
  drawAfter(Math.max(SPACING, ((end - start) * 1000) / PIXELS));
}

/** `delay`: since the last drawing, in ms; other parts of the page may be drawn more often. */
function drawAfter(delay) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    last = performance.now();
    if (!document.hidden) refetch("moving");
    followClock();
  }, Math.max(100, last + delay - performance.now()));
}

onChanges(() => drawAfter(SPACING));
document.addEventListener("htmx:afterSettle", followClock);
