// Writes the gutter and the head for the playhead's instant, as dashboard/parts/as_of.py does on the
// server.
const SIGNS = {
  held: ["held", "st-held", "held"],
  expired: ["expired", "st-expired", "expired"],
  vacant: ["vacant", "st-vacant", "vacant"],
  deleted: ["deleted", "st-deleted", "deleted"],
  absent: ["deleted", "i-minus", "did not exist"],
  unknown: ["deleted", "i-minus", "unknown"],
  fog: ["deleted", "i-blind", "not watched"],
};
SIGNS.many = SIGNS.unknown; // until the server answers

/** The sign in front of a lane. */
export function showDot(dot, word, clock) {
  const [css, symbol, said] = SIGNS[word];
  dot.className = `is-${css}`;
  dot.title = `At ${clock}: ${said}`;
  draw(dot.querySelector("svg"), symbol);
}

/** Sum up the drawn lanes; `words` has the state of each. */
export function showInstant(board, words, foggy) {
  const state = board.querySelector("[data-instant]");
  if (!state) return;
  const count = (...some) => words.filter((word) => some.includes(word)).length;
  const [lost, free, held, unknown] = [count("expired", "vacant"), count("free"), count("held"), count("unknown", "many")];
  const [nobody, known] = [lost + free, lost + free + held];
  const [css, symbol] = foggy ? ["late", "i-blind"] : known ? SIGNS[lost ? "expired" : free ? "vacant" : "held"] : SIGNS.unknown;
  state.className = `state is-${css}`;
  draw(state.querySelector("svg"), symbol);
  const number = Object.assign(document.createElement("b"), { textContent: nobody });
  number.dataset.nobody = "";
  const drawn = state.dataset.instant ? " drawn" : ""; // there are more lanes on other pages
  const rest = ` of ${known + unknown}${drawn} without a holder${unknown ? `, ${unknown} unknown` : ""}`;
  const none = unknown ? "Nothing is known of these Leases then" : "None of these Leases existed then";
  const said = foggy ? ["Nobody watched then"] : known ? [number, rest] : [none];
  state.querySelector("span").replaceChildren(...said);
}

function draw(svg, symbol) {
  svg.setAttribute("class", symbol.startsWith("st-") ? "st" : "icon");
  svg.querySelector("use").setAttribute("href", `#${symbol}`);
}
