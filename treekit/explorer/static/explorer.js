// treekit's explorer: runs and questions, their trees, their nodes. One module for a notebook's widget, a saved page and a served one.
// All text of models and passages goes into text nodes; nothing is ever parsed as HTML. Nothing recurses, and lists draw only what is seen.

const HANGUL = /[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]/;
const ROW = 26, MOST_ROWS = 120, LONG = 20000, DEEPEST = 18;
const WIDE = 210, HIGH = 40, GAP = 34, DOWN = 52, NARROW = 132;  // of a node in the drawing, and between two; and of one where there is little room

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

function longText(text, marks) {
  const box = h("pre", {class: "tkx-text", tabindex: "0"});
  const put = end => {
    const parts = []; let at = 0;
    for (const [a, b] of marks || []) if (b <= end) { parts.push(text.slice(at, a), h("mark", {}, text.slice(a, b))); at = b; }
    fill(box, ...parts, text.slice(at, end));
  };
  put(LONG);
  if (text.length <= LONG) return box;
  const more = h("button", {class: "tkx-button", click: () => { put(text.length); more.remove(); }}, `show all ${text.length.toLocaleString("en")} characters`);
  return h("div", {}, box, more);
}

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

// ── a tree as outline and as drawing ──
class TreeView {
  constructor({label, select, enter}) {
    Object.assign(this, {select, enter, n: 0, selected: -1, round: null, flags: new Map(), matches: [], query: ""});
    this.list = new VirtualList({role: "tree", label, draw: (row, at) => this.row(row, at),
      choose: (at, e) => { const i = this.visible[at]; if (e.target.dataset.fold) this.fold(i); else this.pick(i); },
      key: e => this.key(e)});
    this.canvas = h("canvas", {class: "tkx-canvas", tabindex: "0", role: "application", "aria-label": `${label}, drawn; the outline has the same nodes`});
    this.zoom = {k: 1, x: 20, y: 20};
    this.pointer();
    new ResizeObserver(() => this.paint()).observe(this.canvas);
  }
  show(tree) {
    this.t = tree; this.n = tree.id.length; this.folded = new Uint8Array(this.n); this.flags = new Map();
    this.place = new Map(tree.id.map((id, i) => [id, i])); this.words = null; this.query = ""; this.matches = []; this.selected = -1;
    this.round = tree.search ? tree.search.rounds : null; this.fitted = false;
    this.children = new Int32Array(this.n); this.setSize = new Int32Array(this.n); this.setAt = new Int32Array(this.n);
    let roots = 0;
    for (let i = 0; i < this.n; i++) { const p = tree.parent[i]; this.setAt[i] = p < 0 ? ++roots : ++this.children[p]; }
    for (let i = 0; i < this.n; i++) this.setSize[i] = tree.parent[i] < 0 ? roots : this.children[tree.parent[i]];
    this.path(); this.project();
  }
  project() {
    const visible = [], {end} = this.t || {end: []};
    for (let i = 0; i < this.n;) { visible.push(i); i = this.folded[i] ? end[i] : i + 1; }
    this.visible = visible; this.at = new Int32Array(this.n).fill(-1);
    visible.forEach((i, v) => { this.at[i] = v; });
    this.placed = null;
    this.list.show(visible.length, this.selected < 0 ? -1 : this.at[this.selected]);
    this.paint();
  }
  fold(i, folded = !this.folded[i]) {
    if (this.t.end[i] === i + 1) return;
    this.folded[i] = folded ? 1 : 0;
    if (folded && this.selected > i && this.selected < this.t.end[i]) this.pick(i);
    this.project();
  }
  foldAll(folded) {
    for (let i = 0; i < this.n; i++) this.folded[i] = folded && this.t.parent[i] >= 0 && this.t.end[i] > i + 1 ? 1 : 0;
    if (folded && this.selected >= 0) { let i = this.selected; while (this.t.parent[i] >= 0 && this.t.parent[this.t.parent[i]] >= 0) i = this.t.parent[i]; this.selected = i; }
    this.project();
    if (this.selected >= 0) this.list.reveal(this.at[this.selected]);
  }
  pick(i, tell = true) {
    if (i < 0 || i >= this.n) return;
    this.picks = (this.picks || 0) + 1;
    let opened = false;
    for (let p = this.t.parent[i]; p >= 0; p = this.t.parent[p]) if (this.folded[p]) { this.folded[p] = 0; opened = true; }
    this.selected = i;
    if (opened) this.project();
    this.list.reveal(this.at[i]);
    this.follow(); this.paint();
    if (tell) this.select(i);
  }
  key(e) {
    if (!this.n) return false;
    const v = this.selected < 0 ? -1 : this.at[this.selected], last = this.visible.length - 1, i = this.selected;
    const to = w => { this.pick(this.visible[Math.max(0, Math.min(last, w))]); return true; };
    switch (e.key) {
      case "ArrowDown": return to(v + 1);
      case "ArrowUp": return to(v - 1);
      case "PageDown": return to(v + this.list.page());
      case "PageUp": return to(v - this.list.page());
      case "Home": return to(0);
      case "End": return to(last);
      case "ArrowRight": if (i >= 0) { if (this.folded[i]) this.fold(i, false); else if (this.children[i]) this.pick(i + 1); } return true;
      case "ArrowLeft": if (i >= 0) { if (this.children[i] && !this.folded[i]) this.fold(i, true); else if (this.t.parent[i] >= 0) this.pick(this.t.parent[i]); } return true;
      case " ": if (i >= 0) this.fold(i); return true;
      case "Enter": if (i >= 0) this.enter(i); return true;
      case "*": this.foldAll(false); return true;
      case "n": this.next(1); return true;
      case "N": this.next(-1); return true;
      case "+": this.scale(1.25); return true;
      case "-": this.scale(0.8); return true;
      case "0": this.fit(); return true;
    }
    return false;
  }
  find(query) {
    this.query = query.trim().toLowerCase();
    if (!this.words) this.words = this.t.text.map((text, i) => `${this.t.kind[i]} ${text} ${this.t.gloss ? this.t.gloss[i] : ""}`.toLowerCase());
    this.matches = this.query ? this.words.flatMap((w, i) => w.includes(this.query) ? [i] : []) : [];
    this.matched = new Set(this.matches);
    this.list.paint(); this.paint();
    return this.matches.length;
  }
  next(step) {
    if (!this.matches.length) return;
    const later = step > 0 ? this.matches.find(i => i > this.selected) : this.matches.findLast(i => i < this.selected);
    this.pick(later ?? (step > 0 ? this.matches[0] : this.matches[this.matches.length - 1]));
  }
  // ARISE: visits and value after a round
  numbers(i) {
    const s = this.t.search, own = s && s.changes[i];
    if (!own) return null;
    let known = null;
    for (const c of own) { if (c[0] > this.round) break; known = c; }
    return known;
  }
  path() {
    const s = this.t && this.t.search; this.best = new Set(); this.notYet = new Set();
    if (!s) return;
    for (const [round, nodes] of s.paths) if (round <= this.round) this.best = new Set(nodes);
    for (const i of Object.keys(s.changes)) if (!this.numbers(+i)) this.notYet.add(+i);
  }
  setRound(round) { this.round = round; this.path(); this.list.paint(); this.paint(); }
  markOf(i) {
    if (!this.t.search || !this.t.search.changes[i]) return this.t.mark[i];
    const c = this.numbers(i), risk = this.t.search.risk[i];
    return c ? `N ${c[1]} · Q ${c[2].toFixed(2)}${risk == null ? "" : ` · risk ${risk.toFixed(2)}`}` : "not yet there";
  }
  row(row, at) {
    const i = this.visible[at], t = this.t, depth = t.depth[i], children = this.children[i];
    row.setAttribute("role", "treeitem"); row.setAttribute("aria-level", depth + 1);
    row.setAttribute("aria-setsize", this.setSize[i]); row.setAttribute("aria-posinset", this.setAt[i]);
    if (children) row.setAttribute("aria-expanded", String(!this.folded[i])); else row.removeAttribute("aria-expanded");
    row.className = "tkx-row" + (this.best.has(i) ? " tkx-best" : "") + (this.notYet.has(i) ? " tkx-dim" : "")
      + (this.matched && this.matched.has(i) ? " tkx-match" : "") + (this.flags.has(i) ? ` tkx-flag` : "");
    row.style.paddingLeft = `${4 + Math.min(depth, DEEPEST) * 14}px`;
    fill(row, h("span", {class: "tkx-twisty", "data-fold": children ? "1" : null, "aria-hidden": "true"}, children ? (this.folded[i] ? "▸" : "▾") : "·"),
      depth > DEEPEST && h("span", {class: "tkx-deep"}, `${depth}`), h("span", {class: "tkx-kind"}, t.kind[i]),
      this.flags.has(i) && h("span", {class: "tkx-badge"}, this.flags.get(i)), h("span", {class: "tkx-line"}, t.text[i] || "(no text)", t.gloss && t.gloss[i] ? h("i", {class: "tkx-gloss", lang: "en"}, ` ${t.gloss[i]}`) : ""),
      t.notes[i] ? h("span", {class: "tkx-note", title: "notes"}, "!") : null, h("span", {class: "tkx-mark"}, this.markOf(i)));
  }
  // the drawing
  layout() {
    this.wide = this.canvas.clientWidth && this.canvas.clientWidth < 480 ? NARROW : WIDE; this.across = this.wide + GAP;
    const {parent, depth} = this.t, x = new Float64Array(this.n), y = new Float64Array(this.n), first = new Float64Array(this.n).fill(-1);
    let leaves = 0;
    for (let v = 0; v < this.visible.length; v++) { const i = this.visible[v]; x[i] = depth[i] * this.across; if (!this.children[i] || this.folded[i]) y[i] = leaves++ * DOWN; }
    const last = new Float64Array(this.n);
    for (let v = this.visible.length - 1; v >= 0; v--) {
      const i = this.visible[v], p = parent[i];
      if (this.children[i] && !this.folded[i]) y[i] = (first[i] + last[i]) / 2;
      if (p >= 0) { if (first[p] < 0) last[p] = y[i]; first[p] = y[i]; }
    }
    this.placed = {x, y, width: this.visible.reduce((m, i) => Math.max(m, x[i]), 0) + this.wide + (this.t.links.length ? 30 : 0), height: Math.max(1, leaves) * DOWN};
  }
  fit() {
    if (!this.n || !this.canvas.clientWidth) return;
    if (!this.placed) this.layout();
    const k = Math.min(1.2, this.canvas.clientWidth / (this.placed.width + 40), this.canvas.clientHeight / (this.placed.height + 40));
    this.zoom = {k: Math.max(0.02, k), x: 20, y: Math.max(10, (this.canvas.clientHeight - this.placed.height * k) / 2)};
    if (k < 0.6) {  // as many whole columns as can be read
      const room = this.canvas.clientWidth - 40, size = columns => room / (columns * this.across - GAP), more = Math.floor((room / 0.8 + GAP) / this.across) + 1;
      this.zoom.k = size(more) > 0.64 ? size(more) : 0.8; this.lookAt(Math.max(0, this.selected));
    }
    this.paint();
  }
  // a node, with as much of its way from the root as there is room for: whole columns, never half a box on the left
  lookAt(i) {
    const z = this.zoom, {x, y} = this.placed, room = this.canvas.clientWidth, tall = this.canvas.clientHeight, column = this.across * z.k;
    const over = Math.max(0, (x[i] + this.wide) * z.k + 40 - room), skipped = Math.min(Math.ceil(over / column - 1e-6), this.t.depth[i]);
    z.x = 20 - skipped * column;
    let low = y[i], high = y[i];  // up, as long as it fits
    for (let p = this.t.parent[i]; p >= 0 && this.t.depth[p] >= skipped; p = this.t.parent[p]) {
      if ((Math.max(high, y[p]) + HIGH - Math.min(low, y[p])) * z.k + 40 > tall) break;
      low = Math.min(low, y[p]); high = Math.max(high, y[p]);
    }
    z.y = tall / 2 - (low + high + HIGH) / 2 * z.k;
    const size = this.placed.height * z.k;  // no empty room beside a tree that goes on elsewhere
    z.y = size + 40 <= tall ? (tall - size) / 2 : Math.min(20, Math.max(tall - 20 - size, z.y));
  }
  scale(by, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const z = this.zoom, k = Math.min(4, Math.max(0.02, z.k * by));
    this.zoom = {k, x: x - (x - z.x) * k / z.k, y: y - (y - z.y) * k / z.k}; this.paint();
  }
  follow() {
    if (!this.canvas.clientWidth || this.selected < 0) return;
    if (!this.placed) this.layout();
    const z = this.zoom, x = this.placed.x[this.selected] * z.k + z.x, y = this.placed.y[this.selected] * z.k + z.y;
    if (x < 0 || x + this.wide * z.k > this.canvas.clientWidth || y < 0 || y + HIGH * z.k > this.canvas.clientHeight) this.lookAt(this.selected);
  }
  paint() { if (!this.waiting) { this.waiting = true; requestAnimationFrame(() => { this.waiting = false; this.drawing(); }); } }
  drawing() {
    const c = this.canvas, w = c.clientWidth, hh = c.clientHeight;
    if (!w || !hh || !this.n) return;
    if (this.placed && (w < 480) !== (this.wide === NARROW)) { this.placed = null; this.fitted = false; }
    if (!this.placed) this.layout();
    if (!this.fitted) { this.fitted = true; this.fit(); }
    const ratio = window.devicePixelRatio || 1, g = c.getContext("2d"), style = getComputedStyle(c), inks = {}, ink = v => inks[v] ??= style.getPropertyValue(v).trim();
    if (c.width !== Math.round(w * ratio) || c.height !== Math.round(hh * ratio)) { c.width = Math.round(w * ratio); c.height = Math.round(hh * ratio); }
    const {k, x: dx, y: dy} = this.zoom, {x, y, width} = this.placed, {parent} = this.t, wide = this.wide;
    g.setTransform(ratio, 0, 0, ratio, 0, 0); g.fillStyle = ink("--tkx-paper"); g.fillRect(0, 0, w, hh);
    g.setTransform(ratio * k, 0, 0, ratio * k, ratio * dx, ratio * dy);
    const left = -dx / k - 400, right = (w - dx) / k + 400, top = -dy / k - 40, bottom = (hh - dy) / k + 40;
    const seen = i => x[i] > left && x[i] < right && y[i] > top && y[i] < bottom;
    const line = (a, b, dashed) => { g.setLineDash(dashed ? [4, 4] : []); g.beginPath(); const ax = x[a] + wide, bx = x[b] + (dashed ? wide : 0), out = dashed ? 34 : 16;
      g.moveTo(ax, y[a] + HIGH / 2); g.bezierCurveTo(ax + out, y[a] + HIGH / 2, bx + (dashed ? out : -out), y[b] + HIGH / 2, bx, y[b] + HIGH / 2); g.stroke(); };
    for (const i of this.visible) {
      const p = parent[i];
      if (p < 0 || (y[i] < top && y[p] < top) || (y[i] > bottom && y[p] > bottom) || x[i] < left || x[p] > right) continue;
      g.lineWidth = this.best.has(i) ? 3 : 1; g.strokeStyle = ink(this.best.has(i) ? "--tkx-strong" : "--tkx-edge"); line(p, i);
    }
    g.lineWidth = 1.5; g.strokeStyle = ink("--tkx-strong");
    for (const [a, b] of this.t.links) if (this.at[a] >= 0 && this.at[b] >= 0 && (seen(a) || seen(b))) line(a, b, true);
    g.setLineDash([]); g.textBaseline = "middle"; const face = 'system-ui, "TreekitKorean", sans-serif', plain = `12px ${face}`, small = `10.5px ${face}`;
    for (const i of this.visible) {
      if (!seen(i)) continue;
      g.globalAlpha = this.notYet.has(i) ? 0.35 : 1;
      g.fillStyle = ink(i === this.selected ? "--tkx-chosen" : this.matched && this.matched.has(i) ? "--tkx-found" : "--tkx-card"); g.fillRect(x[i], y[i], wide, HIGH);
      g.lineWidth = this.best.has(i) || i === this.selected ? 2.5 : 1; g.strokeStyle = ink(this.flags.has(i) ? "--tkx-wrong" : i === this.selected || this.best.has(i) ? "--tkx-strong" : "--tkx-edge");
      g.strokeRect(x[i], y[i], wide, HIGH);
      if (k < 0.3) continue;
      g.save(); g.beginPath(); g.rect(x[i], y[i], wide - (this.children[i] ? 22 : 6), HIGH); g.clip();
      g.fillStyle = ink("--tkx-soft"); g.font = small; g.fillText(`${this.flags.has(i) ? `✗ ${this.flags.get(i)} · ` : ""}${[this.t.kind[i], this.markOf(i)].filter(Boolean).join(" · ")}`.slice(0, 60), x[i] + 6, y[i] + 12);
      g.fillStyle = ink("--tkx-ink"); g.font = plain; g.fillText((this.t.text[i] || "(no text)").slice(0, 60), x[i] + 6, y[i] + 28);
      g.restore(); g.fillStyle = ink("--tkx-ink"); g.font = plain;
      if (this.children[i]) { g.fillText(this.folded[i] ? "+" : "−", x[i] + wide - 15, y[i] + HIGH / 2); }
    }
    g.globalAlpha = 1;
    this.beyond(g, ink, w, Math.round((20 - dx) / (this.across * k) - 0.2), Math.ceil((width * k + dx - w) / (this.across * k) - 0.2));
  }
  beyond(g, ink, w, left, right) {  // what stands outside is said
    const ratio = window.devicePixelRatio || 1, said = (n, text, at, align) => { if (n < 1) return; g.textAlign = align;
      g.fillStyle = ink("--tkx-paper"); g.fillRect(align === "left" ? 2 : at - g.measureText(text).width - 4, 3, g.measureText(text).width + 8, 16); g.fillStyle = ink("--tkx-soft"); g.fillText(text, at, 12); };
    g.setTransform(ratio, 0, 0, ratio, 0, 0); g.font = '11px system-ui, sans-serif';
    said(left, `‹ ${plural(left, "level")} nearer the root`, 6, "left"); said(right, `${plural(right, "level")} deeper ›`, w - 6, "right"); g.textAlign = "left";
  }
  hit(e) {
    const box = this.canvas.getBoundingClientRect(), {k, x: dx, y: dy} = this.zoom;
    const px = (e.clientX - box.left - dx) / k, py = (e.clientY - box.top - dy) / k;
    const i = this.visible.find(i => px >= this.placed.x[i] && px <= this.placed.x[i] + this.wide && py >= this.placed.y[i] && py <= this.placed.y[i] + HIGH);
    return i === undefined ? null : [i, px - this.placed.x[i] > this.wide - 20];
  }
  pointer() {
    let from = null, moved = false;
    const c = this.canvas;
    c.addEventListener("pointerdown", e => { from = [e.clientX - this.zoom.x, e.clientY - this.zoom.y]; moved = false; c.setPointerCapture(e.pointerId); });
    c.addEventListener("pointermove", e => { if (!from) return;
      if (Math.abs(e.clientX - from[0] - this.zoom.x) + Math.abs(e.clientY - from[1] - this.zoom.y) > 3) moved = true;
      if (moved) { this.zoom.x = e.clientX - from[0]; this.zoom.y = e.clientY - from[1]; this.paint(); } });
    c.addEventListener("pointerup", e => { from = null; if (moved || !this.placed) return; const at = this.hit(e); if (at) { if (at[1] && this.children[at[0]]) this.fold(at[0]); else this.pick(at[0]); } });
    c.addEventListener("wheel", e => { if (!e.ctrlKey && document.activeElement !== c) return; e.preventDefault(); const box = c.getBoundingClientRect(); this.scale(Math.exp(-e.deltaY / 400), e.clientX - box.left, e.clientY - box.top); }, {passive: false});
    c.addEventListener("keydown", e => { if (!e.ctrlKey && !e.metaKey && this.key(e)) e.preventDefault(); });
  }
}

