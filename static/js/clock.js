// The page's only clock follows the server's time; aging.js paints all ages by it. It stands still without frames.
// It never decides the state of a Lease: the server does.
import { AGING, paintAt } from "leaseboard/aging";

const LEAP = 2; // s
const APART = 500; // ms
const UNTIL_HEARD = 16; // ticks: longer than until two frames agree
const meta = document.querySelector('meta[name="server-time"]');
let jumps = Number(meta?.dataset.jumps ?? 0); // of the server's clock, which the moments on the page follow
let ahead = meta ? Number(meta.content) - Date.now() / 1000 : 0;
let frozenAt = null;
let distrusted = 0; // ticks without painting, after this machine slept or its clock was set

export const now = () => Date.now() / 1000 + ahead;
export const shownNow = () => frozenAt ?? now();
let ticked = now();
let painted = now(); // the moment of the ages on the page
let doubted = null; // what a message said that would set the clock back, and when it came

/** Follow the server's time: `serverNow` (epoch s) is in a message that just arrived. */
export function correct(serverNow) {
  const next = serverNow - Date.now() / 1000;
  // A late message makes the server look slow; after a standstill, much. Only two that agree move the clock back.
  if (ahead - next > 0.5 && !agrees(next)) return;
  if (next > ahead || ahead - next > 0.5) ahead = next;
  doubted = null;
  ticked = now();
  distrusted = 0;
}

/** Whether an earlier message said the same; those that came together may all be late. */
function agrees(next) {
  const [said, at] = doubted ?? [Infinity, 0];
  const apart = performance.now() - at;
  if (Math.abs(said - next) < 0.5) return apart > APART;
  if (apart > APART) doubted = [next, performance.now()];
  return false;
}

/** How often the server's clock had jumped when the moments on the page were drawn. */
export const followed = () => jumps;

/** Move every moment on the page, because the server's clock was set by so many seconds, for the `number`th time. */
export function moveAll(seconds, number) {
  jumps = number;
  ahead += seconds;
  painted += seconds;
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

/** Paint these as of one moment. Until the clock is trusted again, it is that of what stands around them. */
function paint(some) {
  const back = painted - shownNow(); // a clock that was a little fast is waited for: no age gets shorter
  if (frozenAt !== null || !(distrusted || leapt() || (back > 0 && back < LEAP))) painted = shownNow();
  for (const el of some) paintAt(el, painted);
}

// Paint only what is on screen.
const seen = new Set();
const observer = new IntersectionObserver((entries) => {
  paint(entries.filter((one) => one.isIntersecting).map((one) => one.target));
  for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target);
});

/** Watch what ages inside `root`, and `root` itself; paint it at once, as its drawing may be older than the page. */
export function scan(root = document) {
  const all = [...root.querySelectorAll(AGING), ...(root.matches?.(AGING) ? [root] : [])];
  for (const el of all) {
    seen.add(el); // until the observer reports that it is off screen
    observer.observe(el);
  }
  paint(all);
}

function tick() {
  distrusted = leapt() ? UNTIL_HEARD : Math.max(0, distrusted - 1);
  ticked = now();
  for (const el of seen) {
    if (el.isConnected) continue;
    seen.delete(el);
    observer.unobserve(el);
  }
  paint(seen);
}
setInterval(tick, matchMedia("(prefers-reduced-motion: reduce)").matches ? 1000 : 250);
