// Keyboard: "/" focuses the search, "?" lists the keys, j and k walk through the rows, Enter opens one, Esc goes back.
// A control with data-key is pressed by that key; a field gets the focus.
import { showShortcuts } from "leaseboard/shortcuts";

const TYPING = "input, textarea, select, [contenteditable]";
const ROW = "tr[data-href], .attn > li";

const links = () =>
  [...document.querySelectorAll(ROW)].filter((row) => row.checkVisibility()).map((row) => row.querySelector("a.name"));

function step(by) {
  const all = links();
  if (!all.length) return;
  const at = all.findIndex((link) => link.closest(ROW).contains(document.activeElement));
  const next = at < 0 ? 0 : Math.min(all.length - 1, Math.max(0, at + by));
  all[next].focus({ focusVisible: true });
  all[next].closest(ROW).scrollIntoView({ block: "nearest" });
}

function back(target) {
  const menus = document.querySelectorAll("details.menu[open]");
  for (const menu of menus) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
  if (!menus.length && (target.matches(TYPING) || target.closest(ROW))) target.blur();
}

function press(event) {
  const controls = document.querySelectorAll(`main [data-key="${CSS.escape(event.key)}"]`);
  const control = [...controls].find((one) => one.checkVisibility()); // none that a role may not use
  if (!control) return;
  event.preventDefault();
  if (control.matches(TYPING)) control.focus();
  else control.click();
}

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector("dialog[open]")) return;
  if (key === "Escape") return back(target);
  if (target.matches(TYPING)) return;
  if (key === "/") {
    event.preventDefault();
    const search = document.querySelector("[data-slash]") ?? document.querySelector("#q");
    search?.focus();
    search?.select();
  } else if (key === "j" || key === "k") {
    event.preventDefault();
    step(key === "j" ? 1 : -1);
  } else if (key === "?") {
    event.preventDefault();
    showShortcuts();
  } else press(event);
});
