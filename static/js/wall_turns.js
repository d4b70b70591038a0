// On a screen that was opened by a code: leads it to the wall whose turn it is, and to the field for a code once its right
// has ended. It leaves a wall only for a page that the server has just answered with.
const { body } = document;
const { screen, cluster, turn } = body.dataset;
const REFUSED = 5000; // ms for which the wall says why
const ANSWER = 10_000; // ms to wait for one: a server that hangs gets no second question meanwhile
let over = false;

async function next() {
  let answer, page;
  try {
    answer = await fetch(`${screen}?after=${cluster}`, { cache: "no-store", signal: AbortSignal.timeout(ANSWER) });
    page = await answer.text();
  } catch {
    return; // the wall says that it is not live
  }
  if (!answer.ok && answer.status !== 403) return;
  const there = new URL(answer.url);
  if (there.pathname !== location.pathname) return location.replace(there);
  const said = new DOMParser().parseFromString(page, "text/html").querySelector("[data-turns]");
  if (said) document.querySelector("[data-turns]")?.replaceChildren(...said.childNodes);
}

if (turn) setInterval(next, Number(turn) * 1000);
if (screen)
  new MutationObserver(() => {
    if (over || body.dataset.live !== "refused") return;
    over = true;
    setTimeout(next, REFUSED);
  }).observe(body, { attributeFilter: ["data-live"] });
