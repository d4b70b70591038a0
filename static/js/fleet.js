// The page of all clusters: its strips change in place, and their order stays until the reader asks for the new one.
import { offer } from "leaseboard/counts";

const rank = (el) => Number(el.dataset.rank);

const falls = (ranks) => ranks.some((one, place) => place > 0 && one < ranks[place - 1]);

/** A cluster that is worse than one above it in its group, or a group whose worst is. */
function isOutOfOrder() {
  const groups = [...document.querySelectorAll("[data-ranks]")].map((group) => [...group.querySelectorAll("[data-rank]")].map(rank));
  return groups.some(falls) || falls(groups.map((ranks) => Math.min(...ranks)));
}

const look = () => offer({ order: isOutOfOrder() });
new MutationObserver((all) => all.some(({ target }) => target.closest?.("[id^=strip-], [id^=cell-]")) && look()).observe(
  document.querySelector("main"),
  { childList: true, subtree: true },
);
