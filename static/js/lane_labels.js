// Cuts the labels of a lane that is narrower than the server assumes: in the middle, so that their ends stay, or from where
// two neighbours differ. As dashboard/charts/lanes.py does.
const PADDING = 14; // pixels beside the letters of a bar
const LETTER = 6.65; // pixels, if there is none to measure
const END = 6; // letters that stay at the end
const FEWEST = 3; // letters that are still of use
const known = new WeakMap(); // text element: its label as the server drew it, and as it is shown

function fit(label, letters) {
  if (label.length <= letters) return label;
  if (letters > END + FEWEST) return `${label.slice(0, letters - END - 1).replace(/…+$/, "")}…${label.slice(-END)}`;
  return letters > FEWEST ? `…${label.slice(1 - letters).replace(/^…+/, "")}` : "";
}

function fitAround(label, other, letters) {
  const differs = [...label].findIndex((letter, at) => letter !== other[at]);
  const first = Math.max(0, Math.min(differs - 1, label.length - letters + 1));
  const part = first ? `…${label.slice(first)}` : label;
  return letters <= FEWEST ? "" : part.length > letters ? `${part.slice(0, letters - 1)}…` : part;
}

function labelOf(text) {
  const { textContent } = text;
  if (known.get(text)?.shown !== textContent) known.set(text, { label: textContent }); // drawn by the server just now
  return known.get(text).label;
}

/** All sizes are read before the first label is changed: each would lay the page out again. */
function fitAll() {
  const texts = [...document.querySelectorAll(":is(.term, .band) > text")];
  const labels = texts.map(labelOf);
  const one = texts.find((text) => text.textContent && text.closest(".term"));
  const letter = one ? one.getComputedTextLength() / one.textContent.length || LETTER : LETTER;
  const bars = texts.map((text) => text.parentElement.querySelector(".fill").getBoundingClientRect()); // of the <svg>: also its text
  const clear = texts.map((text) => (text.hasAttribute("dx") ? 1 - Number.parseFloat(text.getAttribute("x")) / 100 : 1));
  const rooms = bars.map(({ width }, n) => Math.floor((width * clear[n] - PADDING) / letter));
  let before = {};
  texts.forEach((text, n) => {
    const [label, letters, lane] = [labels[n], rooms[n], text.closest(".lane")];
    let shown = fit(label, letters);
    if (text.parentElement.matches(".band")) shown = [label, label.split(" ")[0]].find((words) => words.length <= letters) ?? "";
    else if (before.lane === lane && before.shown === shown && before.label !== label) shown = fitAround(label, before.label, letters);
    before = { label, lane, shown };
    known.get(text).shown = shown;
    if (text.textContent !== shown) text.textContent = shown;
  });
}

let frame = 0;
function soon() {
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(fitAll);
}

addEventListener("resize", soon);
new MutationObserver((records) => {
  const lanes = (node) => node.nodeType === Node.ELEMENT_NODE && (node.matches("svg") || node.querySelector(".lane"));
  if (records.some(({ addedNodes }) => [...addedNodes].some(lanes))) fitAll();
}).observe(document.body, { childList: true, subtree: true });
fitAll();
