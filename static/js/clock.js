// The one clock: the server's time, by which everything that ages on a page is painted (aging.js).
// It never decides in which state a Lease is: the server does. While nothing is heard it stands still.
import { AGING, paintAt } from "leaseboard/aging";

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
  paintAt(el, shownNow());
}

// Only what is on screen is painted.
const seen = new Set();
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) paint(target);
    seen[isIntersecting ? "add" : "delete"](target);
  }
});

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
