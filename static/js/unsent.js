// Keeps a form back while the server does not answer: the browser would show an error in place of the page, and what
// was typed would be lost. A page that is not live asks first, and so does one without a socket, which cannot tell.
const WAITS = 3000; // ms for an answer
const AWAY = [502, 503, 504]; // a proxy answers for it; any other answer, also that it hides the page, is its own
const UNSENT = "Leaseboard does not answer. Nothing was sent; what you typed stays here.";
const asks = new WeakSet(); // forms that wait for the answer
const sure = new WeakSet(); // forms that the server will get

async function answers() {
  const signal = AbortSignal.timeout(WAITS);
  const asked = fetch("/healthz", { method: "HEAD", cache: "no-store", signal });
  return asked.then(({ status }) => !AWAY.includes(status), () => false);
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
  const isLive = document.body.dataset.liveUrl && document.documentElement.dataset.live === "live";
  if (form.method !== "post" || form.matches("[hx-post]") || isLive || sure.delete(form)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (asks.has(form)) return;
  asks.add(form);
  const answered = await answers();
  asks.delete(form);
  if (!answered) return tell(form);
  form.querySelector("[data-unsent]")?.remove();
  sure.add(form);
  form.requestSubmit(submitter);
}, { capture: true });
