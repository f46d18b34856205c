// treekit's explorer: runs and questions, their trees, their nodes. One module for a notebook's widget, a saved page and a served one.
// All text of models and passages goes into text nodes; nothing is ever parsed as HTML. Nothing recurses, and lists draw only what is seen.

const ROW = 26, MOST_ROWS = 120, LONG = 20000, BLOCK = 4000, DEEPEST = 18, NARROW_PAGE = 860;
const SMALLEST_ARCS = 0.8;  // a dependency tree is drawn smaller to fit, down to this; a wider one is scrolled
const WIDE = 210, HIGH = 40, GAP = 34, DOWN = 52, NARROW = 132;  // of a node in the drawing, and between two; and of one where there is little room
const READABLE = 0.45, MOST_DRAWN = 60;  // zoom below which nodes are circles; nodes of a tree that is drawn whole

// ── elements ──
function h(tag, attrs, ...inside) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs || {})) {
    if (typeof value === "function") el.addEventListener(name, value);
    else if (value === true) el.setAttribute(name, "");
    else if (value !== false && value != null) el.setAttribute(name, value);
  }
  el.append(...inside.filter(x => x != null && x !== false));
  return el;
}
function drawing(tag, attrs, ...inside) {
  const el = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attrs || {})) if (typeof value === "function") el.addEventListener(name, value); else if (value != null) el.setAttribute(name, value);
  el.append(...inside); return el;
}
const fill = (el, ...inside) => { el.replaceChildren(...inside.filter(x => x != null && x !== false)); return el; };
const plural = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
const dollars = x => x == null ? "price not known" : x === 0 ? "$0" : `$${x < 0.01 ? x.toPrecision(2) : x.toFixed(2)}`;

// A text, cut where it is long. The rest comes in blocks of lines that the browser lays out only where they are seen.
function longText(text, marks) {
  const box = h("pre", {class: "tkx-text", tabindex: "0"});
  const part = (from, end) => {
    const inside = []; let at = from;
    for (const [a, b] of marks || []) if (a >= from && b <= end) { inside.push(text.slice(at, a), h("mark", {}, text.slice(a, b))); at = b; }
    return [...inside, text.slice(at, end)];
  };
  if (text.length <= LONG) { fill(box, ...part(0, text.length)); return box; }
  const whole = () => {
    const blocks = [];
    for (let at = 0; at < text.length;) {
      const line = text.indexOf("\n", at + BLOCK), end = line < 0 || line > at + 2 * BLOCK ? Math.min(text.length, at + 2 * BLOCK) : line + 1;
      blocks.push(h("span", {class: "tkx-block"}, ...part(at, end))); at = end;
    }
    fill(box, ...blocks); more.remove();
  };
  fill(box, ...part(0, LONG));
  const more = h("button", {class: "tkx-button", click: whole}, `show all ${text.length.toLocaleString("en")} characters`);
  return h("div", {}, box, more);
}
// A text inside a line: its beginning, with a button for the rest.
function brief(text, most = 600) {
  if (text.length <= most) return [text];
  const shown = h("span", {}, text.slice(0, most), "… ");
  const more = h("button", {class: "tkx-button", click: () => { more.replaceWith(); shown.replaceWith(longText(text)); }}, `show all ${text.length.toLocaleString("en")} characters`);
  return [shown, more];
}
const cut = (text, most) => text.length > most ? `${text.slice(0, most)}…` : text;
const day = at => at ? new Date(at * 1000).toLocaleString("sv").slice(0, 16) : "";
const number = (x, digits = 2) => x == null ? "–" : x.toFixed(digits);
const signed = x => `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(2)}`;
const pText = p => p < 0.001 ? "< 0.001" : p.toFixed(3);
const queryWords = text => text.toLowerCase().split(/\s+/).filter(w => w);
const interval = (low, high) => `95 % ${signed(low)} to ${signed(high)}`;

// ── a list that draws only the rows that are seen ──
class VirtualList {
  constructor({role, label, draw, choose, key, rowHeight = ROW}) {
    Object.assign(this, {draw, choose, rowHeight, count: 0, at: -1, pool: []});
    this.name = `tkx${VirtualList.made = (VirtualList.made || 0) + 1}`;
    this.space = h("div", {class: "tkx-space", role: "presentation"});
    this.el = h("div", {class: "tkx-list", role, tabindex: "0", "aria-label": label, scroll: () => this.paint(),
      click: e => { const row = e.target.closest("[data-at]"); if (row) choose(+row.dataset.at, e); },
      keydown: e => { if (!e.ctrlKey && !e.metaKey && !e.altKey && key(e)) e.preventDefault(); }}, this.space);
    new ResizeObserver(() => this.paint()).observe(this.el);
  }
  show(count, at) { this.count = count; this.at = at; this.space.style.height = `${count * this.rowHeight}px`; this.paint(); }
  reveal(at) {
    this.at = at;
    const top = at * this.rowHeight, seen = this.el.clientHeight;
    if (top < this.el.scrollTop) this.el.scrollTop = top;
    else if (top + this.rowHeight > this.el.scrollTop + seen) this.el.scrollTop = top + this.rowHeight - seen;
    this.paint();
  }
  paint() {
    const seen = Math.ceil(this.el.clientHeight / this.rowHeight), first = Math.max(0, Math.floor(this.el.scrollTop / this.rowHeight) - 4);
    const n = Math.max(0, Math.min(this.count - first, seen + 8, MOST_ROWS));
    while (this.pool.length < n) { const row = h("div", {class: "tkx-row"}); this.pool.push(row); this.space.append(row); }
    while (this.pool.length > n) this.pool.pop().remove();
    let active = "";
    this.pool.forEach((row, k) => {
      const at = first + k;
      row.style.transform = `translateY(${at * this.rowHeight}px)`;
      row.style.height = `${this.rowHeight}px`;
      row.dataset.at = at; row.id = `${this.name}-${at}`;
      row.setAttribute("aria-selected", String(at === this.at));
      if (at === this.at) active = row.id;
      this.draw(row, at);
    });
    if (active) this.el.setAttribute("aria-activedescendant", active); else this.el.removeAttribute("aria-activedescendant");
  }
  page() { return Math.max(1, Math.floor(this.el.clientHeight / this.rowHeight) - 1); }
}

