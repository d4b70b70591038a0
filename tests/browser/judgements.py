"""Scripts that find what is wrong with a page, as sentences; each runs in the page."""

from __future__ import annotations

from pathlib import Path

AXE = Path(__file__).with_name("node") / "node_modules/axe-core/axe.min.js"
SENTENCES = """({id, nodes}) =>
    nodes.map((node) => `${id}: ${node.html.slice(0, 200)} ${node.failureSummary}`)"""
# All of axe's rules but those about colours, which cost four times as much as the others together.
STRUCTURE = f"""async () => {{
  const off = {{enabled: false}};
  const found = await axe.run(document, {{
    resultTypes: ["violations"],
    rules: {{"color-contrast": off, "link-in-text-block": off}},
  }});
  return found.violations.flatMap({SENTENCES});
}}"""
# axe's rules about colours, for text that looks as none that has passed them on an earlier page: a
# look is all that these rules see, from the colour of the text to what is painted behind it.
COLOURS = f"""async () => {{
  const passed = new Set(JSON.parse(localStorage.getItem("passed looks") ?? "[]"));
  const painted = new Map([[null, ""]]);
  function behind(element) {{
    if (!painted.has(element)) {{
      const {{backgroundColor, backgroundImage, opacity}} = getComputedStyle(element);
      const own = `${{backgroundColor}} ${{backgroundImage}} ${{opacity}}`;
      painted.set(element, `${{behind(element.parentElement)}}/${{own}}`);
    }}
    return painted.get(element);
  }}
  function look(element) {{
    const {{color, fill, fontSize, fontWeight}} = getComputedStyle(element);
    const home = element.parentElement ?? element; // a live part was drawn anew meanwhile
    const off = element.closest(":disabled, [aria-disabled=true]") !== null;
    return [
      element.localName, element.getAttribute("class"), home.getAttribute("class"), off, color,
      fill, fontSize, fontWeight, getComputedStyle(home).color, behind(element),
    ].join();
  }}
  const says = (element) => element.matches("input, select, textarea")
    || [...element.childNodes].some((one) => one.nodeType === Node.TEXT_NODE && one.data.trim());
  const fresh = [...document.body.querySelectorAll("*")]
    .filter((element) => says(element) && element.checkVisibility() && !passed.has(look(element)));
  if (!fresh.length) return [];
  const found = await axe.run({{include: fresh}}, {{
    resultTypes: ["violations", "incomplete"],
    runOnly: ["color-contrast", "link-in-text-block"],
    elementRef: true,
  }});
  const open = new Set([...found.violations, ...found.incomplete]
    .flatMap(({{nodes}}) => nodes.map(({{element}}) => look(element))));
  fresh.map(look).filter((one) => !open.has(one)).forEach((one) => passed.add(one));
  localStorage.setItem("passed looks", JSON.stringify([...passed]));
  return found.violations.flatMap({SENTENCES});
}}"""
# Waits until what follows a new size, as a ResizeObserver does, has run.
NEXT_FRAME = """() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(done)))"""
# Controls that stand outside of the panel or page they belong to.
ASTRAY = """() => [...document.querySelectorAll("main :is(input, select, textarea, button, .btn)")]
  .filter((control) => control.checkVisibility() && control.type !== "hidden")
  .filter((control) => {
    const {left, right, top, bottom} = control.getBoundingClientRect();
    const home = control.closest(".panel, main").getBoundingClientRect();
    return left < home.left - 1 || right > home.right + 1
      || top < home.top - 1 || bottom > home.bottom + 1;
  })
  .map((control) => `astray: ${control.outerHTML.slice(0, 200)}`)"""
# What makes the page scroll sideways.
TOO_WIDE = """() => {
  const {scrollWidth, clientWidth} = document.documentElement;
  return scrollWidth > clientWidth ? [`${scrollWidth} px wide on a screen of ${clientWidth}`] : [];
}"""
# Columns too narrow for the names that a table is about.
SQUEEZED = """() => [...document.querySelectorAll("table tbody tr:first-of-type > .m-name")]
  .filter((cell) => cell.checkVisibility() && getComputedStyle(cell).display === "table-cell")
  .map((cell) => {
    const {paddingLeft, paddingRight} = getComputedStyle(cell);
    return [cell, cell.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight)];
  })
  .filter(([, room]) => room < 96)
  .map(([cell, room]) => `${room} px for names in ${cell.closest("table").ariaLabel}`)"""
# Hints in empty fields that do not fit.
HINTS = """() => [...document.querySelectorAll("main input[placeholder]")]
  .filter((field) => field.checkVisibility() && !field.value)
  .filter((field) => {
    const {font, paddingLeft, paddingRight} = getComputedStyle(field);
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = font;
    const room = field.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    return pen.measureText(field.placeholder).width > room + 0.5;
  })
  .map((field) => `cut: the hint ${field.placeholder}`)"""
