// Shows the tip of a cell, and announces it for screen readers.
import { cellName } from "leaseboard/cells";
import { field, PHASES } from "leaseboard/field";
import { say } from "leaseboard/say";

const host = document.querySelector("#comb");
const canvas = host.querySelector("canvas");
const tip = host.querySelector(".tip");
let asked = 0;

/** `at`: {x, y, size} of the cell on the canvas. */
export async function showTip(slot, at, aloud) {
  const mine = ++asked;
  tip.hidden = slot < 0;
  if (slot < 0) return;
  const phase = PHASES[field.phases[slot]];
  const state = tip.querySelector(".state");
  state.className = `state is-${phase}`;
  state.querySelector("use").setAttribute("href", `#st-${phase}`);
  write("…", phase, at);
  const [name, renewed] = await cellName(slot);
  if (mine !== asked) return;
  write(name, `${phase}, ${renewed}`, at);
  if (aloud) say(`${name}: ${phase}, ${renewed}`);
}

function write(name, said, { x, y, size }) {
  tip.querySelector("b").textContent = name;
  tip.querySelector(".state span").textContent = said;
  const [left, top] = [x + canvas.offsetLeft, y + canvas.offsetTop];
  const across = Math.min(Math.max(4, left - tip.offsetWidth / 2), host.clientWidth - tip.offsetWidth - 4);
  const down = top > tip.offsetHeight + 12 ? top - tip.offsetHeight - 8 : top + size + 10;
  tip.style.transform = `translate(${across}px, ${down}px)`;
}
