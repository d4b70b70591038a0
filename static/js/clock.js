// The one clock. Everything that ages is drawn from data attributes and the server's time:
//   [data-fresh]  data-observed (epoch s) data-duration (s)   the bar and the age of the last renewal
//   [data-ring]   the same                                    the countdown
//   [data-since] [data-until]  epoch s                        "4 h 12 m"
//   [data-as-read]                the time of day up to which everything around it is known
//   [data-passed] [data-left]  s since, or until, so many after data-observed
// It never decides in which state a Lease is: the server does. While nothing is heard it stands still.
import { age, clockTime, rough } from "leaseboard/age";

const CIRCUMFERENCE = 188.5; // r = 30
const LEAP = 2; // s
const UNTIL_HEARD = 8; // ticks: longer than from one frame to the next
const meta = document.querySelector('meta[name="server-time"]');
let ahead = meta ? Number(meta.content) - Date.now() / 1000 : 0;
let frozenAt = null;
let distrusted = 0; // how many ticks not to paint: this machine slept, or its clock was set

export const now = () => Date.now() / 1000 + ahead;
export const shownNow = () => frozenAt ?? now();
let ticked = now();

/** Go by the server's time: `serverNow` is epoch seconds of a message that came just now. */
export function correct(serverNow) {
  const next = serverNow - Date.now() / 1000;
  // A late message makes the server look slow: only a large difference moves the clock back.
  if (next > ahead || ahead - next > 0.5) ahead = next;
  ticked = now();
  distrusted = 0;
}

/** The server's clock was set by so many seconds: every moment that the page goes by moves with it. */
export function moveAll(seconds) {
  for (const el of document.querySelectorAll(AGING)) {
    for (const name of ["since", "until", "observed"]) {
      if (name in el.dataset) el.dataset[name] = Number(el.dataset[name]) + seconds;
    }
  }
}

/** Stand still at `at` (epoch seconds); null goes on. */
export function freeze(at) {
  if (at === frozenAt) return;
  frozenAt = at;
  tick();
}

const leapt = () => Math.abs(now() - ticked) > LEAP;

function paint(el) {
  if (frozenAt === null && (distrusted || leapt())) return;
  const { since, until, observed, duration, passed, left } = el.dataset;
  const t = shownNow();
  if ("asRead" in el.dataset) write(el, clockTime(t));
  else if (since !== undefined) write(el, age(t - since));
  else if (until !== undefined) write(el, age(until - t));
  else if (passed !== undefined) write(el, age(t - observed - passed));
  else if (left !== undefined) write(el, age(Number(observed) + Number(left) - t));
  else if ("fresh" in el.dataset) paintBar(el, t - observed, Number(duration));
  else paintRing(el, t - observed, Number(duration));
}

/** What is the same is not written again: the browser would lay it out anew. */
function write(el, text) {
  if (!el.firstChild) el.textContent = text;
  else if (el.firstChild.data !== text) el.firstChild.data = text;
}

const set = (el, name, value) => el && el.getAttribute(name) !== value && el.setAttribute(name, value);

function paintBar(el, elapsed, duration) {
  const left = duration ? Math.min(100, Math.max(0, 100 * (1 - elapsed / duration))) : 0;
  set(el.querySelector(".left"), "width", left.toFixed(0));
  write(el.querySelector(".age"), age(elapsed) + ("short" in el.dataset ? "" : " ago"));
}

function paintRing(el, elapsed, duration) {
  const left = duration - Math.max(0, elapsed);
  const share = Math.max(0, left / duration);
  set(el.querySelector(".rv"), "stroke-dashoffset", (CIRCUMFERENCE * (1 - share)).toFixed(1));
  const fine = left > 0 && left < 99.95; // what is longer does not fit to a tenth
  write(el.querySelector("b"), fine ? left.toFixed(1) : rough(Math.abs(left)));
  write(el.querySelector("small"), left <= 0 ? "overdue" : fine ? "s left" : "left");
}

// Only what is on screen is painted.
const seen = new Set();
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) paint(target);
    seen[isIntersecting ? "add" : "delete"](target);
  }
});
const AGING = "[data-as-read], [data-fresh], [data-ring], [data-since], [data-until], [data-passed], [data-left]";

/** Take up what ages inside `root`, and `root` itself. */
export function scan(root = document) {
  const found = [...root.querySelectorAll(AGING)];
  if (root.matches?.(AGING)) found.push(root);
  for (const el of found) {
    seen.add(el); // until the observer tells that it is not
    observer.observe(el);
    if (frozenAt !== null) paint(el); // the server drew it by a clock that goes on
  }
}

function tick() {
  distrusted = leapt() ? UNTIL_HEARD : Math.max(0, distrusted - 1);
  ticked = now();
  for (const el of seen) {
    if (el.isConnected) paint(el);
    else {
      seen.delete(el);
      observer.unobserve(el);
    }
  }
}
const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
setInterval(tick, calm ? 1000 : 250);
