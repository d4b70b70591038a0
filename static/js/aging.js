// Paints what ages, as of one moment, from data attributes:
//   [data-fresh]  data-observed (epoch s) data-duration (s)   the bar and the age of the last renewal,
//                which an edit of the duration is not: data-edited (s) later
//   [data-ring]   the same                                    the countdown
//   [data-since] [data-until]  epoch s                        "4 h 12 m"
//   [data-as-read]                the time of day up to which everything around it is known
//   [data-passed] [data-left]  s since, or until, so many after data-observed
import { age, clockTime, rough } from "leaseboard/age";

const CIRCUMFERENCE = 188.5; // r = 30
export const AGING = "[data-as-read], [data-fresh], [data-ring], [data-since], [data-until], [data-passed], [data-left]";

/** Paint one element as it is at `t`, epoch seconds. */
export function paintAt(el, t) {
  const { since, until, observed, duration, passed, left } = el.dataset;
  if ("asRead" in el.dataset) write(el, clockTime(t));
  else if (since !== undefined) write(el, age(t - since));
  else if (until !== undefined) write(el, age(until - t));
  else if (passed !== undefined) write(el, age(t - observed - passed));
  else if (left !== undefined) write(el, age(Number(observed) + Number(left) - t));
  else if ("fresh" in el.dataset) paintBar(el, t - observed, Number(duration));
  else paintRing(el, t - observed, Number(duration));
}

/** Skip an unchanged text, or the browser would lay it out again. */
function write(el, text) {
  if (!el.firstChild) el.textContent = text;
  else if (el.firstChild.data !== text) el.firstChild.data = text;
}

const set = (el, name, value) => el && el.getAttribute(name) !== value && el.setAttribute(name, value);

function paintBar(el, elapsed, duration) {
  const left = duration ? Math.min(100, Math.max(0, 100 * (1 - elapsed / duration))) : 0;
  set(el.querySelector(".left"), "width", left.toFixed(0));
  write(el.querySelector(".age"), age(elapsed + Number(el.dataset.edited ?? 0)) + ("short" in el.dataset ? "" : " ago"));
}

function paintRing(el, elapsed, duration) {
  const left = duration - Math.max(0, elapsed);
  const share = Math.max(0, left / duration);
  set(el.querySelector(".rv"), "stroke-dashoffset", (CIRCUMFERENCE * (1 - share)).toFixed(1));
  const fine = left > 0 && left < 99.95; // a longer time with tenths does not fit
  write(el.querySelector("b"), fine ? left.toFixed(1) : rough(Math.abs(left)));
  write(el.querySelector("small"), left <= 0 ? "overdue" : fine ? "s left" : "left");
}
