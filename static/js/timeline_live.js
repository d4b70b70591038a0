// Redraws a timeline that shows now: when changes come, and when its lanes have moved on by a pixel.
import { onChanges } from "leaseboard/changes";
import { refetch } from "leaseboard/regions";

const SPACING = 5000; // ms between two drawings
const PIXELS = 800; // of a lane
let timer = null;
let last = performance.now();

/** Redraw after one pixel of time, again and again. */
export function followClock() {
  const { start, end } = document.querySelector("[data-region~=moving] [data-timeline]")?.dataset ?? { start: 0, end: 0 };
  drawIn(Math.max(SPACING, ((end - start) * 1000) / PIXELS));
}

function drawIn(delay) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    last = performance.now();
    if (!document.hidden) refetch("moving");
    followClock();
  }, delay);
}

onChanges(() => drawIn(Math.max(100, last + SPACING - performance.now())));
document.addEventListener("htmx:afterSettle", followClock);
