// Adds playhead and brush to the timeline that the server drew.
import { startBrush } from "leaseboard/brush";
import { refocus } from "leaseboard/stretch";
import { followClock } from "leaseboard/timeline_live";
import { startPlayhead } from "leaseboard/playhead";

let started = null;

function start() {
  const board = document.getElementById("board");
  if (!board || board === started) return;
  started = board;
  for (const control of board.querySelectorAll("[data-js]")) control.hidden = false;
  for (const still of board.querySelectorAll("[data-still]")) still.remove();
  const lanes = board.querySelector("[data-timeline]");
  if (lanes) startPlayhead(board, lanes);
  const brush = board.querySelector("[data-brush]");
  if (brush) startBrush(brush);
  refocus();
}

start();
document.addEventListener("htmx:afterSettle", start);
followClock();