# What a ring says touches it: text is wider than the ring is open at its height.
CROWDED = """() => [...document.querySelectorAll("[data-ring] :is(b, small)")].filter((text) => {
    const ring = text.closest("[data-ring]").getBoundingClientRect();
    const words = document.createRange();
    words.selectNodeContents(text);
    const {width, top, height} = words.getBoundingClientRect();
    const above = ring.top + ring.height / 2 - (top + height / 2);
    const open = ring.width * 27 / 72;
    return width / 2 + 1.5 > Math.sqrt(open * open - above * above);
  })
  .map((text) => `touches its ring: ${text.textContent}`)"""
# Figures that wrap or are cut, labels or symbols over another, and tick boxes off their line.
BOXES = r"""() => {
  const figure = /^[\d.,:]+( ?(%|s|m|h|d|ms|KiB|MiB))?( \d+ [smh])?$/;
  const found = [];
  const seen = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  const clip = (el) => {
    const edges = {left: -Infinity, right: Infinity, top: -Infinity, bottom: Infinity};
    for (let box = el; box && box !== document.body; box = box.parentElement) {
      const {overflowX, overflowY} = getComputedStyle(box);
      if (overflowX === "visible" && overflowY === "visible") continue;
      const place = box.getBoundingClientRect();
      edges.left = Math.max(edges.left, place.left);
      edges.right = Math.min(edges.right, place.right);
      edges.top = Math.max(edges.top, place.top);
      edges.bottom = Math.min(edges.bottom, place.bottom);
    }
    return edges;
  };
  while (texts.nextNode()) {
    const node = texts.currentNode;
    const text = node.data.trim();
    const home = node.parentElement;
    const unseen = ".vh, script, style, template, title, textarea, select, .tip, pre, .pop";
    if (!text || home.closest(unseen)) continue;
    if (!home.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
    range.selectNodeContents(node);
    const rects = [...range.getClientRects()].filter(({width}) => width > 0.5);
    if (!rects.length) continue;
    const edges = clip(home);
    const said = () => `“${text.slice(0, 40)}” in ${home.outerHTML.slice(0, 110)}`;
    if (figure.test(text)) {
      const tops = rects.map(({top}) => top);
      if (Math.max(...tops) - Math.min(...tops) > 4) found.push(`wraps: ${said()}`);
      const cut = rects.some(({left, right}) => right > edges.right + 1 || left < edges.left - 1);
      const scrolls = home.closest(".seg, .text-table, pre, .scroll, .chosen");
      if (cut && !scrolls && !home.closest(".cut, .holder, .mono")) found.push(`cut: ${said()}`);
    }
    for (const rect of rects) {
      const [left, right] = [Math.max(rect.left, edges.left), Math.min(rect.right, edges.right)];
      const top = Math.max(rect.top, edges.top) + 3;
      const bottom = Math.min(rect.bottom, edges.bottom) - 3;
      if (right - left > 2 && bottom > top) seen.push({left, right, top, bottom, home, said});
    }
  }
  for (const home of document.querySelectorAll("main :is(svg.icon, svg.st)")) {
    if (!home.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
    const {left, right, top, bottom} = home.getBoundingClientRect();
    const said = () => `a symbol in ${home.parentElement.outerHTML.slice(0, 110)}`;
    seen.push({left, right, top: top + 3, bottom: bottom - 3, home, said});
  }
  const badges = [...document.querySelectorAll(".playhead output")].map((home) => {
    const {left, right, top, bottom} = home.getBoundingClientRect();
    return {left, right, top, bottom, home, said: () => "the playhead"};
  });
  const names = ".cut, .cut *, .holder, .holder *, .name, .ns, .dom, .mono, .d[title]";
  for (const home of document.querySelectorAll("main *")) {
    const {textOverflow} = getComputedStyle(home);
    if (textOverflow !== "ellipsis" || home.scrollWidth <= home.clientWidth + 1) continue;
    if (home.matches(`${names}, .vh`) || !home.checkVisibility()) continue;
    found.push(`cut: ${home.outerHTML.slice(0, 160)}`);
  }
  const all = seen.filter(({home}) => !home.matches(".playhead output")).concat(badges);
  all.sort((a, b) => a.top - b.top);
  const fixed = (el) => {
    for (let box = el; box; box = box.parentElement) {
      const floats = ["fixed", "sticky"].includes(getComputedStyle(box).position);
      if (floats && !box.matches(".playhead output, .tl-head, th")) return true;
    }
    return false;
  };
  for (let n = 0; n < all.length; n += 1) {
    for (let m = n + 1; m < all.length && all[m].top < all[n].bottom; m += 1) {
      const [a, b] = [all[n], all[m]];
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) < 2 || a.home === b.home) continue;
      if (fixed(a.home) !== fixed(b.home)) continue;
      found.push(`over another: ${a.said()} and ${b.said()}`);
    }
  }
  for (const tick of document.querySelectorAll("main :is([type=checkbox], [type=radio])")) {
    const label = tick.labels?.[0];
    if (!label || !tick.checkVisibility() || label.querySelector(".vh")) continue;
    range.selectNodeContents(label);
    const line = [...range.getClientRects()].find(({width, height}) => width > 14 && height > 8);
    if (!line) continue;
    const box = tick.getBoundingClientRect();
    const off = (box.top + box.bottom) / 2 - (line.top + line.bottom) / 2;
    if (Math.abs(off) < 1.5) continue;
    found.push(`${off.toFixed(1)} px off its line: ${label.textContent.trim()}`);
  }
  return found;
}"""
# Texts that are cut although nothing says them whole.
UNTITLED = """() => [...document.querySelectorAll("main *")]
  .filter((el) => el.clientWidth && el.scrollWidth > el.clientWidth + 1)
  .filter((el) => ["hidden", "clip"].includes(getComputedStyle(el).overflowX))
  .filter((el) => el.checkVisibility() && el.textContent.trim())
  .filter((el) => !el.matches("svg, svg *, .vh, .panel, pre") && !el.closest("[title]"))
  .map((el) => `cut without a title: ${el.outerHTML.slice(0, 160)}`)"""
