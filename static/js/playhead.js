// Moves the playhead over the lanes, by mouse, touch and keyboard.
import { moment } from "leaseboard/age";
import { now } from "leaseboard/clock";
import { showDot, showInstant } from "leaseboard/instant";
import { readLanes } from "leaseboard/lanes";
import { dropAnswer, setAt } from "leaseboard/timeline_url";

const STEPS = { near: 10, far: 600 }; // s
const SHORT = 120; // s: in a shorter stretch the playhead moves by tenths of a second
const SHORT_STEPS = { near: 1, far: 10 };
const ROOM = 4; // px between the playhead's time and one of the axis
const SETTLED = 250; // ms without a move until the URL changes

const clockOf = (t) => moment(t, now());

export function startPlayhead(board, lanes) {
  const [from, to] = [Number(lanes.dataset.start), Number(lanes.dataset.end)];
  const field = lanes.querySelector(".playfield");
  const head = field.querySelector(".playhead");
  const out = head.querySelector("output");
  const { rows, stoodAt, foggyAt } = readLanes(lanes);
  let t = Number(lanes.dataset.at);
  const labels = [...lanes.querySelectorAll(".tl-head .ax")];
  let timer = null;

  /** Show no time of the axis of which the playhead's would hide a part. */
  function makeRoom() {
    const { left, right } = out.getBoundingClientRect();
    const boxes = labels.map((label) => label.getBoundingClientRect());
    labels.forEach((label, n) => label.toggleAttribute("data-hidden", boxes[n].right > left - ROOM && boxes[n].left < right + ROOM));
  }

  function place() {
    const share = (t - from) / (to - from);
    head.style.left = `${share * 100}%`;
    head.classList.toggle("first", share < 0.06);
    head.classList.toggle("last", share > 0.94);
    out.textContent = "follows" in lanes.dataset ? "now" : clockOf(t);
    makeRoom();
    head.setAttribute("aria-valuenow", t);
    const finding = board.querySelector("[data-instant]")?.textContent.trim() ?? "";
    head.setAttribute("aria-valuetext", `${clockOf(t)} UTC, ${finding}`);
  }

  function move(moment) {
    const fine = to - from > SHORT ? 1 : 10;
    t = Math.min(to, Math.max(from, Math.round(moment * fine) / fine));
    delete lanes.dataset.follows;
    delete board.dataset.region;
    dropAnswer(); // it is about another instant
    showInstant(board, rows.map(fill), foggyAt(t));
    for (const el of board.querySelectorAll("[data-at-clock]")) el.textContent = clockOf(t);
    for (const el of board.querySelectorAll("[data-at-word]")) el.hidden = false;
    for (const el of board.querySelectorAll("[data-now-group]")) el.textContent = `Without a holder, late or flapping at ${clockOf(to)}`;
    place();
    clearTimeout(timer);
    timer = setTimeout(() => setAt(board, t, rows), SETTLED);
  }

  /** Show who held this row's Lease at t. Returns the word by which it is counted. */
  function fill(row) {
    const { content, text, word } = stoodAt(row, t);
    row.many = word === "many";
    row.cell.replaceChildren(content ?? text);
    showDot(row.dot, word, clockOf(t));
    return row.lock && word === "vacant" ? "free" : word;
  }

  const drag = (event) => {
    const box = field.getBoundingClientRect();
    move(from + ((event.clientX - box.left) / box.width) * (to - from));
  };
  head.addEventListener("pointerdown", (event) => {
    head.setPointerCapture(event.pointerId);
    head.addEventListener("pointermove", drag);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    head.addEventListener(end, () => head.removeEventListener("pointermove", drag));
  }
  head.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -1, PageUp: 1 }[event.key];
    const steps = to - from > SHORT ? STEPS : SHORT_STEPS;
    if (way) move(t + way * (event.shiftKey || event.key.startsWith("Page") ? steps.far : steps.near));
    else if (event.key === "Home") move(from);
    else if (event.key === "End") move(to);
    else return;
    event.preventDefault();
  });
  lanes.addEventListener("click", (event) => {
    if (event.target.closest("svg.lane, .tl-head svg") && !event.target.closest("a")) drag(event);
  });
  place();
  new ResizeObserver(makeRoom).observe(field);
}
