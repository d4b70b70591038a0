// The page of all clusters: its strips change in place, and their order stays until the reader asks for the new one.
import { offer } from "leaseboard/counts";

const rank = (el) => Number(el.dataset.rank);

/** A cluster that is worse than one above it. */
function isOutOfOrder() {
  const ranks = [...document.querySelectorAll("[data-rank]")].map(rank);
  return ranks.some((one, place) => place > 0 && one < ranks[place - 1]);
}

const look = () => offer({ order: isOutOfOrder() });
new MutationObserver((all) => all.some(({ target }) => target.closest?.("[id^=strip-], [id^=cell-]")) && look()).observe(
  document.querySelector("main"),
  { childList: true, subtree: true },
);