# Gives each figure of a list of facts several digits, and a long label beside it.
LONG_LABELS = """() => document.querySelectorAll("dt:has(+ dd.num)").forEach((label) => {
  label.append(", with a label that says more of it");
  label.nextElementSibling.textContent = "1,062";
})"""
# Controls whose accessible name lacks the words that they show (WCAG 2.5.3): a person who speaks to
# the browser says what is in sight. A field without a label in sight shows its placeholder; an
# example behind a comma, and a format such as 03:12, are no label.
MISNAMED = r"""() => {
  axe.setup(document.body);
  const plain = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");
  const hidden = ".vh, .err, svg, [aria-hidden=true], select, input, textarea";
  function seen(root) {
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const words = [];
    while (texts.nextNode()) {
      const home = texts.currentNode.parentElement;
      if (!home.closest(hidden) && home.checkVisibility()) words.push(texts.currentNode.data);
    }
    return words.join(" ");
  }
  const label = (field) => {
    const shown = [...(field.labels ?? [])].map(seen).join(" ").trim();
    const hint = (field.placeholder ?? "").split(", e.g.")[0];
    return shown || (/^(\d|hh:)/.test(hint) ? "" : hint);
  };
  const controls = "a[href], button, summary, input:not([type=hidden]), select, textarea, "
    + "[role=button], [role=link], [role=slider]";
  const found = [...document.querySelectorAll(controls)]
    .filter((control) => control.checkVisibility())
    .map((control) => {
      const field = control.matches("input, select, textarea");
      const slider = control.matches("[role=slider]");
      const shows = slider ? "" : field ? label(control) : seen(control);
      return [control, plain(shows), plain(axe.commons.text.accessibleText(control))];
    })
    .filter(([, shows, name]) => !name.includes(shows))
    .map(([one, shows, name]) =>
      `shows “${shows}”, is called “${name}”: ${one.outerHTML.slice(0, 150)}`);
  axe.teardown();
  return found;
}"""
# On a wall: what hides a part of itself, but for names with an ellipsis, or is off the screen.
CLIPPED = """() => [...document.querySelectorAll("body *")]
  .filter((el) => el.checkVisibility() && !el.closest("svg, .cut, .ns, .who"))
  .filter((el) => {
    const { left, right, top, bottom } = el.getBoundingClientRect();
    const style = getComputedStyle(el);
    const wide = style.overflowX !== "visible" && el.scrollWidth > el.clientWidth + 1;
    const high = style.overflowY !== "visible" && el.scrollHeight > el.clientHeight + 2;
    const out = left < 0 || top < 0 || right > innerWidth + 1 || bottom > innerHeight + 1;
    return wide || high || out;
  })
  .map((el) => `${el.className}: ${el.textContent.trim().slice(0, 60)}`)
  .concat(document.documentElement.scrollHeight > innerHeight ? ["a scroll bar"] : [])
  .concat(document.documentElement.scrollWidth > innerWidth ? ["a scroll bar"] : [])"""
