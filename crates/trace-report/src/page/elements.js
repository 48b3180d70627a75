// Making elements. Text is only ever set as text: nothing here, or anywhere in the page, parses markup.

const SVG_SPACE = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child);
  }
  return node;
}

// An HTML element.
function element(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// An SVG element.
function shape(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG_SPACE, tag), attributes, children);
}

function byId(id) {
  return document.getElementById(id);
}

// At most one call a frame, with the latest state.
function oncePerFrame(work) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      work();
    });
  };
}

const calm = matchMedia("(prefers-reduced-motion: reduce)");

// A round button with a sign on it.
function toolButton(sign, label, act) {
  return element("button", { type: "button", class: "tool", "aria-label": label, title: label, text: sign, onclick: act });
}

// Two bars: a probability as it was, and with the cause replaced.
function beforeAfter(before, after, promoted) {
  const bar = (share, kind) => {
    const inner = element("span", { class: `bar-fill ${kind}` });
    inner.style.width = `${Math.max(share * 100, 0.6)}%`;
    return element("span", { class: "bar" }, inner);
  };
  const [was, would] = percentages(before, after);
  return element("div", { class: "before-after" },
    element("span", { class: "bar-label", text: "as it was" }), bar(before, promoted ? "promoting" : "despite"),
    element("span", { class: "bar-number", text: was }),
    element("span", { class: "bar-label", text: "replaced" }), bar(after, "replaced"),
    element("span", { class: "bar-number", text: would }));
}
