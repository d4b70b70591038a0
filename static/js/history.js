// Offers new changes in a bar where the list is filtered or older; elsewhere they come on top by themselves.
import { onChanges } from "leaseboard/changes";

let missed = 0;

function offer(number) {
  const bar = document.querySelector("[data-news]");
  if (!bar || !("feed" in bar.dataset)) return;
  missed = number === null ? null : missed === null ? null : missed + number;
  const many = missed === null ? "Many new changes" : `${missed.toLocaleString("en")} new change${missed === 1 ? "" : "s"}`;
  bar.textContent = `${many} ${bar.dataset.where ?? "in this cluster"} · Show`;
  bar.hidden = false;
  // Without rows and filters nothing can move under the pointer, and a change surely belongs here.
  if (!location.search && !document.querySelector("#board tbody tr")) bar.click();
}

onChanges(offer);
document.addEventListener("htmx:afterSettle", () => (missed = 0));
