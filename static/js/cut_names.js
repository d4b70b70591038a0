// Ends each piece of a name that CSS cuts behind its ellipsis: CSS leaves up to a letter's width between it and what follows.
const PIECES = ".cut > i, .holder .host";
const pen = document.createElement("canvas").getContext("2d");
const range = document.createRange();
const SOON = { timeout: 200 }; // ms: a busy page is never idle
const later = window.requestIdleCallback ?? setTimeout;
const dots = new Map(); // font: width of an ellipsis

function widthOfDots(font) {
  if (!dots.has(font)) {
    pen.font = font;
    dots.set(font, pen.measureText("…").width);
  }
  return dots.get(font);
}

function widthOf(text, letters) {
  range.setStart(text, 0);
  range.setEnd(text, letters);
  return range.getBoundingClientRect().width;
}

/** Whether CSS cuts its text, where a part of a pixel too little is enough, or the ellipsis that a style puts behind it. */
function isCut(piece) {
  const text = piece.firstChild;
  if (!text) return false;
  return widthOf(text, text.length) > piece.getBoundingClientRect().width + 0.02 || piece.scrollWidth > piece.clientWidth;
}

/** The width of the letters that are seen, and of the ellipsis. */
function seen(piece) {
  const text = piece.firstChild;
  const { fontWeight, fontSize, fontFamily } = getComputedStyle(piece); // `font` is empty beside font-variant
  const ellipsis = widthOfDots(`${fontWeight} ${fontSize} ${fontFamily}`);
  const whole = piece.getBoundingClientRect().width;
  const room = whole - ellipsis;
  let [fits, most] = [0, text.length];
  while (fits < most) {
    const middle = Math.ceil((fits + most) / 2);
    if (widthOf(text, middle) <= room) fits = middle;
    else most = middle - 1;
  }
  return fits ? Math.min(whole, widthOf(text, fits) + ellipsis + 0.1) : whole;
}

const setWidth = ({ style }, width) => Object.assign(style, { minWidth: width, maxWidth: width });

/** Return the pieces in an element, as wide as CSS makes them. */
export function loosen(element) {
  const pieces = [...element.querySelectorAll(PIECES)];
  for (const piece of pieces) setWidth(piece, "");
  return pieces;
}

export function tighten(pieces) {
  if (tightenOnce(pieces)) tightenOnce(pieces.filter(({ style }) => !style.minWidth)); // a part of a pixel may move to another piece
}

/** Returns whether any piece was cut. */
function tightenOnce(pieces) {
  const cut = pieces.filter(isCut);
  const widths = cut.map(seen); // all before the first style is set: each would lay the page out again
  cut.forEach((piece, n) => setWidth(piece, `${widths[n]}px`));
  return cut.length > 0;
}

function tightenAll() {
  const pieces = [...document.querySelectorAll(PIECES)];
  const below = new Set(pieces.filter((piece) => piece.getBoundingClientRect().top > innerHeight));
  const anew = (some) => {
    for (const piece of some) setWidth(piece, "");
    tighten(some);
  };
  anew(pieces.filter((piece) => !below.has(piece)));
  later(() => anew([...below]), SOON); // no first paint waits for what is out of view
}

new MutationObserver((records) => {
  const added = records.flatMap(({ addedNodes }) => [...addedNodes]).filter((node) => node.nodeType === Node.ELEMENT_NODE);
  if (added.length) tighten(added.flatMap((node) => [...node.querySelectorAll(PIECES)]));
}).observe(document.body, { childList: true, subtree: true });
let frame = 0;
addEventListener("resize", () => {
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(tightenAll);
});
tightenAll();