// ── the explorer ──
export class Explorer {
  constructor(el, source, options = {}) {
    Object.assign(this, {source, options, runs: [], rows: [], shown: [], at: -1, run: null, other: null, asked: 0, can: []});
    this.build(options); this.el.explorer = this; el.append(this.el);
    this.ready = this.start(options);
  }
  async get(...path) { const found = await this.source.get(path.map(encodeURIComponent).join("/")); this.glyphs(found); return found; }
  // Hangul on a machine without a Korean font: fetched when the first of it comes; a saved page has its letters in its style
  glyphs(found) { if (!this.options.font && HANGUL.test(JSON.stringify(found))) { this.options = {...this.options, font: true}; this.letters(); } }
  async letters() {
    let made; try { made = await this.source.get("font"); } catch { return; }
    if (made.note) { this.missing(made.note); return; }
    const face = new FontFace("TreekitKorean", Uint8Array.from(atob(made.font), c => c.charCodeAt(0)), {unicodeRange: made.range});
    document.fonts.add(await face.load()); this.tree.paint();
  }
  missing(note) { this.fontNote.hidden = false; fill(this.fontNote, `! ${note}`); }
  say(text, wrong) { fill(this.status, text); this.status.classList.toggle("tkx-error", !!wrong); }
  async trying(work) { try { return await work(); } catch (e) { this.say(String(e && e.message || e), true); } }

