// Closes menus, opens the Lease of a clicked row, and copies texts.
import { say } from "leaseboard/say";

const openMenus = () => document.querySelectorAll("details.menu[open]");

function copy(text) {
  navigator.clipboard?.writeText(text).then(
    () => say("Copied"),
    () => say("The browser did not allow copying"),
  );
}

document.addEventListener("click", (event) => {
  const { target } = event;
  for (const menu of openMenus()) if (!menu.contains(target)) menu.open = false;

  const button = target.closest("[data-copy], [data-copy-from], [data-copy-link]");
  if (button) {
    const { copy: text, copyFrom } = button.dataset;
    copy(text ?? (copyFrom ? document.getElementById(copyFrom).textContent : location.href));
    return;
  }
  const row = target.closest("tr[data-href]");
  if (row && !target.closest("a, button, input, label") && !getSelection().toString()) {
    location.href = row.dataset.href;
  }
});
