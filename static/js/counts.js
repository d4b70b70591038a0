// Puts the numbers of a frame where the page shows them.
const MOST = 1000; // see dashboard/live/trouble_elsewhere.py
const latest = { counts: {}, figures: {} };

/** `counts`: changed numbers, by the names in data-count. */
export function count(counts) {
  Object.assign(latest.counts, counts);
  recount(document, counts, {});
}

/** `figures`: changed key figures with their captions, by the names in data-figure. */
export function figure(figures) {
  Object.assign(latest.figures, figures);
  recount(document, {}, figures);
}

/** Show the newest in `root`, which may have been drawn before they came. */
export function recount(root, counts = latest.counts, figures = latest.figures) {
  for (const el of root.querySelectorAll("[data-count]")) {
    const number = counts[el.dataset.count];
    if (number === undefined) continue;
    el.textContent = number.toLocaleString("en");
    el.toggleAttribute("data-none", number === 0);
  }
  for (const el of root.querySelectorAll("[data-figure]")) {
    const [number, caption, bad] = figures[el.dataset.figure] ?? [];
    if (number === undefined) continue;
    el.querySelector(".v").textContent = number;
    el.querySelector(".d").textContent = caption;
    el.classList.toggle("bad", bad);
  }
}

/** A bar for `number` Leases in trouble that this page does not list. */
export function offer(number) {
  const bar = document.querySelector("[data-elsewhere]");
  if (!bar) return;
  if (number && !document.querySelector("[data-key]")) bar.click(); // without rows, nothing can move under the pointer
  const many = number >= MOST ? `${MOST.toLocaleString("en")} or more` : number;
  bar.textContent = `${many} new problem${number === 1 ? "" : "s"} outside this page · Show`;
  bar.hidden = number === 0;
}