  build(options) {
    const select = (label, change) => h("select", {"aria-label": label, change});
    this.runBox = select("Run", () => this.openRun(this.runBox.value));
    this.groupBox = select("Runs listed by", () => this.offer());
    fill(this.groupBox, ...[["", "newest"], ["artefact", "table or figure"], ["method", "method"]].map(([v, t]) => h("option", {value: v}, t)));
    this.otherBox = select("Compare with", () => this.compareWith(...(this.others[this.otherBox.value] || [""])));
    this.fontNote = h("p", {class: "tkx-warn", hidden: true});
    this.datasetBox = select("Data set", () => this.filter()); this.methodBox = select("Method", () => this.filter());
    this.verdictBox = select("Verdict", () => this.filter()); this.sortBox = select("Sorted by", () => this.filter());
    this.searchBox = h("input", {type: "search", "aria-label": "Filter questions", placeholder: "filter questions", input: () => this.filter()});
    this.counts = h("p", {class: "tkx-small"});
    this.questions = new VirtualList({role: "listbox", label: "Questions", rowHeight: 46, draw: (row, at) => this.questionRow(row, at),
      choose: at => this.openRow(this.shown[at]), key: e => this.questionKey(e)});
    this.flipsLine = h("p", {class: "tkx-small", role: "status"});
    this.left = h("section", {class: "tkx-pane tkx-left", "aria-label": "Runs and questions"},
      this.groupField = h("label", {class: "tkx-field"}, "Runs by ", this.groupBox), h("label", {class: "tkx-field"}, "Run ", this.runBox),
      this.benchButton = h("button", {class: "tkx-button", "aria-expanded": "false", click: () => this.pane(this.el.dataset.pane === "switches" ? "questions" : "switches")}, "Switches…"), this.fontNote, this.otherField = h("label", {class: "tkx-field"}, "Compare with ", this.otherBox), this.flipsLine,
      h("div", {class: "tkx-filters"}, this.datasetBox, this.methodBox, this.verdictBox, this.sortBox), this.searchBox, this.counts, this.questions.el);
    this.head = h("header", {class: "tkx-head"});
    this.tree = new TreeView({label: "Tree", select: i => this.openNode(i), enter: () => this.pane("node")});
    this.second = new TreeView({label: "The other run's tree", select: i => this.openNode(i, true), enter: () => this.pane("node")});
    this.nodeSearch = h("input", {type: "search", "aria-label": "Search the tree", placeholder: "search the tree  ( / )", input: () => this.search(),
      keydown: e => { if (e.key === "Enter") { this.tree.next(e.shiftKey ? -1 : 1); } else if (e.key === "Escape") this.tree.list.el.focus(); }});
    this.found = h("span", {class: "tkx-small", role: "status"});
    this.viewButton = h("button", {class: "tkx-button", "aria-pressed": "false", click: () => this.view(!this.drawn)}, "Drawing");
    const button = (text, click) => h("button", {class: "tkx-button", click}, text);
    this.fitButtons = h("span", {class: "tkx-zoom"}, button("Fit", () => this.tree.fit()), button("+", () => this.tree.scale(1.25)), button("−", () => this.tree.scale(0.8)));
    [...this.fitButtons.children].slice(1).forEach((b, i) => b.setAttribute("aria-label", ["Zoom in", "Zoom out"][i]));
    this.slider = h("input", {type: "range", min: "0", "aria-label": "Iteration", input: () => this.round(+this.slider.value),
      keydown: e => { const step = {ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1}[e.key]; if (!step) return;  // JupyterLab takes these keys' own effect away
        e.preventDefault(); this.slider.value = +this.slider.value + step; this.round(+this.slider.value); }});
    this.sliderText = h("output", {}); this.sliderBox = h("label", {class: "tkx-slider"}, "Iteration ", this.slider, this.sliderText);
    this.trees = h("div", {class: "tkx-trees"}, h("div", {class: "tkx-one"}, this.tree.list.el, this.tree.canvas), this.secondBox = h("div", {class: "tkx-one tkx-second"}, this.secondHead = h("p", {class: "tkx-small"}), this.second.list.el));
    this.middle = h("section", {class: "tkx-pane tkx-middle", "aria-label": "Question and tree"}, this.head,
      h("div", {class: "tkx-tools"}, this.nodeSearch, this.found, button("Unfold", () => this.tree.foldAll(false)), button("Fold", () => this.tree.foldAll(true)), this.viewButton, this.fitButtons), this.sliderBox, this.trees);
    this.right = h("section", {class: "tkx-pane tkx-right", "aria-label": "Node", tabindex: "0"});
    this.bench = new Bench(this);
    this.status = h("p", {class: "tkx-status", role: "status"});
    this.tabs = h("nav", {class: "tkx-tabs", "aria-label": "Panes"}, ...[["questions", "Questions"], ["tree", "Tree"], ["node", "Node"], ["switches", "Switches"]].map(([name, text]) => h("button", {class: "tkx-button", "data-pane": name, click: () => this.pane(name)}, text)));
    this.el = h("div", {class: `tkx ${options.page ? "tkx-page" : ""}`, "data-pane": "questions", "data-lm-suppress-shortcuts": "true", keydown: e => this.keys(e)}, this.tabs, h(options.page ? "main" : "div", {class: "tkx-panes"}, this.left, this.middle, this.right, this.bench.el), this.status);
    this.view(false); this.pane("questions");
    fill(this.right, h("p", {class: "tkx-small"}, "Choose a question, then a node. Keys: arrows walk and fold, Enter opens, / searches, n and N go through what was found, e goes to the first wrong node, d draws, s opens the switches."));
  }
  pane(name) { this.el.dataset.pane = name; for (const b of this.tabs.children) b.setAttribute("aria-pressed", String(b.dataset.pane === name)); if (this.drawn) this.tree.paint();
    this.benchButton.setAttribute("aria-expanded", String(name === "switches")); if (name === "switches") this.bench.open(); }
  view(drawn) {
    this.drawn = drawn; this.viewButton.setAttribute("aria-pressed", String(drawn)); this.viewButton.textContent = drawn ? "Outline" : "Drawing";
    this.tree.list.el.hidden = drawn; this.tree.canvas.hidden = !drawn; this.fitButtons.hidden = !drawn; this.tree.list.paint(); this.tree.paint();
  }
  keys(e) {
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "/") { this.pane("tree"); this.nodeSearch.focus(); e.preventDefault(); }
    else if (e.key === "d") this.view(!this.drawn);
    else if (e.key === "e") this.toError();
    else if (e.key === "s") { this.pane("switches"); this.bench.el.focus(); }
    else if (e.key === "Escape" && this.el.dataset.pane === "switches") { this.pane("questions"); this.benchButton.focus(); }
  }
  async start(options) {
    if (options.note) this.missing(options.note);
    await this.trying(async () => {
      const known = await this.get("runs");
      this.can = known.can || []; this.runs = known.runs;
      if (!this.runs.length) { this.say("No run is kept here yet: run `treekit reproduce`, or treekit.experiments.run in a notebook."); return; }
      this.offer(this.runs[0].name);
      await this.openRun(options.run || this.runs[0].name);
      if (options.other) await this.compareWith(options.other);
      if (options.row != null) await this.openRow(options.row);
    });
  }
  offer() {
    const option = r => h("option", {value: r.name}, `${r.label} · ${r.name.slice(0, 6)}`), by = this.groupBox.value, at = this.runBox.value;
    const keys = {artefact: r => [r.about.artefact || "no table or figure"], method: r => r.methods}[by], groups = new Map();
    if (keys) for (const r of this.runs) for (const key of keys(r)) groups.set(key, [...(groups.get(key) || []), r]);
    fill(this.runBox, ...keys ? [...groups].sort(([a], [b]) => a < b ? -1 : 1).map(([key, own]) => h("optgroup", {label: key}, ...own.map(option))) : this.runs.map(option));
    if (at) this.runBox.value = at;
    this.groupField.hidden = this.runs.length < 3;
    // every run, and every method of a run that has several
    this.others = Object.assign(Object.create(null), {});
    const entry = (key, text, ...what) => { this.others[key] = what; return h("option", {value: key}, text); };
    const own = this.run ? this.run.head.methods : [];
    fill(this.otherBox, h("option", {value: ""}, "nothing"), ...this.runs.flatMap(r => r.methods.length < 2 && own.length < 2 ? [entry(r.name, `${r.label} · ${r.name.slice(0, 6)}`, r.name)]
      : [h("optgroup", {label: `${r.label} · ${r.name.slice(0, 6)}`}, ...r.methods.map(m => entry(`${r.name}/${m}`, m, r.name, null, m)))]));
    this.otherField.hidden = this.runs.length < 2 && own.length < 2;
  }
  async openRun(name) {
    await this.trying(async () => {
      const found = await this.get("run", name);
      this.run = found; this.rows = found.rows; this.at = -1; this.other = null; this.flips = null; this.runBox.value = name; this.offer(); this.otherBox.value = "";
      const options = (box, all, values) => fill(box, h("option", {value: ""}, all), ...values.map(v => h("option", {value: v}, v)));
      options(this.datasetBox, "all data sets", [...new Set(this.rows.map(r => r.dataset))]);
      options(this.methodBox, "all methods", [...new Set(this.rows.map(r => r.method))]);
      this.verdicts();
      fill(this.sortBox, ...[["", "as they were asked"], ["value", "wrong first"], ["kind", "first wrong node"], ["tokens", "most tokens"], ["words", "longest question"], ["nodes", "largest tree"]].map(([v, t]) => h("option", {value: v}, t)));
      this.secondBox.hidden = true; fill(this.flipsLine); this.filter();
      if (this.shown.length) await this.openRow(this.shown[0], false);
    });
  }
  verdicts() {
    const kinds = [...new Set(this.rows.map(r => r.wrong.kind).filter(k => k))];
    const flips = this.flips ? ["gained", "lost", "without partner"] : [];
    fill(this.verdictBox, h("option", {value: ""}, "right and wrong"), ...["right", "wrong", ...kinds.map(k => `wrong: ${k}`), ...flips].map(v => h("option", {value: v}, v)));
  }
  filter() {
    const text = this.searchBox.value.trim().toLowerCase(), verdict = this.verdictBox.value, sort = this.sortBox.value;
    const fits = r => (!this.datasetBox.value || r.dataset === this.datasetBox.value) && (!this.methodBox.value || r.method === this.methodBox.value)
      && (!text || `${r.question} ${r.answer} ${r.golds.join(" ")} ${r.id} ${r.gloss ? r.gloss.question : ""}`.toLowerCase().includes(text))
      && (!verdict || (verdict === "right" ? r.value >= 1 && r.value != null : verdict === "wrong" ? r.value != null && r.value < 1 : this.flips && this.flips[verdict] ? this.flips[verdict].has(r.i) : `wrong: ${r.wrong.kind}` === verdict));
    const key = {value: r => r.value == null ? 2 : r.value, kind: r => r.wrong.kind || "~", tokens: r => -r.tokens, words: r => -r.words, nodes: r => -r.nodes}[sort];
    const rows = this.rows.filter(fits);
    if (key) rows.sort((a, b) => key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a.i - b.i);
    this.shown = rows.map(r => r.i);
    const judged = rows.filter(r => r.value != null), right = judged.filter(r => r.value >= 1).length;
    fill(this.counts, `${plural(rows.length, "answer")}, ${right} of ${judged.length} right, ${plural(rows.reduce((s, r) => s + r.calls, 0), "call")}, ${plural(rows.reduce((s, r) => s + r.tokens, 0), "token")}`);
    this.questions.show(this.shown.length, this.shown.indexOf(this.at));
  }
  questionRow(row, at) {
    const r = this.rows[this.shown[at]], verdict = this.verdict(r);
    row.setAttribute("role", "option"); row.setAttribute("aria-setsize", this.shown.length); row.setAttribute("aria-posinset", at + 1);
    fill(row, h("span", {class: `tkx-verdict tkx-is-${verdict[1]}`}, verdict[0]), h("span", {class: "tkx-two"}, h("span", {class: "tkx-line"}, r.question),
      h("span", {class: "tkx-small tkx-line"}, `${r.method} · ${r.dataset}${r.wrong.kind ? ` · ${r.wrong.kind}` : ""} · ${plural(r.calls, "call")}`)));
  }
  verdict(r) { return r.value == null ? ["–", "open"] : r.value >= 1 ? ["✓", "right"] : r.value > 0 ? ["◐", "part"] : ["✗", "wrong"]; }
  questionKey(e) {
    const at = this.shown.indexOf(this.at), last = this.shown.length - 1, step = {ArrowDown: 1, ArrowUp: -1, PageDown: this.questions.page(), PageUp: -this.questions.page(), Home: -1e9, End: 1e9}[e.key];
    if (step) { this.openRow(this.shown[Math.max(0, Math.min(last, at + step))], false); return true; }
    if (e.key === "Enter" || e.key === "ArrowRight") { this.pane("tree"); (this.drawn ? this.tree.canvas : this.tree.list.el).focus(); return true; }
    return false;
  }
  async openRow(i, go = true) {
    if (i == null) return;
    const asked = ++this.asked;
    await this.trying(async () => {
      this.at = i; this.questions.at = this.shown.indexOf(i); this.questions.reveal(Math.max(0, this.questions.at));
      const tree = await this.get("tree", this.run.name, i);
      if (asked !== this.asked) return;
      this.row = this.rows[i]; this.tree.show(tree); this.flagged(this.tree, this.row.wrong); this.header();
      this.nodeSearch.value = ""; fill(this.found);
      const rounds = tree.search ? tree.search.rounds : 0;
      this.sliderBox.hidden = !rounds; this.slider.max = rounds; this.slider.value = rounds; this.round(rounds);
      if (go) this.pane("tree");
      const wrong = this.row.wrong.node != null ? this.tree.place.get(this.row.wrong.node) : undefined;
      this.tree.pick(wrong ?? 0);
      const picks = this.tree.picks;  // who has moved on meanwhile stays where they are
      await this.align();
      if (asked === this.asked && this.parted != null && picks === this.tree.picks) this.tree.pick(this.parted);
    });
  }
  flagged(view, wrong) { if (wrong.node != null && view.place.has(wrong.node)) view.flags.set(view.place.get(wrong.node), wrong.kind); view.list.paint(); }
  round(n) {
    if (!this.tree.t) return;
    this.tree.setRound(n); fill(this.sliderText, ` ${n} of ${this.slider.max}`); this.slider.setAttribute("aria-valuetext", `${n} of ${this.slider.max}`);
  }
  header(span) {
    const r = this.row, v = this.verdict(r), asked = span ? [r.question.slice(0, span[0]), h("mark", {}, r.question.slice(...span)), r.question.slice(span[1])] : [r.question];
    const error = r.wrong.kind && (r.wrong.node != null ? h("button", {class: "tkx-button", click: () => this.toError()}, `first wrong node: ${r.wrong.kind}`) : h("span", {class: "tkx-small"}, `${r.wrong.kind}: `));
    const gloss = text => text ? h("i", {class: "tkx-gloss", lang: "en"}, ` ${text}`) : null, said = r.gloss || {};
    fill(this.head, h("h2", {}, ...asked), said.question ? h("p", {}, gloss(said.question)) : null, h("p", {}, h("b", {}, "answer "), h("span", {class: `tkx-verdict tkx-is-${v[1]}`}, v[0]), " ", r.answer || r.error || "(none)", gloss(said.answer)),
      h("p", {}, h("b", {}, "gold "), r.golds.join("; ") || "–", gloss(said.golds)), (error || r.wrong.why) && h("p", {class: "tkx-small"}, error, " ", r.wrong.why),
      r.steps.length ? h("details", {class: "tkx-small"}, h("summary", {}, `gold steps: ${r.steps.length}`), h("ol", {}, ...r.steps.map(([q, a]) => h("li", {}, `${q} → ${a}`)))) : null,
      h("p", {class: "tkx-small"}, `${r.method} · ${r.dataset} · ${r.id} · ${plural(r.calls, "call")} · ${plural(r.tokens, "token")} · ${dollars(r.dollars)} · ${r.seconds} s`),
      ...this.tree.t.remarks.map(n => h("p", {class: "tkx-small"}, `! ${n}`)));
  }
  toError() {
    const id = this.row && this.row.wrong.node;
    if (id == null || !this.tree.place.has(id)) return;
    this.pane("tree"); this.tree.pick(this.tree.place.get(id)); this.tree.list.el.focus();
  }
  search() { const n = this.tree.find(this.nodeSearch.value); fill(this.found, this.nodeSearch.value ? plural(n, "node") : ""); }

  // ── a node ──
  async openNode(i, second) {
    const view = second ? this.second : this.tree, run = second ? this.other.name : this.run.name, row = second ? this.partner : this.at, asked = this.nodeAsked = (this.nodeAsked || 0) + 1;
    if (!second) this.header(view.t.spans[i]);
    const which = JSON.stringify([run, row, view.t.id[i], !!second, view.round, this.can]);
    if (which === this.nodeShown) return;  // what is open in it stays open
    await this.trying(async () => {
      const node = await this.get("node", run, row, view.t.id[i]);
      if (asked === this.nodeAsked) { this.showNode(node, view, i, second); this.nodeShown = which; }
    });
  }
  showNode(node, view, i, second) {
    const t = view.t, kids = [];
    for (let c = i + 1; c < t.end[i] && kids.length < 20; c = t.end[c]) kids.push(c);
    const go = (j, text) => h("button", {class: "tkx-button", click: () => view.pick(j)}, text);
    const part = (title, ...inside) => inside.length ? h("section", {}, h("h3", {}, title), ...inside) : null;
    const gloss = text => text ? h("p", {class: "tkx-gloss", lang: "en"}, text) : null, said = node.gloss || {};
    const facts = node.facts.map(([name, text]) => h("div", {class: text.length < 50 && !text.includes("\n") ? "tkx-fact tkx-brief" : "tkx-fact"}, h("h4", {}, name), longText(text), gloss((said.facts || {})[name])));
    const run = second ? this.other.name : this.run.name, at = second ? this.partner : this.at;
    const parsed = node.parsed ? h("div", {class: "tkx-parse"}, h("p", {class: "tkx-small"}, "reading it…")) : null;  // as high before it is read as after: nothing below moves
    if (parsed) this.trying(() => this.parses(parsed, run, at, node.id, second));
    fill(this.right, h("h2", {}, second ? "other run: " : "", node.kind), longText(node.text), gloss(said.text), h("p", {class: "tkx-small"}, view.markOf(i)),
      h("p", {class: "tkx-near"}, t.parent[i] >= 0 ? go(t.parent[i], "↑ above") : null, ...kids.map((c, n) => go(c, `↓ ${n + 1}`))),
      ...node.notes.map(n => h("p", {class: "tkx-warn"}, `! ${n}`)),
      parsed && part("Dependency tree", parsed), part(`Passages (${node.hits.length})`, ...node.hits.length ? node.hits.map((hit, n) => this.passage(hit, n, node, second)) : []),
      part("What was read", ...facts), node.document && this.documentOf(node.document), !second && this.forkOfRoute(node.routed),
      part(`Calls (${node.calls.length})`, ...node.calls.map((call, n) => this.call(call, n, second))),
      ...node.thinking.map(text => part("Thinking", longText(text))), !second && this.forkOfNode(node));
    this.right.scrollTop = 0;
  }
  passage(hit, n, node, second) {
    const bar = hit.informativeness != null ? h("span", {class: "tkx-bar", role: "img", "aria-label": `informativeness ${hit.informativeness}`}, h("i", {style: `width:${Math.max(0, Math.min(1, hit.informativeness)) * 60}px`})) : null;
    const keep = !second && this.can.includes("fork") ? h("input", {type: "checkbox", checked: true, "data-passage": hit.id, "aria-label": `keep passage ${n + 1} in a fork`}) : null;
    const more = [hit.note, ...(hit.entities || []).map(e => `${e.name}: importance ${e.importance}, rank ${e.rank}`)].filter(Boolean);
    return h("div", {class: "tkx-hit"}, keep, h("details", {class: "tkx-passage"}, h("summary", {}, `${n + 1}. ${hit.title || hit.id} `, hit.gold && h("span", {class: "tkx-badge tkx-gold"}, "supporting"), hit.marks.length ? h("span", {class: "tkx-badge tkx-gold"}, "gold answer") : null,
      h("span", {class: "tkx-small"}, ` score ${hit.score}`), bar, hit.informativeness != null && h("span", {class: "tkx-small"}, ` informativeness ${hit.informativeness}`)),
      hit.gloss ? h("p", {class: "tkx-gloss", lang: "en"}, hit.gloss) : null, hit.text ? longText(hit.text, hit.marks) : h("p", {class: "tkx-small"}, "its text isn't at hand here; the prompt below has what the model read"), ...more.map(m => h("p", {class: "tkx-small"}, m))));
  }
  call(call, n, second) {
    if (call.missing) return h("p", {class: "tkx-small"}, `call ${call.key.slice(0, 12)} isn't in this store`);
    const took = `${call.model} · ${plural(call.tokens_in, "token")} in, ${call.tokens_out} out · ${dollars(this.run.free ? 0 : call.dollars)} · ${call.seconds.toFixed(2)} s`;
    const reply = call.score != null ? h("p", {}, `log-probability of the text below: ${call.score}`) : null;
    return h("details", {class: "tkx-call", open: n === 0}, h("summary", {}, `call ${n + 1} `, h("span", {class: "tkx-small"}, took)),
      h("details", {}, h("summary", {}, "prompt as sent"), ...call.messages.map(([role, text]) => h("div", {}, h("h4", {}, role), longText(text)))),
      h("h4", {}, call.score != null ? "scored" : "reply as received"), reply, longText(call.score != null ? call.continuation : call.reply), call.gloss ? h("p", {class: "tkx-gloss", lang: "en"}, call.gloss) : null,
      call.finish !== "stop" ? h("p", {class: "tkx-warn"}, `! ended by ${call.finish}`) : null, call.thinking ? h("details", {}, h("summary", {}, "thinking"), longText(call.thinking)) : null,
      h("p", {class: "tkx-small"}, Object.entries(call.parameters).map(([k, v]) => `${k} ${JSON.stringify(v)}`).join(", ")),
      !second && call.score == null && this.can.includes("fork") ? this.forkOfReply(call) : null);
  }
  documentOf(rows) {
    return h("section", {}, h("h3", {}, "The document"), h("div", {class: "tkx-document"}, ...rows.map(([id, depth, type, text, state]) =>
      h("div", {class: `tkx-doc-${type} ${state ? "tkx-doc-seen" : ""}`, style: `padding-left:${depth * 14}px`}, h("span", {class: "tkx-small"}, `${id} `), state ? h("span", {class: "tkx-badge"}, state) : null, text))));
  }

  // ── comparing ──
  // with another run, or another method of the same: the first run's method is the chosen one, or that of the open answer
  async compareWith(name, first, second) {
    this.other = null; this.flips = null; this.secondBox.hidden = true; fill(this.flipsLine);
    if (!name) { this.verdicts(); this.filter(); return; }
    await this.trying(async () => {
      const mine = first || (second ? this.methodBox.value || (this.row && this.row.method) || this.run.head.methods[0] : null);
      const [found, run] = [await this.get("compare", this.run.name, name, ...mine ? [mine, second] : []), await this.get("run", name)];
      this.otherBox.value = this.others[name] ? name : `${name}/${found.second}`; this.other = run; this.comparison = found;
      if (mine && this.run.head.methods.length > 1) { this.methodBox.value = mine; this.filter(); if (this.rows[this.at] && this.rows[this.at].method !== mine) this.at = -1; }
      this.partners = new Map(found.pairs.map(p => [p[2], p[3]]));
      const set = ns => new Set(ns.map(n => found.pairs[n][2]));
      this.flips = {gained: set(found.gained), lost: set(found.lost), "without partner": new Set(found.alone.filter(a => a[2] === "first").map(a => a[3]))};
      const p = found.p < 0.001 ? "< 0.001" : found.p.toFixed(3), alone = found.alone.length ? `; ${found.alone.length} without a partner` : "";
      fill(this.flipsLine, `${found.second} against ${found.first}: gains ${found.gained.length}, loses ${found.lost.length} of ${found.pairs.length}; McNemar's p ${p}${alone}`);
      this.verdicts(); this.filter(); await this.openRow(this.at < 0 ? this.shown[0] : this.at, false);
    });
  }
  async align() {
    this.parted = null; this.secondBox.hidden = true;
    if (!this.other || !this.partners.has(this.at)) return;
    this.partner = this.partners.get(this.at);
    const at = this.at, tree = await this.get("tree", this.other.name, this.partner), found = await this.get("align", this.run.name, at, this.other.name, this.partner);
    if (at !== this.at) return;
    const r = this.other.rows[this.partner], v = this.verdict(r);
    this.secondBox.hidden = false; fill(this.secondHead, `other run: ${v[0]} ${r.answer || r.error}`); this.second.show(tree); this.flagged(this.second, r.wrong);
    found.pairs.forEach(([a, b, differs], n) => {
      const said = n === found.parted ? "first difference" : differs ? "differs" : null;
      if (!said) return;
      if (a != null) this.tree.flags.set(this.tree.place.get(a), said);
      if (b != null) this.second.flags.set(this.second.place.get(b), said);
    });
    this.tree.list.paint(); this.second.list.paint();
    if (found.parted != null) { const [a, b] = found.pairs[found.parted]; if (a != null) this.parted = this.tree.place.get(a); if (b != null) this.second.pick(this.second.place.get(b), false); }
  }

  // ── forks: only where something can run ──
  forkOfReply(call) {
    const text = h("textarea", {rows: "6", "aria-label": "the reply in the fork"}); text.value = call.reply;
    return h("details", {class: "tkx-fork"}, h("summary", {}, "Fork: another reply"), text, h("button", {class: "tkx-button", click: () => this.fork({replies: [[call.key, text.value]]})}, "Run the fork"));
  }
  forkOfNode(node) {
    const queries = node.queries || [];
    if (!this.can.includes("fork") || !queries.length) return null;
    const boxes = queries.map(q => { const b = h("input", {type: "text", "aria-label": `search instead of: ${q}`}); b.value = q; return b; });
    const asked = () => queries.flatMap((q, n) => boxes[n].value !== q ? [[q, boxes[n].value]] : []);
    const kept = () => [...this.right.querySelectorAll("[data-passage]")], left = () => kept().some(b => !b.checked);
    return h("details", {class: "tkx-fork"}, h("summary", {}, "Fork: other queries or passages"), ...boxes,
      h("button", {class: "tkx-button", click: () => asked().length ? this.fork({queries: asked()}) : this.say("Change a query first.")}, "Search these instead"),
      queries.length === 1 && node.hits.length ? h("button", {class: "tkx-button", click: () => left() ? this.fork({passages: [[queries[0], kept().filter(b => b.checked).map(b => b.dataset.passage)]]}) : this.say("Untick the passages that the fork is not to find.")}, "Find only the ticked passages") : null);
  }
  forkOfRoute(routed) {
    if (!routed || !this.can.includes("fork")) return null;
    const said = new Map(routed.said.map(([tag, id]) => [id, tag]));
    const choices = routed.rows.map(([id, depth, type, text]) => {
      const box = h("select", {"aria-label": `behaviour for ${id}: ${text.slice(0, 60)}`}, ...["", "ANSWER", "EXPAND"].map(v => h("option", {value: v}, v || "–")));
      box.value = said.get(id) || "";
      return [id, text, box, h("label", {class: `tkx-route tkx-doc-${type}`, style: `padding-left:${depth * 10}px`}, box, ` ${id}: ${text.slice(0, 120)}`)];
    });
    const chosen = () => choices.filter(c => c[2].value).map(([id, text, box]) => [box.value, id, text]);
    return h("details", {class: "tkx-fork"}, h("summary", {}, "Fork: other behaviours of the router"), ...choices.map(c => c[3]),
      h("button", {class: "tkx-button", click: () => this.fork({routes: [[routed.key, chosen()]]})}, "Route so"),
      h("button", {class: "tkx-button", click: () => this.fork({routes: [[routed.key, []]]})}, "Refuse"));
  }
  async fork(edits) {
    const parent = this.run.name, method = this.row.method;
    await this.trying(async () => {
      const made = await this.work("The fork", `fork/${encodeURIComponent(parent)}/${this.at}`, edits);
      if (!made) return;
      await this.again(); await this.openRun(made.run);
      await this.compareWith(parent, this.run.head.methods[0], method);
      this.say(`Fork: ${made.found} calls from the store, ${made.asked} asked, ${dollars(made.dollars)}. Answer: ${made.answer || made.error || "(none)"}`, !!made.error);
    });
  }
  async again() { const known = await this.get("runs"); this.runs = known.runs; this.offer(); }
  // begins something, shows how far it is with a button that stops it, and returns what came of it
  async work(title, path, body, seen = () => {}) {
    const {job} = await this.source.post(path, body), text = h("span", {}, `${title} runs…`), bar = h("progress", {"aria-label": title});
    const stop = h("button", {class: "tkx-button", click: () => { stop.disabled = true; this.source.post(`stop/${job}`, {}); }}, "Stop");
    this.status.classList.remove("tkx-error"); fill(this.status, text, " ", bar, " ", stop);
    for (let wait = 60; ; wait = Math.min(1000, wait * 1.3)) {
      await new Promise(r => setTimeout(r, wait));
      const now = await this.source.get(`job/${job}`), told = now.told;
      seen(now.found);
      if (told.total) { bar.max = told.total; bar.value = told.done; }
      text.textContent = `${title} ${now.part ? `(${now.part}) ` : ""}runs: ${told.total ? `${told.done} of ${plural(told.total, "question")}, ${plural(told.calls, "call")}, ${plural(told.tokens, "token")}${told.money ? `, ${dollars(told.money)}` : ""}` : "it begins"}`;
      if (now.state === "running") continue;
      if (now.state === "failed") throw new Error(now.error);
      if (now.state === "stopped") { this.say(`${title} was stopped; what was answered is stored.`); return null; }
      this.say(""); return now.found;
    }
  }
  // ── trees of words ──
  async parses(box, run, row, id, second) {
    let found; try { found = await this.get("parse", run, row, id); } catch (e) { fill(box, h("p", {class: "tkx-small"}, `no tree: ${e.message || e}`)); return; }
    fill(box, ...found.texts.flatMap(text => [text.title ? h("h4", {}, text.title) : null, ...text.sentences.flatMap(one => [this.arcs(one), !second && found.editable && this.can.includes("fork") ? this.forkOfHead(text.text, one) : null])]).filter(x => x),
      found.texts.some(t => t.sentences.length) ? null : h("p", {class: "tkx-small"}, "no sentence with a tree"));
  }
  levels(heads) {
    const ends = heads.map((hd, i) => hd ? [Math.min(hd - 1, i), Math.max(hd - 1, i)] : null), level = heads.map(() => 0);
    for (const i of heads.map((_, i) => i).filter(i => ends[i]).sort((a, b) => (ends[a][1] - ends[a][0]) - (ends[b][1] - ends[b][0]))) {
      const [a, b] = ends[i];
      level[i] = 1 + Math.max(0, ...heads.map((_, j) => level[j] && ends[j][0] < b && ends[j][1] > a ? level[j] : 0));
    }
    return level;
  }
  arcs({words, heads, relations, marked}) {
    const on = new Set(marked), widths = words.map((w, i) => Math.max(w.length * 7.4, relations[i].length * 5.6, 26) + 12), x = []; let at = 8;
    for (const w of widths) { x.push(at + w / 2); at += w; }
    const level = this.levels(heads), tall = i => 12 + 14 * level[i], base = Math.max(...heads.map((_, i) => tall(i)), 26) + 14, svg = [];  // an arc stands above those within it
    heads.forEach((hd, i) => {
      const colour = on.has(i) ? "tkx-arc tkx-on" : "tkx-arc";
      if (!hd) { svg.push(drawing("path", {class: colour, d: `M${x[i]},4 V${base - 4}`}), drawing("path", {class: `${colour} tkx-tip`, d: `M${x[i]},${base} l-3,-6 h6 z`})); return; }
      const from = x[hd - 1] + (i > hd - 1 ? 4 : -4), to = x[i] + (i > hd - 1 ? -2 : 2), top = base - tall(i) / 0.75;
      svg.push(drawing("path", {class: colour, d: `M${from},${base} C${from},${top} ${to},${top} ${to},${base - 4}`}), drawing("path", {class: `${colour} tkx-tip`, d: `M${to},${base} l-3,-6 h6 z`}),
        drawing("text", {class: "tkx-rel", x: (from + to) / 2, y: base - tall(i) + 3, "text-anchor": "middle"}, relations[i]));
    });
    words.forEach((w, i) => { if (on.has(i)) svg.push(drawing("rect", {class: "tkx-marked", x: x[i] - widths[i] / 2 + 2, y: base + 3, width: widths[i] - 4, height: 18})); svg.push(drawing("text", {x: x[i], y: base + 16, "text-anchor": "middle"}, w)); });
    const said = words.map((w, i) => `${w} ← ${heads[i] ? words[heads[i] - 1] : "root"}`).join(", ");
    return h("div", {class: "tkx-arcs", tabindex: "0", role: "group", "aria-label": "dependency tree"}, drawing("svg", {role: "img", "aria-label": `word ← head: ${said}`, width: at + 8, height: base + 26}, ...svg));
  }
  forkOfHead(text, {n, words, heads}) {
    const box = (label, first) => h("select", {"aria-label": label}, ...first, ...words.map((w, i) => h("option", {value: i + 1}, `${i + 1} ${w}`)));
    const word = box("word", []), head = box("its new head", [h("option", {value: 0}, "the root")]);
    word.addEventListener("change", () => { head.value = heads[word.value - 1]; }); head.value = heads[0];
    return h("details", {class: "tkx-fork"}, h("summary", {}, "Fork: another edge of the parse"), h("div", {class: "tkx-tools"}, word, " below ", head,
      h("button", {class: "tkx-button", click: () => +head.value === heads[word.value - 1] ? this.say("Choose another head first.") : this.fork({heads: [[text, n, +word.value, +head.value]], trees: [[text, n, heads]]})}, "Hang it there")));
  }
}

