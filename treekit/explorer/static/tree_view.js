// ── a tree as outline and as drawing ──
class TreeView {
  constructor({label, select, enter, tapped = () => {}}) {
    Object.assign(this, {select, enter, tapped, n: 0, selected: -1, round: null, flags: new Map(), matches: [], query: ""});
    this.list = new VirtualList({role: "tree", label, draw: (row, at) => this.row(row, at),
      choose: (at, e) => { const i = this.visible[at]; if (e.target.dataset.fold) this.fold(i); else { this.pick(i); this.tapped(i); } },
      key: e => this.key(e)});
    this.canvas = h("canvas", {class: "tkx-canvas", tabindex: "0", role: "application", "aria-label": `${label}, drawn; the outline has the same nodes`});
    this.zoom = {k: 1, x: 20, y: 20};
    this.pointer();
    new ResizeObserver(() => this.paint()).observe(this.canvas);
  }
  show(tree) {
    this.t = tree; this.n = tree.id.length; this.folded = new Uint8Array(this.n); this.flags = new Map();
    this.place = new Map(tree.id.map((id, i) => [id, i])); this.words = null; this.query = ""; this.matches = []; this.selected = -1;
    this.round = tree.search ? tree.search.rounds : null; this.fitted = false; this.condensed = false; this.stretch = 1; this.scales();
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
  // a large tree is drawn with most subtrees folded: what is on the best path, or visited most, or largest, is open
  condense() {
    this.condensed = true; const most = Math.max(24, Math.floor(this.canvas.clientHeight / 11));  // folded ones say how many are below
    if (this.n <= MOST_DRAWN) return;
    const weight = i => this.best.has(i) || i === this.selected || (this.selected > i && this.selected < this.t.end[i]) ? Infinity : (this.numbers(i) || [0, 0])[1] * this.n + this.t.end[i] - i;
    const below = i => { const found = []; for (let c = i + 1; c < this.t.end[i]; c = this.t.end[c]) found.push(c); return found; };
    let drawn = 0; const waiting = [];
    for (let i = 0; i < this.n; i = this.t.end[i]) { drawn++; waiting.push(i); }
    for (let i = 0; i < this.n; i++) this.folded[i] = this.t.end[i] > i + 1 ? 1 : 0;
    while (waiting.length) {
      const at = waiting.reduce((best, i, n) => weight(i) > weight(waiting[best]) ? n : best, 0), [i] = waiting.splice(at, 1);
      if (!this.folded[i] || (drawn + this.children[i] > most && weight(i) < Infinity)) continue;
      this.folded[i] = 0; drawn += this.children[i]; waiting.push(...below(i));
    }
    this.project();
  }
  // largest visits, and ranges of value and risk, over all rounds: a node's look doesn't change because others do
  scales() {
    const s = this.t.search; this.most = 1; this.values = null; this.risks = null;
    if (!s) return;
    const wider = (range, v) => range ? [Math.min(range[0], v), Math.max(range[1], v)] : [v, v];
    for (const own of Object.values(s.changes)) for (const [, visits, value] of own) { this.most = Math.max(this.most, visits); this.values = wider(this.values, value); }
    for (const risk of Object.values(s.risk)) if (risk != null) this.risks = wider(this.risks, risk);
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
    if (!this.words) this.words = this.t.text.map((text, i) => `${this.t.kind[i]} ${text}`.toLowerCase());
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
      this.flags.has(i) && h("span", {class: "tkx-badge"}, this.flags.get(i)), h("span", {class: "tkx-line"}, t.text[i] || "(no text)"),
      t.notes[i] ? h("span", {class: "tkx-note", title: "notes"}, "!") : null, h("span", {class: "tkx-mark"}, [this.folded[i] ? `+${t.end[i] - i - 1}` : "", this.markOf(i)].filter(Boolean).join(" · ")));
  }
  // the drawing
  layout() {
    this.wide = this.canvas.clientWidth && this.canvas.clientWidth < 480 ? NARROW : WIDE; this.across = (this.wide + GAP) * this.stretch;
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
    this.stretch = 1; this.layout();
    const {clientWidth: w, clientHeight: tall} = this.canvas, k = Math.min(1.2, w / (this.placed.width + 40), tall / (this.placed.height + 40));
    this.zoom = {k, x: 20, y: Math.max(10, (tall - this.placed.height * k) / 2)};
    if (k < READABLE) {  // circles, in columns over the whole width
      const deepest = this.visible.reduce((m, i) => Math.max(m, this.t.depth[i]), 1), tight = (tall - 40) / this.placed.height;
      this.zoom = {k: Math.min(READABLE * 0.99, tight), x: 24, y: 20}; this.across = (w - 110) / deepest / this.zoom.k; this.stretch = this.across / (this.wide + GAP); this.placed = null; this.layout();
    }
    this.paint();
  }
  // readable from the start: the whole tree, or as many whole columns as can be read
  first() {
    this.fit();
    if (this.zoom.k >= 0.6 || this.t.search) return;
    this.stretch = 1; this.layout();
    const room = this.canvas.clientWidth - 40, size = columns => room / (columns * this.across - GAP), more = Math.floor((room / 0.8 + GAP) / this.across) + 1;
    this.zoom.k = size(more) > 0.64 ? size(more) : 0.8; this.lookAt(Math.max(0, this.selected)); this.paint();
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
    const z = this.zoom, k = Math.min(4, Math.max(0.002, z.k * by)), was = this.stretch;
    if (was !== 1 && k >= READABLE) { this.stretch = 1; this.layout(); }  // boxes again
    this.zoom = {k, x: x - (x - z.x) * k / z.k * this.stretch / was, y: y - (y - z.y) * k / z.k}; this.paint();
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
    if (!this.condensed) this.condense();
    if (this.placed && (w < 480) !== (this.wide === NARROW)) { this.placed = null; this.fitted = false; }
    if (!this.placed) this.layout();
    if (!this.fitted) { this.fitted = true; this.first(); }
    const ratio = window.devicePixelRatio || 1, g = c.getContext("2d"), style = getComputedStyle(c), inks = {}, ink = v => inks[v] ??= style.getPropertyValue(v).trim();
    if (c.width !== Math.round(w * ratio) || c.height !== Math.round(hh * ratio)) { c.width = Math.round(w * ratio); c.height = Math.round(hh * ratio); }
    const {k, x: dx, y: dy} = this.zoom, {x, y, width} = this.placed, {parent} = this.t, wide = this.wide;
    g.setTransform(ratio, 0, 0, ratio, 0, 0); g.fillStyle = ink("--tkx-paper"); g.fillRect(0, 0, w, hh);
    g.setTransform(ratio * k, 0, 0, ratio * k, ratio * dx, ratio * dy);
    const left = -dx / k - 400, right = (w - dx) / k + 400, top = -dy / k - 40, bottom = (hh - dy) / k + 40;
    const seen = i => x[i] > left && x[i] < right && y[i] > top && y[i] < bottom;
    const small = k < READABLE, px = small ? 1 / k : 1;  // circles: widths and sizes as on the screen
    const line = (a, b, dashed) => { if (small) { g.beginPath(); g.moveTo(x[a], y[a] + HIGH / 2); g.lineTo(x[b], y[b] + HIGH / 2); g.stroke(); return; } g.setLineDash(dashed ? [4, 4] : []); g.beginPath(); const ax = x[a] + wide, bx = x[b] + (dashed ? wide : 0), out = dashed ? 34 : 16;
      g.moveTo(ax, y[a] + HIGH / 2); g.bezierCurveTo(ax + out, y[a] + HIGH / 2, bx + (dashed ? out : -out), y[b] + HIGH / 2, bx, y[b] + HIGH / 2); g.stroke(); };
    for (const i of this.visible) {
      const p = parent[i];
      if (p < 0 || (y[i] < top && y[p] < top) || (y[i] > bottom && y[p] > bottom) || x[i] < left || x[p] > right) continue;
      g.lineWidth = (this.best.has(i) ? 3 : small ? 0.5 : 1) * px; g.strokeStyle = ink(this.best.has(i) ? "--tkx-strong" : "--tkx-edge"); line(p, i);
    }
    g.lineWidth = 1.5 * px; g.strokeStyle = ink("--tkx-strong");
    for (const [a, b] of this.t.links) if (this.at[a] >= 0 && this.at[b] >= 0 && (seen(a) || seen(b))) line(a, b, true);
    g.setLineDash([]); g.textBaseline = "middle"; const face = 'system-ui, sans-serif', plain = `12px ${face}`, tiny = `10.5px ${face}`;
    let room = 0;  // a label that is too long ends with an ellipsis
    const fitted = text => {
      text = text.slice(0, 80);
      const full = g.measureText(text).width;
      if (full <= room) return text;
      let n = Math.floor(text.length * room / full);
      while (n > 0 && g.measureText(`${text.slice(0, n)}…`).width > room) n--;
      return `${text.slice(0, n)}…`;
    };
    for (const i of this.visible) {
      if (!seen(i)) continue;
      g.globalAlpha = this.notYet.has(i) ? 0.35 : 1;
      if (small) { this.circle(g, ink, i, x[i], y[i] + HIGH / 2, px, DOWN * k >= 8 ? `${Math.min(11, DOWN * k) / k}px ${face}` : ""); continue; }
      g.fillStyle = ink(i === this.selected ? "--tkx-chosen" : this.matched && this.matched.has(i) ? "--tkx-found" : "--tkx-card"); g.fillRect(x[i], y[i], wide, HIGH);
      g.lineWidth = this.best.has(i) || i === this.selected ? 2.5 : 1; g.strokeStyle = ink(this.flags.has(i) ? "--tkx-wrong" : i === this.selected || this.best.has(i) ? "--tkx-strong" : "--tkx-edge");
      g.strokeRect(x[i], y[i], wide, HIGH);
      const own = this.numbers(i) ? 30 : 0, sign = !this.children[i] ? "" : this.folded[i] ? `+${this.t.end[i] - i - 1}` : "−";
      if (own) { this.circle(g, ink, i, x[i] + 17, y[i] + HIGH / 2, 1, ""); g.globalAlpha = this.notYet.has(i) ? 0.35 : 1; }
      g.font = plain; const end = sign ? g.measureText(sign).width + 12 : 6;
      g.save(); g.beginPath(); g.rect(x[i] + own, y[i], wide - own - end, HIGH); g.clip(); room = wide - own - end - 6;
      g.fillStyle = ink("--tkx-soft"); g.font = tiny; g.fillText(fitted(`${this.flags.has(i) ? `✗ ${this.flags.get(i)} · ` : ""}${[this.t.kind[i], this.markOf(i)].filter(Boolean).join(" · ")}`), x[i] + own + 6, y[i] + 12);
      g.fillStyle = ink("--tkx-ink"); g.font = plain; g.fillText(fitted(this.t.text[i] || "(no text)"), x[i] + own + 6, y[i] + 28);
      g.restore(); g.fillStyle = ink("--tkx-ink"); g.font = plain;
      if (sign) g.fillText(sign, x[i] + wide - end + 6, y[i] + HIGH / 2);
    }
    g.globalAlpha = 1;
    if (!small) this.beyond(g, ink, w, Math.round((20 - dx) / (this.across * k) - 0.2), Math.ceil((width * k + dx - w) / (this.across * k) - 0.2));
  }
  // a node as a circle: visits as its size, value as its fill, risk as its ring; a folded one says how many are below
  circle(g, ink, i, x, y, px, face) {
    const c = this.numbers(i), share = (range, v) => range && range[1] > range[0] ? (v - range[0]) / (range[1] - range[0]) : 0.5, risk = c && this.risks ? this.t.search.risk[i] : null;
    const room = this.children[i] && !this.folded[i] ? 12 : Math.max(1.5, DOWN * 0.5 / px), r = Math.min(room, c ? 3 + 9 * Math.sqrt(c[1] / this.most) : this.folded[i] ? 4 : 2.5) * px, shown = g.globalAlpha, ring = () => { g.beginPath(); g.arc(x, y, r, 0, 7); };
    ring(); g.fillStyle = ink("--tkx-paper"); g.fill();
    g.globalAlpha = shown * (c ? 0.1 + 0.9 * share(this.values, c[2]) : 0.5); g.fillStyle = ink(this.matched && this.matched.has(i) ? "--tkx-found" : "--tkx-strong"); ring(); g.fill();
    g.globalAlpha = shown; g.lineWidth = risk == null ? px : Math.min(r * 0.5, (0.5 + 2.5 * share(this.risks, risk)) * px); g.strokeStyle = ink(this.flags.has(i) || risk != null ? "--tkx-wrong" : "--tkx-edge"); ring(); g.stroke();
    if (i === this.selected) { g.lineWidth = 2 * px; g.strokeStyle = ink("--tkx-ink"); g.beginPath(); g.arc(x, y, r + 3 * px, 0, 7); g.stroke(); }
    if (face && this.folded[i]) { g.fillStyle = ink("--tkx-ink"); g.font = face; g.fillText(`+${this.t.end[i] - i - 1}`, x + r + 4 * px, y); }
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
    if (k < READABLE) {  // the nearest circle
      const far = i => Math.hypot(px - this.placed.x[i], py - this.placed.y[i] - HIGH / 2) * k, near = this.visible.reduce((best, i) => far(i) < far(best) ? i : best, this.visible[0]);
      return far(near) < 14 ? [near, this.folded[near] === 1] : null;
    }
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
    c.addEventListener("pointerup", e => { from = null; if (moved || !this.placed) return; const at = this.hit(e); if (at) { if (at[1] && this.children[at[0]]) this.fold(at[0]); else { this.pick(at[0]); this.tapped(at[0]); } } });
    c.addEventListener("wheel", e => { if (!e.ctrlKey && document.activeElement !== c) return; e.preventDefault(); const box = c.getBoundingClientRect(); this.scale(Math.exp(-e.deltaY / 400), e.clientX - box.left, e.clientY - box.top); }, {passive: false});
    c.addEventListener("keydown", e => { if (!e.ctrlKey && !e.metaKey && this.key(e)) e.preventDefault(); });
  }
}

