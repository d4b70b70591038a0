// Keeps a form back while the server does not answer: the browser would show an error in place of the page, and what
// was typed would be lost. A page that is not live asks first; its socket alone may be away.
const WAITS = 3000; // ms for an answer
const UNSENT = "Not sent: the server does not answer. What you typed is still here; send it again once this page is live.";
const sure = new WeakSet(); // forms that the server will get

async function answers() {
  const signal = AbortSignal.timeout(WAITS);
  return fetch("/healthz", { method: "HEAD", cache: "no-store", signal }).then(({ ok }) => ok, () => false);
}

function tell(form) {
  const said = form.querySelector("[data-unsent]") ?? document.createElement("p");
  Object.assign(said, { className: "unsent", role: "alert", textContent: UNSENT });
  said.dataset.unsent = "";
  (form.querySelector(".actions") ?? form).append(said);
}

// Before all others that listen: one of them lets a form be sent only once.
addEventListener("submit", async (event) => {
  const { target: form, submitter } = event;
  const { live } = document.documentElement.dataset;
  if (form.method !== "post" || form.matches("[hx-post]") || !live || live === "live" || sure.delete(form)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (!await answers()) return tell(form);
  form.querySelector("[data-unsent]")?.remove();
  sure.add(form);
  form.requestSubmit(submitter);
}, { capture: true });