// ── switches and sweeps ──
class Bench {
  constructor(explorer) {
    this.x = explorer; this.of = null;
    this.el = h("section", {class: "tkx-pane tkx-bench", "aria-label": "Switches", tabindex: "0"});
  }
  async open() {
    const x = this.x;
    if (!x.run) return;
    if (!x.can.includes("switch")) {
      fill(this.el, this.top("Switches"), h("p", {}, "This page is a file: it shows what was run, and nothing can be run in it."),
        h("p", {}, "To change a field of the method, the retriever or the model's competence, open the run where it was made: ", h("code", {}, `treekit explore ${x.run.name.slice(0, 6)}`), ", or explore(results) in a notebook."));
      return;
    }
    const method = x.methodBox.value || (x.row && x.row.method) || x.run.head.methods[0], name = x.run.name;
    if (this.of === `${name}/${method}`) return;
    await x.trying(async () => { this.draw(name, method, await x.get("fields", name, method)); });
  }
  top(text) { return h("div", {class: "tkx-tools"}, h("h2", {class: "tkx-grow"}, text), h("button", {class: "tkx-button", "aria-label": "Close the switches", click: () => { this.x.pane("questions"); this.x.benchButton.focus(); }}, "×")); }
  draw(name, method, found) {
    this.of = `${name}/${method}`; Object.assign(this, {name, method, found});
    const entry = f => {
      const text = String(f.value ?? ""), changed = () => { row.classList.toggle("tkx-changed", box.value !== text); this.stale(); };
      const box = f.choices.length ? h("select", {"aria-label": f.name, change: changed}, ...f.choices.map(c => h("option", {value: String(c)}, String(c)))) : h("input", {type: "text", "aria-label": f.name, input: changed, size: "8"});
      box.value = f.choices.length && typeof f.value === "boolean" ? String(f.value) : text;
      const row = h("div", {class: "tkx-switch"}, h("label", {}, h("b", {}, f.name), " ", box), h("p", {class: "tkx-small"}, f.meaning));
      return {f, box, row, text};
    };
    this.fields = found.fields.map(entry); this.settings = found.settings.map(entry);
    const button = (text, click) => h("button", {class: "tkx-button", click}, text);
    this.n = h("input", {type: "number", min: "1", max: String(found.rows), "aria-label": "questions", input: () => this.stale()}); this.n.value = found.rows;
    this.price = h("p", {role: "status"}); this.runButton = button("Run it", () => this.run()); this.runButton.disabled = true;
    this.field = h("select", {"aria-label": "field to sweep", change: () => this.suggest()}, ...found.fields.map(f => h("option", {value: f.name}, f.name)));
    this.values = h("input", {type: "text", "aria-label": "values, with commas between", input: () => this.stale()});
    this.sweepPrice = h("p", {role: "status"}); this.sweepButton = button("Run the sweep", () => this.sweep()); this.sweepButton.disabled = true; this.curve = h("div", {});
    fill(this.el, this.top(`Switches: ${method}`), h("p", {class: "tkx-small"}, "Change what you like, see what it would take, run it: only what changed is asked. The new run stands beside this one."),
      h("label", {class: "tkx-switch"}, "questions ", this.n), h("div", {class: "tkx-tools"}, button("What would it take?", () => this.cost()), this.runButton, button("Back to how it was", () => this.reset())), this.price,
      h("h3", {}, "The method"), ...this.fields.map(e => e.row), h("h3", {}, "What it works with"), ...this.settings.map(e => e.row),
      h("h3", {}, "A sweep"), h("p", {class: "tkx-small"}, "One field over several values; the other changes above hold for all of them."),
      h("div", {class: "tkx-tools"}, this.field, this.values), h("div", {class: "tkx-tools"}, button("What would the sweep take?", () => this.cost(true)), this.sweepButton), this.sweepPrice, this.curve);
    this.suggest();
  }
  reset() { for (const e of [...this.fields, ...this.settings]) { e.box.value = e.text; e.row.classList.remove("tkx-changed"); } this.stale(); }
  stale() { this.runButton.disabled = this.sweepButton.disabled = true; fill(this.price); fill(this.sweepPrice); }
  suggest() {
    const f = this.found.fields.find(f => f.name === this.field.value), v = f.value;
    const near = f.choices.length ? f.choices : typeof v === "number" ? [...new Set([v / 2, v, v * 2].map(x => f.kind === "int" ? Math.max(1, Math.round(x)) : x))] : [v ?? ""];
    this.values.value = near.join(", "); this.stale();
  }
  wanted(sweep) {
    const changed = entries => Object.fromEntries(entries.filter(e => e.box.value !== e.text).map(e => [e.f.name, e.box.value])), n = +this.n.value;
    const body = {method: this.method, fields: changed(this.fields), settings: changed(this.settings), n: n >= this.found.rows ? null : n};
    return sweep ? {...body, field: this.field.value, values: this.values.value.split(",").map(v => v.trim()).filter(v => v)} : body;
  }
  async cost(sweep) {
    const x = this.x, line = sweep ? this.sweepPrice : this.price;
    this.stale(); fill(line, "counting…");
    const p = await x.trying(() => x.work("Counting", `price/${encodeURIComponent(this.name)}`, this.wanted(sweep)));
    if (!p) { fill(line); return; }
    const round = v => Math.round(v).toLocaleString("en"), asked = p.calls - p.found, exact = p.tried >= p.rows;
    fill(line, `${exact ? "" : "about "}${round(p.calls)} calls${exact ? "" : ` (${round(p.low)} to ${round(p.high)})`} for ${plural(p.rows, "question")}: ${round(p.found)} from the store, ${round(asked)} to ask, with ${round(p.tokens)} tokens, ${p.free ? "$0" : dollars(p.dollars)}. `,
      h("span", {class: "tkx-small"}, `Tried on ${plural(p.tried, "question")}, nothing was spent.${p.failed ? ` ${p.failed} of them failed.` : ""}`));
    (sweep ? this.sweepButton : this.runButton).disabled = false;
  }
  async run() {
    const x = this.x, {name, method} = this;
    this.stale();
    const made = await x.trying(() => x.work("The run", `switch/${encodeURIComponent(name)}`, this.wanted()));
    if (!made) return;
    await x.again();
    if (x.run.name !== name) await x.openRun(name);
    await x.compareWith(made.run, method, made.method);
    if (made.failed) x.say(`${made.failed} questions failed.`, true);
  }
  async sweep() {
    const x = this.x;
    this.stale();
    const made = await x.trying(() => x.work("The sweep", `sweep/${encodeURIComponent(this.name)}`, this.wanted(true), found => found.points && this.plot(found)));
    if (!made) return;
    this.plot(made); await x.again();
  }
  plot({field, points}) {
    const W = 300, H = 150, left = 34, wide = W - left - 12, y = v => 8 + (1 - v) * (H - 34), numbers = points.map(p => Number(p.value)), scaled = numbers.every(Number.isFinite) && new Set(numbers).size > 1;
    const low = Math.min(...numbers), high = Math.max(...numbers), at = k => left + 10 + (points.length < 2 ? 0.5 : scaled ? (numbers[k] - low) / (high - low) : k / (points.length - 1)) * (wide - 20);
    const open = p => this.show(p), parts = [0, 0.5, 1].flatMap(v => [drawing("path", {class: "tkx-grid", d: `M${left},${y(v)} H${W - 8}`}), drawing("text", {x: left - 5, y: y(v) + 4, "text-anchor": "end"}, String(v))]);
    const order = points.map((p, k) => k).sort((a, b) => at(a) - at(b));
    parts.push(drawing("path", {class: "tkx-curve", d: order.map((k, n) => `${n ? "L" : "M"}${at(k)},${y(points[k].mean)}`).join(" ")}));
    points.forEach((p, k) => parts.push(drawing("path", {class: "tkx-curve", d: `M${at(k)},${y(p.low)} V${y(p.high)} M${at(k) - 4},${y(p.low)} h8 M${at(k) - 4},${y(p.high)} h8`}),
      drawing("circle", {class: "tkx-point", cx: at(k), cy: y(p.mean), r: 5, click: () => open(p)}), drawing("text", {x: at(k), y: H - 10, "text-anchor": "middle"}, String(p.value).slice(0, 14))));
    const said = p => `${field} ${p.value}: ${p.mean.toFixed(2)} (${p.low.toFixed(2)} to ${p.high.toFixed(2)}), ${p.calls.toFixed(1)} calls a question`;
    fill(this.curve, drawing("svg", {class: "tkx-plot", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `answers' worth over ${field}, with 95 % intervals`}, ...parts),
      h("p", {class: "tkx-small"}, `answers' worth over ${field}, with 95 % intervals; a point opens its questions`), ...points.map(p => h("button", {class: "tkx-button tkx-pointed", click: () => open(p)}, said(p))));
  }
  async show(p) {
    const x = this.x, {name, method} = this;
    await x.trying(async () => { await x.again(); if (x.run.name !== name) await x.openRun(name); await x.compareWith(p.run, method, p.method); });
  }
}

