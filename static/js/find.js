// Ctrl-K and Cmd-K: one field that finds Leases, holders, namespaces, incidents, pages and actions while one types.
// The list is drawn by the server; the focus stays in the field, which names the chosen option.
const dialog = document.querySelector("#find");
const form = dialog?.querySelector("form");
const field = dialog?.querySelector("[role=combobox]");
const WAIT = 70; // ms after a key, in which the next one may come

let asked; // the text that is shown, or is on its way
let coming = Promise.resolve(); // settles once the list fits what is typed
let giveUp = new AbortController();

const options = () => [...dialog.querySelectorAll("[role=option]")];
const chosen = () => dialog.querySelector("[aria-selected=true]");

export function openFind() {
  if (!dialog || dialog.open) return field?.select();
  document.querySelector("dialog[open]")?.close();
  dialog.showModal();
  field.select();
  asked = undefined;
  look(0);
}

function look(wait) {
  if (field.value === asked) return;
  asked = field.value;
  giveUp.abort();
  giveUp = new AbortController();
  coming = fetchList(wait, giveUp.signal).catch((error) => error.name === "AbortError" || tell("The server does not answer."));
}

async function fetchList(wait, signal) {
  await new Promise((done) => setTimeout(done, wait));
  signal.throwIfAborted();
  const query = new URLSearchParams(new FormData(form));
  const answer = await fetch(`${form.action}?${query}`, { headers: { "HX-Request": "true" }, signal });
  if (answer.redirected) return form.submit(); // to sign in
  const html = await answer.text();
  if (!answer.ok && answer.status !== 400) return tell("The server could not search.");
  dialog.querySelector("#found").outerHTML = html;
  choose(dialog.querySelector("[data-whole]") ?? options()[0]);
}

function tell(text) {
  dialog.querySelector("#found-list").hidden = true;
  dialog.querySelector(".said").textContent = text;
  choose();
}

function choose(option) {
  chosen()?.setAttribute("aria-selected", "false");
  option?.setAttribute("aria-selected", "true");
  option?.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-expanded", String(Boolean(option)));
  if (option) field.setAttribute("aria-activedescendant", option.id);
  else field.removeAttribute("aria-activedescendant");
}

function step(by) {
  const all = options();
  if (all.length) choose(all[(all.indexOf(chosen()) + by + all.length) % all.length]);
}

async function open(event) {
  event.preventDefault();
  await coming;
  const option = chosen();
  if (option && dialog.open) option.click();
  else if (dialog.open) form.submit();
}

// What one types into the field of the page's head goes on here.
document.querySelector("#q")?.addEventListener("input", ({ target, isComposing }) => {
  if (!dialog || isComposing) return;
  [field.value, target.value] = [target.value, ""];
  openFind();
  field.setSelectionRange(field.value.length, field.value.length);
});
field?.addEventListener("input", () => look(WAIT));
field?.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (by) {
    event.preventDefault();
    step(by);
  } else if (event.key === "Enter" && !event.isComposing) open(event);
});
dialog?.addEventListener("click", ({ target }) => target === dialog && dialog.close()); // outside of it
document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  event.preventDefault();
  openFind();
});
document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-find]") || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  openFind();
});
addEventListener("pageshow", ({ persisted }) => persisted && dialog?.close()); // back to a kept page
