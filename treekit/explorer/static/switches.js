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
        h("p", {}, "To change a field of the method or the retriever, open the run where it was made: ", h("code", {}, `treekit explore ${x.run.name.slice(0, 6)}`), ", or explore(run, live=True) in a notebook."));
      return;
    }
    const method = x.methodBox.value || (x.row && x.row.method) || x.run.head.methods[0], name = x.run.name;
    if (this.of === `${name}/${method}`) return;
    await x.trying(async () => { this.draw(name, method, await x.get("fields", name, method)); });
  }
  top(text) { return h("div", {class: "tkx-tools"}, h("h2", {class: "tkx-grow"}, text), h("button", {class: "tkx-button", "aria-label": "Close the switches", click: () => { this.x.pane("questions"); this.x.benchButton.focus(); }}, "×")); }
  draw(name, method, found) {
    this.of = `${name}/${method}`; Object.assign(this, {name, method, found});
    const entry = (f, of) => {
      const text = String(f.value ?? ""), changed = () => { row.classList.toggle("tkx-changed", box.value !== text); this.stale(); };
      const box = f.choices.length ? h("select", {"aria-label": f.name, change: changed}, ...f.choices.map(c => h("option", {value: String(c)}, String(c)))) : h("input", {type: "text", "aria-label": f.name, input: changed, size: "8"});
      box.value = f.choices.length && typeof f.value === "boolean" ? String(f.value) : text;
      const row = h("div", {class: "tkx-switch"}, h("label", {}, h("b", {}, f.name), " ", box), h("p", {class: "tkx-small"}, f.meaning));
      return {f, box, row, text, of, words: `${f.name} ${f.meaning}`.toLowerCase()};
    };
    this.fields = found.fields.map(f => entry(f, "method")); this.settings = found.settings.map(f => entry(f, "profile"));
    const button = (text, click) => h("button", {class: "tkx-button", click}, text);
    this.n = h("input", {type: "number", min: "1", max: String(found.rows), "aria-label": "questions", input: () => this.stale()}); this.n.value = found.rows;
    this.runButton = button("Run it", () => this.run()); this.why = h("span", {class: "tkx-small"}); this.result = h("div", {class: "tkx-result", role: "status", hidden: true});
    this.field = h("select", {"aria-label": "field to sweep", change: () => this.suggest()}, ...found.fields.map(f => h("option", {value: f.name}, f.name)));
    this.values = h("input", {type: "text", "aria-label": "values, with commas between", input: () => this.stale()});
    this.sweepButton = button("Run the sweep", () => this.sweep()); this.curve = h("div", {});
    this.search = h("input", {type: "search", "aria-label": "Search the fields", placeholder: "search the fields", input: () => this.narrowed()});
    this.groups = [["method", this.fields], ["profile", this.settings]]
      .map(([group, own]) => ({own, el: h("details", {class: "tkx-group", open: true}, h("summary", {}, h("b", {}, group), h("span", {class: "tkx-small"}, ` ${plural(own.length, "field")}`)), ...own.map(e => e.row))}));
    fill(this.el, this.top(`Switches: ${cut(method, 60)}`), h("p", {class: "tkx-small"}, "Change fields and run it: only calls that are not stored are made, and a run can be stopped. The new run opens beside this one."),
      h("div", {class: "tkx-controls"}, h("label", {class: "tkx-switch"}, "questions ", this.n), h("div", {class: "tkx-tools"}, this.runButton, button("Back to how it was", () => this.reset()), this.why), this.result,
        this.sweepBox = h("details", {class: "tkx-group", open: true}, h("summary", {}, h("b", {}, "Sweep"), h("span", {class: "tkx-small"}, " one field over several values; the changes below hold for all of them")),
          h("div", {class: "tkx-tools"}, this.field, this.values), h("div", {class: "tkx-tools"}, this.sweepButton), this.curve)),
      this.search, ...this.groups.map(g => g.el));
    this.suggest();
  }
  narrowed() {
    const words = queryWords(this.search.value);
    for (const {own, el} of this.groups) {
      for (const e of own) e.row.hidden = !words.every(w => e.words.includes(w));
      el.hidden = own.every(e => e.row.hidden);
    }
  }
  reset() { for (const e of [...this.fields, ...this.settings]) { e.box.value = e.text; e.row.classList.remove("tkx-changed"); } this.stale(); }
  stale() {
    const changed = [...this.fields, ...this.settings].some(e => e.box.value !== e.text) || +this.n.value < this.found.rows;
    this.runButton.disabled = !changed; fill(this.why, changed ? "" : "Change a field first.");
  }
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
  async run() {
    const x = this.x, {name, method} = this;
    this.result.hidden = false; fill(this.result, "running…");
    const made = await x.trying(() => x.work("The run", `switch/${encodeURIComponent(name)}`, this.wanted()));
    if (!made) { this.result.hidden = true; return; }
    await x.again();
    if (x.run.name !== name) await x.openRun(name);
    const [point] = made.points;
    await x.compareWith(point.run, method, point.method);
    this.tell(point.method);
    if (point.failed) x.say(`${point.failed} questions failed.`, true);
  }
  // the effect of a change, beside its control
  tell(label) {
    const x = this.x, found = x.comparison;
    this.result.hidden = false;
    if (!found || !found.effect) { fill(this.result, h("b", {}, cut(label, 100)), x.row && x.other ? ` ran. Answer: ${cut(x.other.rows[0].answer || x.other.rows[0].error || "(none)", 200)}, before: ${cut(x.row.answer || "(none)", 200)}. The questions have no gold answers, so there is no score.` : " ran.",
      found && found.changed.length ? h("div", {class: "tkx-tools"}, h("button", {class: "tkx-button", click: () => { x.pane("tree"); x.flip(1); }}, "See what changed")) : ""); return; }
    const [effect, low, high] = found.effect, flips = found.gained.length + found.lost.length;
    fill(this.result, h("b", {}, cut(label, 100)), h("p", {}, `score ${number(found.means[0])} → ${number(found.means[1])}, `, h("b", {}, `effect ${signed(effect)}`), ` (${interval(low, high)})`),
      h("p", {}, `gains ${found.gained.length}, loses ${found.lost.length} of ${found.pairs.length} questions; McNemar's p ${pText(found.p)}`),
      flips ? h("div", {class: "tkx-tools"}, h("button", {class: "tkx-button", click: () => { x.pane("tree"); x.flip(1); }}, "See what flipped")) : h("p", {class: "tkx-small"}, "No answer flipped."));
  }
  async sweep() {
    const x = this.x;
    const made = await x.trying(() => x.work("The sweep", `switch/${encodeURIComponent(this.name)}`, this.wanted(true), found => found.points && this.plot(found)));
    if (!made) return;
    this.plot(made); await x.again();
  }
  plot({field, points}) {
    if (points.some(p => p.score == null)) { fill(this.curve, h("p", {class: "tkx-small"}, "The questions have no gold answers: there is no curve.")); return; }
    const W = 300, H = 150, left = 34, wide = W - left - 12, lows = Math.min(...points.map(p => p.low)), highs = Math.max(...points.map(p => p.high)), room = Math.max(0.05, (highs - lows) * 0.1), foot = Math.max(0, lows - room), top = Math.min(1, highs + room);
    const y = v => 8 + (1 - (v - foot) / (top - foot)) * (H - 34), numbers = points.map(p => Number(p.value)), scaled = numbers.every(Number.isFinite) && new Set(numbers).size > 1;
    const low = Math.min(...numbers), high = Math.max(...numbers), at = k => left + 10 + (points.length < 2 ? 0.5 : scaled ? (numbers[k] - low) / (high - low) : k / (points.length - 1)) * (wide - 20);
    const open = p => this.show(p), parts = [foot, (foot + top) / 2, top].flatMap(v => [drawing("path", {class: "tkx-grid", d: `M${left},${y(v)} H${W - 8}`}), drawing("text", {x: left - 5, y: y(v) + 4, "text-anchor": "end"}, v.toFixed(2))]);
    const order = points.map((p, k) => k).sort((a, b) => at(a) - at(b));
    parts.push(drawing("path", {class: "tkx-curve", d: order.map((k, n) => `${n ? "L" : "M"}${at(k)},${y(points[k].score)}`).join(" ")}));
    points.forEach((p, k) => parts.push(drawing("path", {class: "tkx-curve", d: `M${at(k)},${y(p.low)} V${y(p.high)} M${at(k) - 4},${y(p.low)} h8 M${at(k) - 4},${y(p.high)} h8`}),
      drawing("circle", {class: "tkx-point", cx: at(k), cy: y(p.score), r: 5, click: () => open(p)}), drawing("text", {x: at(k), y: H - 10, "text-anchor": "middle"}, String(p.value).slice(0, 14))));
    const said = p => `${field} ${p.value}: ${p.score.toFixed(2)} (${p.low.toFixed(2)} to ${p.high.toFixed(2)}), ${(p.calls / p.n).toFixed(1)} calls a question`;
    fill(this.curve, drawing("svg", {class: "tkx-plot", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `answers' worth over ${field}, with 95 % intervals`}, ...parts),
      h("p", {class: "tkx-small"}, `answers' worth over ${field}, with 95 % intervals; a point opens its questions`), ...points.map(p => h("button", {class: "tkx-button tkx-pointed", click: () => open(p)}, said(p))));
  }
  async show(p) {
    const x = this.x, {name, method} = this;
    await x.trying(async () => { await x.again(); if (x.run.name !== name) await x.openRun(name); await x.compareWith(p.run, method, p.method); this.tell(p.method); });
  }
}

