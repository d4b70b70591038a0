// Puts the numbers of a frame where the page shows them.
import { steadily } from "leaseboard/steady";

const MOST = 1000; // see dashboard/live/page_reader.py
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

/** The query of the page's list and the stamp of its drawing, or null without one that is live; the query chooses clusters, too. */
export function listShown() {
  const bar = document.querySelector("[data-elsewhere], [data-chosen]");
  return { query: bar ? location.search : null, listed: bar?.dataset.listed ?? null };
}

/** A bar for Leases in trouble that this page does not list, for a list that may have changed unseen, and for another order. */
export function offer({ elsewhere, list, order }) {
  const many = elsewhere >= MOST ? `${MOST.toLocaleString("en")} or more` : elsewhere;
  if (elsewhere !== undefined) show("trouble", many && `${many} new problem${many === 1 ? "" : "s"} outside this page`);
  if (list) show("list", "This list may have changed");
  if (order !== undefined) show("order", order && "The order has changed");
}

function show(what, text) {
  const bar = document.querySelector("[data-elsewhere]");
  if (!bar) return;
  bar.dataset[what] = text || "";
  if (text && !document.querySelector("[data-key], [data-rank]")) bar.click(); // without rows, nothing can move under the pointer
  const says = bar.dataset.trouble || bar.dataset.list || bar.dataset.order;
  bar.textContent = `${says} · Show`;
  steadily([], () => (bar.hidden = !says));
}
