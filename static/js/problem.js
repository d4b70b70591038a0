// Shows the band for a history that cannot be written: changes may be lost meanwhile.
import { say } from "leaseboard/say";

/** `text`: a sentence, "" when all is well, undefined when the server said nothing of it. */
export function showProblem(text) {
  const band = document.querySelector("[data-history-banner]");
  if (!band || text === undefined) return;
  if (text && band.hidden) say(text);
  band.hidden = !text;
  band.querySelector("[data-history-problem]").textContent = text;
}
