// Shows each time on the page in the zone that the person chose, and exactly on hover. Everything else writes UTC; what others wrote
// stays: code, names, and parts with data-verbatim.
//   [datetime] [data-t]   the moment of the times inside; [data-t] is a mark of an axis
//   [data-near]           the moment to which the times of a sentence are nearest
import { now } from "leaseboard/clock";
import { ZONE } from "leaseboard/zone_choice";
import { markAxis, markJumps } from "leaseboard/zone_marks";
import { dateOf, inZone, typedOf } from "leaseboard/zones";

export const THEIRS = "[data-verbatim], [data-not-live], .cut, .holder, code, pre, textarea, option, script, style, .lane text";
const WORDS = ["title", "aria-label", "aria-valuetext"];
const TYPED = "input:is([name=at], [name=from], [name=to], [name=since], [name=until]):not([type=hidden])";
const written = new WeakMap(); // a text or an element: what this module wrote there, per attribute
export const moments = new WeakMap(); // a text: the moments in it
const SOON = 300; // ms
let soon = 0;
const ADDED = /( \d{4}) /; // behind a date, in front of its time
const HAS = /\d:\d\d|\d{4}|UTC/;

const momentIn = (text) => (/^[\d.]+$/.test(text) ? Number(text) * 1000 : Date.parse(text));

/** What is known of the times inside. */
export function around(el) {
  const [timed, near] = [el.closest("[datetime], [data-t]"), el.closest("[data-near]")?.dataset.near];
  const exact = timed && Date.parse(timed.getAttribute("datetime") ?? timed.dataset.t);
  return { now: now() * 1000, near: near && momentIn(near), exact: exact ?? undefined, dated: Boolean(timed?.querySelector(".day")) };
}

/** Note what a text says in the zone, and of which moments. */
function keep(text, said, of) {
  written.set(text, said);
  moments.set(text, of);
  if (text.data !== said) text.data = said;
}

function rewriteText(text) {
  const el = text.parentElement;
  if (!el || written.get(text) === text.data || !HAS.test(text.data) || el.closest(THEIRS)) return;
  const known = around(el);
  const found = inZone(text.data, ZONE, known);
  const isDate = known.exact && /^\d{1,2} [A-Z][a-z]{2} \d{4}$/.test(text.data);
  const isDated = known.exact && !known.dated && el.closest("time") && ADDED.test(found.written) && !ADDED.test(text.data);
  if (isDated) el.closest("time").dataset.dated = "";
  const said = isDated ? found.written.replace(ADDED, "$1\n") : found.written;
  keep(text, isDate ? dateOf(ZONE, known.exact) : said, found.moments);
}

function rewriteWords(el) {
  if (el.closest(THEIRS)) return;
  for (const name of WORDS) {
    const text = el.getAttribute(name);
    if (!text || !HAS.test(text) || written.get(el)?.[name] === text) continue;
    const said = inZone(text, ZONE, around(el)).written;
    written.set(el, { ...written.get(el), [name]: said });
    if (said !== text) el.setAttribute(name, said);
  }
}

/** A field with a moment shows it as a person of the zone would type it. */
function rewriteTyped(input) {
  const moment = input.dataset.moment || input.defaultValue;
  const untouched = input.value === input.defaultValue;
  if (untouched && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(moment)) input.defaultValue = typedOf(ZONE, Date.parse(moment));
}

/** Rewrite `root` and all inside. */
export function rewrite(root) {
  if (ZONE === "UTC") return;
  if (root.nodeType === Node.TEXT_NODE) return rewriteText(root);
  if (root.nodeType !== Node.ELEMENT_NODE) return;
  const marks = root.matches("[data-t]") ? [root] : root.querySelectorAll("[data-t]:not([data-label])");
  for (const axis of new Set([...marks].map((mark) => mark.closest("svg:not(svg svg)")))) markAxis(axis, ZONE, keep);
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) rewriteText(texts.currentNode);
  for (const el of [root, ...root.querySelectorAll(WORDS.map((name) => `[${name}]`).join())]) rewriteWords(el);
  for (const input of root.querySelectorAll(TYPED)) rewriteTyped(input);
}

function rewriteChanges(records) {
  for (const { type, target, addedNodes } of records) {
    if (type === "attributes") rewriteWords(target);
    else if (type === "characterData") rewriteText(target);
    else addedNodes.forEach(rewrite);
  }
  if (records.some(({ type }) => type === "childList")) soon ||= setTimeout(() => (markJumps(ZONE), (soon = 0)), SOON);
}

if (ZONE !== "UTC") {
  rewrite(document.documentElement);
  markJumps(ZONE);
  const all = { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: WORDS };
  new MutationObserver(rewriteChanges).observe(document.body, all);
}
