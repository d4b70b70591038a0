// The pager of a list is drawn anew while the rows stay: it then says how many of the list are drawn, and offers the rest.
import { isCrossedOut } from "leaseboard/deleted_rows";

const written = (number) => number.toLocaleString("en");

/** What a list of `total` says that now has the rows `first` to `last` on this page, and of which `drawn` are there. */
function says(drawn, { first, last, total }) {
  const listed = last - first + 1;
  if (drawn > listed) return `${written(drawn)} shown, ${written(listed)} match now`;
  const shown = `${written(drawn)} of ${written(total)} shown`;
  return listed === total ? `${shown}, ${written(listed - drawn)} new` : shown;
}

function fit() {
  const pager = document.getElementById("list-pager");
  const range = pager?.querySelector("[data-first]");
  if (!range) return;
  const [first, last, total] = ["first", "last", "total"].map((name) => Number(range.dataset[name]));
  const drawn = [...document.querySelectorAll("#board tbody tr[data-key]")].filter((row) => !isCrossedOut(row)).length;
  if (drawn === last - first + 1) return;
  range.textContent = says(drawn, { first, last, total });
  pager.querySelector("[data-undrawn]").hidden = false;
}

document.addEventListener("htmx:oobAfterSwap", fit);
