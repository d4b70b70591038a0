// Puts the server's finished rows, lanes and heads in their places. Draws nothing itself.
import { now, scan } from "leaseboard/clock";
import { crossOut, isCrossedOut } from "leaseboard/deleted_rows";
import { say } from "leaseboard/say";
import { rewrite } from "leaseboard/zone";

const ATTRIBUTES = { row: "data-key", tile: "data-tile", lease: "data-lease", now: "data-now" };
let places = new Map(); // "part key" -> the elements that show it, as of `shown`
const find = (part, key) => (places.get(`${part} ${key}`) ?? []).filter((el) => el.isConnected);
const phaseOf = (el) => /\bis-(\w+)/.exec(el.className)?.[1];

/** What the page shows: names of Leases per part. */
export function shown() {
  const parts = {};
  places = new Map();
  for (const [part, attribute] of Object.entries(ATTRIBUTES)) {
    for (const el of document.querySelectorAll(`[${attribute}]`)) place(part, el.getAttribute(attribute), el);
    const names = [...places.keys()].filter((name) => name.startsWith(`${part} `));
    if (names.length) parts[part] = names.map((name) => name.slice(part.length + 1));
  }
  return parts;
}

function place(part, key, el) {
  places.set(`${part} ${key}`, [...find(part, key), el]);
}

/** `html`: {part: {name: html}}. */
export function placeAll(html) {
  for (const [part, rows] of Object.entries(html)) {
    for (const [key, text] of Object.entries(rows)) {
      for (const old of find(part, key)) place(part, key, replace(old, text, key));
    }
  }
}

/** What a row says besides its ages: a row that says something else glows. */
function look(el) {
  const copy = el.cloneNode(true);
  for (const aging of copy.querySelectorAll("[data-since], [data-observed], .flap small")) aging.remove();
  return phaseOf(el) + copy.textContent.replace(/\s+/g, "");
}

function replace(old, html, key) {
  if ("absent" in old.dataset) return location.reload() ?? old; // the page of a Lease that is there has more parts
  const template = document.createElement("template");
  template.innerHTML = html;
  const fresh = template.content.firstElementChild;
  rewrite(fresh);
  const phase = phaseOf(fresh);
  if (phase && phase !== phaseOf(old)) say(`${key} is ${phase}`);
  const focused = old.contains(document.activeElement) && document.activeElement.getAttribute("href");
  fresh.hidden = old.hidden;
  if (old.querySelector("[name=lease]:checked")) fresh.querySelector("[name=lease]").checked = true;
  if (look(fresh) !== look(old)) fresh.classList.add("moved");
  old.replaceWith(fresh);
  scan(fresh);
  if (focused) fresh.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus();
  return fresh;
}

/** Change only the numbers that the clock counts from. */
export function renewAll(renewed) {
  for (const [key, [observed, duration, late]] of Object.entries(renewed)) {
    for (const part of Object.keys(ATTRIBUTES)) {
      for (const el of find(part, key)) {
        for (const bar of el.querySelectorAll("[data-observed]")) bar.dataset.observed = observed;
        const notch = duration && late < duration && el.querySelector(".tick");
        const x = notch && (100 * (1 - late / duration)).toFixed(0);
        if (notch && notch.getAttribute("x") !== x) notch.setAttribute("x", x);
      }
    }
  }
}

/** Cross out deleted Leases; they keep their places until the next load. `ends`: when each was deleted, where that is known. */
export function dropAll(names, ends = {}) {
  for (const key of names) {
    const shows = [...find("lease", key), ...find("row", key)].some((el) => !("absent" in el.dataset) && !isCrossedOut(el));
    for (const row of [...find("row", key), ...find("now", key)]) crossOut(row, ends[key] ?? now());
    for (const tile of find("tile", key)) tile.remove();
    if (shows) say(`${key} is deleted`);
  }
}
