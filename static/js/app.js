// Every page: theme, menus, the one clock, and the live socket where the page has one.
import "leaseboard/theme";
import "leaseboard/menus";
import "leaseboard/keys";
import "leaseboard/find";
import "leaseboard/copying";
import "leaseboard/cut_names";
import "leaseboard/lane_labels";
import "leaseboard/pager";
import "leaseboard/unsent";
import { keepZone } from "leaseboard/exact_times";
import { scan } from "leaseboard/clock";
import { startLive } from "leaseboard/live";
import { showConnection } from "leaseboard/live_pill";
import { startPause } from "leaseboard/feed";
import { afterDrawing } from "leaseboard/shared_regions";

function enable(within) {
  for (const control of within.querySelectorAll("[data-js]")) control.hidden = false;
}

enable(document);
scan();
keepZone();
startPause();
const url = document.body.dataset.liveUrl;
const live = url && startLive(url, showConnection);
afterDrawing(() => live?.show()); // the drawing may be older than the last frame
document.addEventListener("htmx:afterSettle", ({ target }) => {
  enable(target);
  scan(target);
  live?.show();
});
const [navigated] = performance.getEntriesByType("navigation");

function isChosen(control) {
  if (["checkbox", "radio"].includes(control.type)) return control.checked !== control.defaultChecked;
  if (!control.options) return "defaultValue" in control && control.value !== control.defaultValue;
  const drawn = [...control.options].find((one) => one.defaultSelected) ?? control.options[0];
  return control.value !== drawn?.value;
}

document.addEventListener("DOMContentLoaded", () => {
  // Back and forward change the URL of a page that still loads, and htmx does not hear of it yet.
  const asked = new URL(navigated.name);
  if (asked.pathname + asked.search !== location.pathname + location.search) return location.reload();
  // Nor did it hear of what was chosen so far. After a reload or a step back, the browser may have filled in fields.
  if (navigated.type !== "navigate") return;
  for (const form of document.querySelectorAll("form[hx-trigger]")) {
    if ([...form.elements].some(isChosen)) htmx.trigger(form, "submit");
  }
});
