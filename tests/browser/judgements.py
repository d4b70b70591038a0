"""Scripts that find what is wrong with a page, as sentences; each runs in the page."""

from __future__ import annotations

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
    const home = element.parentElement;
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
