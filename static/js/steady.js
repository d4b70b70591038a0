// Keeps the row that is read where it is on the screen, while parts of the page are drawn anew above it or with it.
const ROWS = "main :is(tbody tr, li, .tl-row)";

const nameOf = (row) => row.dataset.key ?? row.querySelector("a[href]")?.getAttribute("href");

/** The row under the pointer or with the focus; on a page that was scrolled, else the first one in view. */
function rowInUse() {
  const used = document.querySelector(`${ROWS}:is(:hover, :focus-within)`);
  if (used || scrollY === 0) return used;
  const top = document.querySelector(".topbar")?.getBoundingClientRect().bottom ?? 0;
  return [...document.querySelectorAll(ROWS)].find((row) => row.getBoundingClientRect().top >= top);
}

/** Let a part keep a height that it no longer needs, until it is drawn again. */
function pad(part, pixels) {
  part.style.minHeight = `${part.offsetHeight + pixels}px`;
}

/** Draw `places` anew, by `draw`; the row that is read stays. */
export function steadily(places, draw) {
  const settle = holdStill(places);
  draw();
  settle();
}

/** Returns what puts the row that is read back where it is now. */
export function holdStill(places) {
  const row = rowInUse();
  const top = row?.getBoundingClientRect().top;
  const name = row && nameOf(row);
  const home = row?.closest("[id]")?.id;
  const heights = places.map(({ id, offsetHeight }) => [id, offsetHeight]);
  for (const part of [...places, ...(scrollY === 0 ? document.querySelectorAll("main") : [])]) part.style.minHeight = "";
  const find = () => [...(document.getElementById(home)?.querySelectorAll("tr, li") ?? [])].find((one) => name && nameOf(one) === name);
  return () => {
    const same = row?.isConnected ? row : row && find();
    if (!same) return;
    const off = () => Math.round(same.getBoundingClientRect().top - top);
    const { scrollHeight, clientHeight } = document.documentElement;
    const missing = scrollY + off() - (scrollHeight - clientHeight);
    if (off() > 0 && missing > 0) pad(document.querySelector("main"), missing); // a short page cannot scroll so far
    if (off()) scrollBy({ top: off(), behavior: "instant" });
    for (const [id, height] of heights) {
      const part = off() < 0 && document.getElementById(id);
      if (!part || part.contains(same) || part.offsetHeight >= height) continue;
      pad(part, Math.min(height - part.offsetHeight, -off()));
    }
  };
}