// ── where things come from ──
// A saved page: chunks of compressed JSON, opened when something in them is wanted.
export function savedSource(element) {
  const index = JSON.parse(element("index").textContent), opened = new Map();
  async function chunk(n) {
    const packed = Uint8Array.from(atob(element(`chunk${n}`).textContent.trim()), c => c.charCodeAt(0));
    return JSON.parse(await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).text());
  }
  return {options: index.options, async get(path) {
    const n = index.paths[path];
    if (n === undefined) throw new Error("this page doesn't hold it: open the run with `treekit explore`");
    if (!opened.has(n)) { if (opened.size > 40) opened.delete(opened.keys().next().value); opened.set(n, chunk(n)); }
    return (await opened.get(n))[path];
  }};
}
// A served page: the same machine, with the token that the address had.
export function servedSource(token) {
  async function ask(path, body) {
    const reply = await fetch(`/api/${path}`, {method: body ? "POST" : "GET", headers: {"X-Treekit-Token": token, "Content-Type": "application/json"}, body: body && JSON.stringify(body)});
    const found = await reply.json();
    if (!reply.ok) throw new Error(found.error);
    return found;
  }
  return {get: path => ask(path), post: (path, body) => ask(path, body)};
}
// A widget: questions and answers as messages of the notebook's own channel.
function widgetSource(model) {
  const waiting = new Map(); let last = 0;
  model.on("msg:custom", m => { const w = waiting.get(m.id); if (!w) return; waiting.delete(m.id); m.error ? w[1](new Error(m.error)) : w[0](m.found); });
  const ask = (path, body) => new Promise((done, failed) => { const id = `${Date.now()}-${++last}`; waiting.set(id, [done, failed]); model.send({id, path, body: body || null}); });
  return {get: path => ask(path), post: (path, body) => ask(path, body)};
}

export default {
  render({model, el}) {
    const explorer = new Explorer(el, widgetSource(model), model.get("options"));
    el.explorer = explorer;
  },
};
