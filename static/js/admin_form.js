// The forms of admins: does in the page what the buttons would do through the server.
//   <button data-now-for="id">   sets the field to the word "now"
//   <div data-pairs="labels">    adds and removes rows
//   <div data-editor>            keeps the line numbers of a text
//   <input data-by-hand="id">    is chosen once something is typed into the field
// Everything works without this module.

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-now-for], [data-add], [data-remove]");
  if (!button) return;
  event.preventDefault();
  if (button.dataset.nowFor) setNow(document.getElementById(button.dataset.nowFor));
  else if ("add" in button.dataset) addRow(button.closest("[data-pairs]"));
  else removeRow(button.closest(".kv"));
});

function setNow(input) {
  input.value = "now";
  input.focus();
}

function addRow(pairs) {
  const row = pairs.querySelector("template").content.cloneNode(true).querySelector(".kv");
  pairs.querySelector("[data-add]").parentElement.before(row);
  number(pairs);
  row.querySelector("input").focus();
}

function removeRow(row) {
  const pairs = row.closest("[data-pairs]");
  const next = row.nextElementSibling;
  row.remove();
  number(pairs);
  (next.querySelector("input") ?? pairs.querySelector("[data-add]")).focus();
}

/** Names of controls count the rows: "Key of label 2". */
function number(pairs) {
  for (const [index, row] of [...pairs.querySelectorAll(":scope > .kv")].entries()) {
    for (const control of [row, ...row.querySelectorAll("[aria-label]")]) {
      control.ariaLabel = control.ariaLabel.replace(/ (\d+|new)$/, ` ${index + 1}`);
    }
  }
}

// A second click sends nothing; the server would not write a second time either.
document.addEventListener("submit", (event) => {
  if (!event.target.elements.once) return;
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = "yes";
});
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("[data-sent]")) delete form.dataset.sent;
});

document.addEventListener("input", ({ target }) => {
  const choice = target.id && target.value && document.querySelector(`[data-by-hand="${target.id}"]`);
  if (choice) choice.checked = true;
});

for (const editor of document.querySelectorAll("[data-editor]")) {
  const [lines, text] = [editor.querySelector(".lines"), editor.querySelector("textarea")];
  text.addEventListener("input", () => {
    const count = text.value.split("\n").length;
    while (lines.children.length < count) lines.append(document.createElement("li"));
    while (lines.children.length > count) lines.lastElementChild.remove();
  });
}

// A problem of a line leads into the editor as well.
document.addEventListener("click", (event) => {
  const line = event.target.closest?.("a[href^='#line-']")?.getAttribute("href").slice(6);
  const text = document.querySelector("[data-editor] textarea");
  if (!line || !text) return;
  const lines = text.value.split("\n");
  const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  text.focus();
  text.setSelectionRange(start, start + lines[line - 1].length);
});
