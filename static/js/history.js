// Offers new changes in a bar where the list is filtered or older; elsewhere they come on top by themselves.
import { onChanges } from "leaseboard/changes";

const missed = new WeakMap(); // bar -> changes that its list lacks; null: nobody knows how many

function offer(number, again) {
  const bar = document.querySelector("[data-news]");
  if (!bar || !("feed" in bar.dataset)) return;
  const before = missed.has(bar) ? missed.get(bar) : 0;
  const lacks = number === null || before === null ? null : number + (again ? 0 : before);
  missed.set(bar, lacks);
  const many = lacks === null ? "Many new changes" : `${lacks.toLocaleString("en")} new change${lacks === 1 ? "" : "s"}`;
  bar.textContent = `${many} ${bar.dataset.where ?? "in this cluster"} · Show`;
  bar.hidden = false;
  // Without rows and filters nothing can move under the pointer, and a change surely belongs here.
  if (!location.search && !document.querySelector("#board tbody tr")) bar.click();
}

onChanges(offer);
