// The rows of Leases that were deleted while the page showed them: struck out, and kept in their places.
import { moment } from "leaseboard/age";
import { paintAt } from "leaseboard/aging";
import { now } from "leaseboard/clock";

const MOST = 15; // rows that a part keeps: a page may be open for weeks

export const isCrossedOut = (row) => row.classList.contains("is-deleted");

/** Strike a row out, as of the moment `at` (epoch seconds) at which its Lease was deleted. */
export function crossOut(row, at) {
  if (isCrossedOut(row)) return; // the server says again what of a page is gone
  row.className = row.className.replace(/\bis-\w+/, "");
  row.classList.remove("flaps", "excused");
  row.classList.add("is-deleted");
  const state = row.querySelector(".state");
  state.className = "state is-deleted";
  state.querySelector("use").setAttribute("href", "#st-deleted");
  state.querySelector("span").textContent = "Deleted";
  for (const length of row.querySelectorAll("[data-since]")) {
    paintAt(length, at);
    const still = length.cloneNode(true);
    delete still.dataset.since;
    length.replaceWith(still); // the clock paints the old one no more
  }
  for (const word of row.querySelectorAll(".word")) word.remove();
  const last = row.querySelector(":is(.fresh, .since)");
  last?.replaceWith(Object.assign(document.createElement("span"), { className: "since muted", textContent: `deleted ${moment(at, now())}` }));
}

/** Returns what puts the rows of deleted Leases back where they were: else all below them would move. */
export function deletedIn(place) {
  const rows = [...place.querySelectorAll("tbody tr")];
  const gone = rows.filter((row) => row.matches(".is-deleted[data-key]")).map((row) => [row, rows.indexOf(row)]);
  return () => {
    for (const [row, at] of document.hidden ? [] : gone.slice(-MOST)) {
      const body = place.querySelector("tbody");
      if (!body || [...body.rows].some(({ id }) => id === row.id)) continue; // no row is left, or it was made again
      body.insertBefore(row, body.rows[at] ?? null);
    }
  };
}
