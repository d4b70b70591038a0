// Keeps the row that is read where it is on the screen, while parts of the page are drawn anew above it or with it.
const ROWS = "main :is(tbody tr, li, .tl-row)";

const nameOf = (row) => row.dataset.key ?? row.querySelector("a[href]")?.getAttribute("href");

const boxOf = (el) => el.getBoundingClientRect();

/** The row under the pointer or with the focus; on a page that was scrolled, else those in view in the columns of `places`, but of a
 * feed none: its lines move whenever one comes. */
function rowsInUse(places) {
  const used = document.querySelector(`${ROWS}:is(:hover, :focus-within)`);
  if (used || scrollY === 0) return used ? [used] : [];
  const top = document.querySelector(".topbar")?.getBoundingClientRect().bottom ?? 0;
  const all = [...document.querySelectorAll(ROWS)].filter((row) => !row.matches("[data-feed] > *"));
  const inView = all.filter((row) => boxOf(row).top >= top && boxOf(row).top < innerHeight);
  const moving = inView.filter((row) => places.some((place) => sharesColumn(boxOf(row), boxOf(place))));
  return moving.length ? moving : inView;
}

const sharesColumn = (one, other) => one.left < other.right && one.right > other.left;

/** Let a part keep a height that it no longer needs, until it is drawn again or nobody reads. */
function pad(part, pixels) {
  part.style.minHeight = `${part.offsetHeight + pixels}px`;
  padded.add(part);
}

const padded = new Set();
const READ = 60_000; // ms: a page that nobody touched for so long is not read
let touched = performance.now();
for (const touch of ["pointermove", "pointerdown", "keydown", "wheel", "scroll"]) {
  addEventListener(touch, () => (touched = performance.now()), { capture: true, passive: true });
}

function letGo() {
  if (!document.hidden && performance.now() - touched < READ) return;
  for (const part of padded) part.style.minHeight = "";
  padded.clear();
}
setInterval(letGo, 1000);

/** Draw `places` anew, by `draw`; the row that is read stays. */
export function steadily(places, draw) {
  const settle = holdStill(places);
  draw();
  settle();
}

/** Whether rows in view stand below a part, in its column. */
function hasRowsBelow(part) {
  const place = boxOf(part);
  return [...document.querySelectorAll(ROWS)].map(boxOf).some((row) => row.top >= place.bottom && row.top < innerHeight && sharesColumn(row, place));
}

/** Returns what puts the rows that are read back where they are now. */
export function holdStill(places) {
  if (document.body.classList.contains("wall")) return () => {}; // nobody scrolls or points at one
  const rows = rowsInUse(places).map((row) => ({ row, top: boxOf(row).top, name: nameOf(row), home: row.closest("[id]:not(tr, li)")?.id }));
  const heights = places.map((place) => [place.id, place.offsetHeight, hasRowsBelow(place)]);
  const main = scrollY === 0 && !rows.length ? document.querySelectorAll("main") : [];
  for (const part of [...places, ...main]) part.style.minHeight = "";
  return () => {
    const off = movedBy(rows);
    const moved = off();
    const { scrollHeight, clientHeight } = document.documentElement;
    const missing = scrollY + moved - (scrollHeight - clientHeight);
    if (moved > 0 && missing > 0) pad(document.querySelector("main"), missing); // a short page cannot scroll so far
    if (moved) scrollBy({ top: moved, behavior: "instant" });
    let scrolled = Math.max(0, off() - moved); // makes up for what is missing above
    for (const [id, height, below] of heights) {
      const part = document.getElementById(id);
      const lacks = below && part ? Math.max(0, height - part.offsetHeight) : 0;
      if (lacks > scrolled) pad(part, lacks - scrolled);
      scrolled = Math.max(0, scrolled - lacks);
    }
  };
}

/** Returns what says how far the rows have moved: those that were drawn in another order count as half of them do. */
function movedBy(rows) {
  const found = rows.map((one) => [one.row.isConnected ? one.row : again(one), one.top]).filter(([same]) => same);
  const offs = () => found.map(([same, top]) => [Math.round(boxOf(same).top - top), same, top]).toSorted((a, b) => a[0] - b[0]);
  const [, same, top] = offs()[Math.floor(found.length / 2)] ?? [];
  return () => (same ? Math.round(boxOf(same).top - top) : 0);
}

const again = ({ home, name }) => [...(document.getElementById(home)?.querySelectorAll("tr, li") ?? [])].find((one) => name && nameOf(one) === name);
