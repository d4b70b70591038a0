// What the jumps of a zone's clocks change beside the times themselves: marks of axes, and lists.
import { clockOf, dateOf, dayOf, offsetAt } from "leaseboard/zones";

const hours = (jump) => `${Math.abs(jump) / 3_600_000} h`;
const jumpOf = (jump) => `${jump < 0 ? "back" : "forward"} ${hours(jump)}`;

/** The first mark of a day has its date, and the first after a jump says by how much clocks went. `keep` notes what a text says. */
export function markAxis(axis, zone, keep) {
  let before = null; // the moment of the mark before
  for (const mark of axis.querySelectorAll("[data-t]")) {
    const t = Date.parse(mark.dataset.t);
    mark.dataset.label ??= mark.textContent; // as the server wrote it
    const midnight = clockOf(zone, t) === "00:00";
    const dated = midnight || mark.dataset.step === "day" || (before !== null && dayOf(zone, before) !== dayOf(zone, t));
    const jump = before === null ? 0 : offsetAt(zone, t) - offsetAt(zone, before);
    const date = dated ? dateOf(zone, t, false) : "";
    const clock = midnight ? "" : clockOf(zone, t, /:\d\d(:\d\d)$/.exec(mark.dataset.label)?.[1]);
    const pieces = [date, piece(clock, date ? "sm-hide" : ""), piece(jump && `${jump < 0 ? "−" : "+"}${hours(jump)}`, "jump")];
    mark.replaceChildren(...pieces.filter(Boolean));
    if (jump) mark.append(svg("title", `Clocks go ${jumpOf(jump)} before this mark.`));
    for (const one of mark.childNodes) keep(one.firstChild ?? one, one.textContent, [t]);
    before = t;
  }
}

const svg = (name, text) => Object.assign(document.createElementNS("http://www.w3.org/2000/svg", name), { textContent: text });

function piece(text, css) {
  const made = text && svg("tspan", `${css ? " " : ""}${text}`);
  if (made && css) made.setAttribute("class", css);
  return made;
}

/** Say between two rows that clocks jumped. */
export function markJumps(zone) {
  for (const list of document.querySelectorAll("main :is(tbody, ul, ol)")) {
    const times = [...list.children].map((row) => row.querySelector("time[datetime]")).filter(Boolean);
    times.forEach((time, n) => {
      const [one, other] = [times[n - 1] ?? time, time].map((el) => Date.parse(el.dateTime));
      const jump = offsetAt(zone, Math.max(one, other)) - offsetAt(zone, Math.min(one, other));
      if (jump) time.dataset.jump = `clocks go ${jumpOf(jump)}`;
      else delete time.dataset.jump;
    });
  }
}
