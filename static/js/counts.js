// Numbers of a frame, put where the page shows them.
const MOST = 1000; // see dashboard/live/elsewhere.py

/** `counts`: what moved, by the names in data-count. */
export function count(counts) {
  for (const el of document.querySelectorAll("[data-count]")) {
    const number = counts[el.dataset.count];
    if (number !== undefined) el.textContent = number.toLocaleString("en");
    if (number !== undefined) el.toggleAttribute("data-none", number === 0);
  }
}

/** A bar for `number` Leases in trouble that this page does not list. */
export function offer(number) {
  const bar = document.querySelector("[data-elsewhere]");
  if (!bar) return;
  if (number && !document.querySelector("[data-key]")) bar.click(); // nothing there that could move
  const many = number >= MOST ? `${MOST.toLocaleString("en")} or more` : number;
  bar.textContent = `${many} new problem${number === 1 ? "" : "s"} outside this page · Show`;
  bar.hidden = number === 0;
}
