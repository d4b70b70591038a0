// Knows which parts of the page must not be drawn anew now: those in use, and those that an answer replaces soon.
// Of two requests for one part of the page the later one decides, whichever answer comes first. Without this, the first
// answer replaces the part for which the second one is meant, and the URL says what the page does not show.
const latest = new WeakMap(); // part -> the last request for it
const answered = new WeakSet();

const isAwaited = (el) => latest.has(el) && !answered.has(latest.get(el));

function leaveToLater(event) {
  const { target, xhr } = event.detail;
  if (latest.get(target) !== xhr) event.preventDefault();
}

document.addEventListener("htmx:beforeRequest", ({ detail: { elt, target, xhr, requestConfig } }) => {
  if (requestConfig.headers["X-Regions"]) return; // it replaces parts of the target alone
  latest.set(target, xhr);
  xhr.addEventListener("loadend", () => answered.add(xhr));
  // Not on the document: an earlier answer may have taken the element out of the page.
  elt.addEventListener("htmx:beforeOnLoad", leaveToLater, { once: true });
});

/** Whether the pointer, the focus or a selection is in `el`, or it is awaited; data-in-use may ask less of the pointer. */
export function inUse(el) {
  if (!el) return false;
  const selection = getSelection();
  return (
    isAwaited(el) ||
    el.matches(el.dataset.inUse ?? ":hover") ||
    el.contains(document.activeElement) ||
    (!selection.isCollapsed && el.contains(selection.anchorNode))
  );
}
