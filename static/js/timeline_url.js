// The playhead is part of the URL, and of every link that keeps the instant.
let asking = null;

export const momentOf = (t) => new Date(t * 1000).toISOString().replace(".000", "");

/** Say in the URL and the links that `t` is asked about; where changes lie too thick, ask the server. */
export async function setAt(board, t, rows) {
  const at = momentOf(t);
  const url = withAt(location.href, at);
  history.replaceState(history.state, "", url);
  for (const link of board.querySelectorAll("a[data-at-link]")) link.href = withAt(link.href, at);
  for (const field of board.querySelectorAll("[data-at-field]")) field.value = at;
  const input = board.querySelector("[data-at-input]");
  if (input !== document.activeElement) input.value = at.replace("T", " ").replace("Z", "");
  if (rows.some((row) => row.many)) await ask(url, rows);
}

/** Links of zooms and pages hold their own stretch: a link that has none keeps the one shown. */
function withAt(href, at) {
  const url = new URL(href);
  url.searchParams.set("at", at);
  return url.toString();
}

/** htmx remembers where a link led when it was drawn: it leads where its href says. */
document.addEventListener("htmx:configRequest", ({ detail }) => {
  if (!detail.elt.matches("a[data-at-link]")) return;
  const { pathname, search } = new URL(detail.elt.href);
  detail.path = pathname + search;
});

async function ask(url, rows) {
  asking?.abort();
  asking = new AbortController();
  try {
    const response = await fetch(url, { headers: { "HX-Request": "true" }, signal: asking.signal });
    if (!response.ok) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const row of rows.filter((one) => one.many)) {
      const fresh = page.querySelector(`[data-lane="${CSS.escape(row.key)}"] [data-as-of]`);
      if (fresh) row.cell.replaceChildren(...fresh.childNodes);
      const dot = fresh?.closest("[data-lane]").querySelector("[data-dot]");
      if (dot) row.dot.replaceWith((row.dot = document.adoptNode(dot)));
    }
  } catch {
    // Moved on, or the server is away: the cell says what is known.
  }
}
