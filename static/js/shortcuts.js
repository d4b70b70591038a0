// Lists in a dialog the keys that work on this page.
const dialog = document.querySelector("#shortcuts");

export function showShortcuts() {
  if (!dialog || dialog.open) return;
  for (const part of dialog.querySelectorAll("[data-if]")) part.hidden = !document.querySelector(part.dataset.if);
  dialog.querySelector("[data-keys]").replaceChildren(...keyed().map(line));
  dialog.showModal();
}

/** The controls that a key presses, each key once. */
function keyed() {
  const controls = [...document.querySelectorAll("main [data-key]:not([data-href])")].filter((one) => one.checkVisibility());
  return [...new Map(controls.map((one) => [one.dataset.key, one])).values()];
}

function line(control) {
  const [row, key, says] = ["div", "dt", "dd"].map((name) => document.createElement(name));
  const { keySays, key: pressed } = control.dataset;
  const kbd = Object.assign(document.createElement("kbd"), { className: "kbd", textContent: pressed });
  key.append(kbd);
  says.textContent = keySays ?? control.getAttribute("aria-label") ?? control.textContent.trim();
  row.append(key, says);
  return row;
}

for (const button of document.querySelectorAll("[data-shortcuts]")) button.addEventListener("click", showShortcuts);
dialog?.addEventListener("click", ({ target }) => target === dialog && dialog.close()); // outside of it
