// The exact time on hover, and the zone in words; typed times are read in the zone that the cookie names.
import { now } from "leaseboard/clock";
import { around, moments, THEIRS } from "leaseboard/zone";
import { ZONE } from "leaseboard/zone_choice";
import { exactly, inZone, offsetAt, offsetName, placeOf } from "leaseboard/zones";

/** The moments that an element tells. */
function momentsOf(el) {
  const { exact, ...known } = around(el);
  if (exact) return [exact];
  const texts = [...el.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE);
  return texts.flatMap((text) => moments.get(text) ?? inZone(text.data, "UTC", known).moments);
}

const titles = new WeakMap(); // an element: the title that it had, and the one that it got here

document.addEventListener("pointerover", ({ target: el }) => {
  const found = el.closest(THEIRS) ? [] : momentsOf(el);
  if (!found.length) return;
  const isSvg = el.namespaceURI.endsWith("svg");
  if (isSvg && el.querySelector("title")) return;
  const [had, got] = titles.get(el) ?? [];
  const said = el.title && el.title === got ? had : (el.closest("[title]")?.title ?? "").replace(/^\S+Z: /, "");
  const title = [...found.map((t) => exactly(ZONE, t)), said].filter(Boolean).join("\n");
  titles.set(el, [said, title]);
  if (isSvg) el.append(Object.assign(document.createElementNS(el.namespaceURI, "title"), { textContent: title }));
  else el.title = title;
});

for (const name of document.querySelectorAll("[data-zone-name]")) {
  const offset = offsetName(offsetAt(ZONE, now() * 1000));
  name.querySelector("b").textContent = placeOf(ZONE);
  name.querySelector("span").textContent = `, ${offset}`;
  name.title = `All times are in ${ZONE}, ${offset}. Choose another zone`;
}

/** Let the server read what is typed into this page in its zone. */
export function keepZone() {
  const kept = document.cookie.split("; ").find((pair) => pair.startsWith("zone="));
  const isKept = kept === (ZONE === "UTC" ? undefined : `zone=${ZONE}`);
  if (!isKept) document.cookie = `zone=${ZONE}; path=/; samesite=lax${ZONE === "UTC" ? "; max-age=0" : ""}`;
}

// Another zone may have been chosen in another tab since: what is typed here means that of this page.
const SENDS = ["submit", "click", "change", "keydown", "htmx:configRequest"];
for (const event of SENDS) document.addEventListener(event, keepZone, true);
