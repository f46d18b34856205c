// ── the explorer ──
export class Explorer {
  constructor(el, source, options = {}) {
    Object.assign(this, {source, options, runs: [], rows: [], shown: [], at: -1, run: null, other: null, asked: 0, can: []});
    this.build(options); this.el.explorer = this; el.append(this.el);
    this.ready = this.start(options);
  }
  async get(...path) { return this.source.get(path.map(encodeURIComponent).join("/")); }
  say(text, wrong) { fill(this.status, text); this.status.classList.toggle("tkx-error", !!wrong); }
  async trying(work) { try { return await work(); } catch (e) { this.say(String(e && e.message || e), true); } }

  build(options) {
    const select = (label, change) => h("select", {"aria-label": label, change});
    const button = (text, click, more = {}) => h("button", {class: "tkx-button", click, ...more}, text);
    this.runTable = new RunTable(this); this.finder = new TextSearch(this);
    this.runBox = select("Run", () => this.openRun(this.runBox.value));
    this.otherBox = select("Compare with", () => this.compareWith(...(this.others[this.otherBox.value] || [""])));
    this.datasetBox = select("Data set", () => this.filter()); this.methodBox = select("Method", () => this.filter());
    this.verdictBox = select("Verdict", () => this.filter()); this.sortBox = select("Sorted by", () => this.filter());
    this.searchBox = h("input", {type: "search", "aria-label": "Filter questions", placeholder: "filter questions", input: () => this.filter()});
    this.counts = h("p", {class: "tkx-small"});
    this.questions = new VirtualList({role: "listbox", label: "Questions", rowHeight: 66, draw: (row, at) => this.questionRow(row, at),
      choose: at => this.openRow(this.shown[at]), key: e => this.questionKey(e)});
    this.flipsLine = h("p", {class: "tkx-small", role: "status"});
    this.flipButtons = h("div", {class: "tkx-tools", hidden: true}, button("← flip", () => this.flip(-1), {"aria-label": "Previous flip"}), button("flip →", () => this.flip(1), {"aria-label": "Next flip"}));
    this.runsButton = button("All runs…", () => this.pane(this.el.dataset.pane === "runs" ? "questions" : "runs"));
    this.benchButton = button("Switches…", () => this.pane(this.el.dataset.pane === "switches" ? "questions" : "switches"), {"aria-expanded": "false"});
    this.copyButton = button("Copy link", () => this.copyLink(), {hidden: !options.page});
    this.exportButton = button("Export notes", () => this.exportNotes(), {hidden: true});
    this.helpButton = button("?", () => this.help(), {"aria-label": "Keyboard shortcuts"});
    this.bar = h("header", {class: "tkx-bar-top"}, h(options.page ? "h1" : "b", {class: "tkx-brand"}, "treekit explorer"), this.finder.box, this.exportButton, this.copyButton, this.helpButton);
    this.left = h("section", {class: "tkx-pane tkx-left", "aria-label": "Runs and questions"},
      h("div", {class: "tkx-tools tkx-doors"}, this.runsButton, this.benchButton), h("label", {class: "tkx-field"}, "Run", this.runBox), this.runLine = h("p", {class: "tkx-small"}),
      this.otherField = h("label", {class: "tkx-field"}, "Compare with", this.otherBox), this.flipsLine, this.flipButtons,
      this.filters = h("div", {class: "tkx-filters"}, this.datasetBox, this.methodBox, this.verdictBox, this.sortBox), this.searchBox, this.counts, this.questions.el);
    this.head = h("header", {class: "tkx-head"});
    const tapped = () => { if (this.narrow()) this.pane("node"); };
    this.tree = new TreeView({label: "Tree", select: i => this.openNode(i), enter: () => this.pane("node"), tapped});
    this.second = new TreeView({label: "The other run's tree", select: i => this.openNode(i, true), enter: () => this.pane("node"), tapped});
    this.nodeSearch = h("input", {type: "search", "aria-label": "Search the tree", placeholder: "search the tree  ( / )", input: () => this.search(),
      keydown: e => { if (e.key === "Enter") { this.tree.next(e.shiftKey ? -1 : 1); } else if (e.key === "Escape") this.tree.list.el.focus(); }});
    this.found = h("span", {class: "tkx-small", role: "status"});
    this.viewButton = button("Drawing", () => this.view(this.shownAs === "drawing" ? "outline" : "drawing"), {"aria-pressed": "false"});
    this.fitButtons = h("span", {class: "tkx-zoom"}, button("Fit", () => this.tree.fit()), button("+", () => this.tree.scale(1.25)), button("−", () => this.tree.scale(0.8)));
    [...this.fitButtons.children].slice(1).forEach((b, i) => b.setAttribute("aria-label", ["Zoom in", "Zoom out"][i]));
    this.slider = h("input", {type: "range", min: "0", "aria-label": "Iteration", input: () => this.round(+this.slider.value),
      keydown: e => { const step = {ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1}[e.key]; if (!step) return;  // JupyterLab takes these keys' own effect away
        e.preventDefault(); this.slider.value = +this.slider.value + step; this.round(+this.slider.value); }});
    this.sliderText = h("output", {}); this.sliderBox = h("label", {class: "tkx-slider"}, "Iteration ", this.slider, this.sliderText);
    this.legend = h("p", {class: "tkx-small"}, "size: visits N · fill: value Q · ring: risk · thick line: best path · +n: nodes below");
    this.trees = h("div", {class: "tkx-trees"}, h("div", {class: "tkx-one"}, this.tree.list.el, this.tree.canvas), this.secondBox = h("div", {class: "tkx-one tkx-second"}, this.secondHead = h("p", {class: "tkx-small"}), this.second.list.el));
    this.middle = h("section", {class: "tkx-pane tkx-middle", "aria-label": "Question and tree"}, this.head,
      h("div", {class: "tkx-tools"}, this.nodeSearch, this.found, button("Unfold", () => this.tree.foldAll(false)), button("Fold", () => this.tree.foldAll(true)), this.viewButton, this.fitButtons), this.sliderBox, this.legend, this.trees);
    this.right = h("section", {class: "tkx-pane tkx-right", "aria-label": "Node", tabindex: "0"});
    this.bench = new Bench(this);
    this.status = h("p", {class: "tkx-status", role: "status"});
    this.tabs = h("nav", {class: "tkx-tabs", "aria-label": "Panes"}, ...[["runs", "Runs"], ["questions", "Questions"], ["tree", "Tree"], ["node", "Node"], ["switches", "Switches"]].map(([name, text]) => button(text, () => this.pane(name), {"data-pane": name})));
    this.splitters = [this.splitter("left", "Width of the list of questions"), this.splitter("right", "Width of the node")];
    this.panes = h(options.page ? "main" : "div", {class: "tkx-panes"}, this.left, this.splitters[0], this.middle, this.splitters[1], this.right, this.bench.el, this.runTable.el, this.finder.el);
    this.helpBox = this.helpDialog();
    this.el = h("div", {class: `tkx ${options.page ? "tkx-page" : ""}`, "data-pane": "questions", "data-lm-suppress-shortcuts": "true", keydown: e => this.keys(e)}, this.bar, this.tabs, this.panes, this.status, this.helpBox);
    this.view("outline"); this.pane("questions"); this.widths = this.remembered(); this.resize();
    fill(this.right, h("p", {class: "tkx-small"}, "Choose a question, then a node. Press ? for the keys."));
  }
  narrow() { return this.el.clientWidth > 0 && this.el.clientWidth <= NARROW_PAGE; }

  // ── widths of the panes ──
  remembered() {
    let kept = null; try { kept = JSON.parse(localStorage.getItem("tkx-widths")); } catch { /* no storage for this page */ }
    return kept && typeof kept === "object" ? {left: +kept.left || 0, right: +kept.right || 0} : {left: 0, right: 0};
  }
  resize() {
    for (const side of ["left", "right"]) {
      if (this.widths[side]) this.panes.style.setProperty(`--tkx-${side}-width`, `${Math.round(this.widths[side])}px`); else this.panes.style.removeProperty(`--tkx-${side}-width`);
    }
    if (this.splitters) this.splitters.forEach((bar, n) => bar.setAttribute("aria-valuenow", Math.round(this.widths[n ? "right" : "left"] || 0)));
  }
  setWidth(side, width) {
    const other = side === "left" ? "right" : "left", most = this.panes.clientWidth - 260 - this[other].clientWidth;
    this.widths[other] ||= this[other].offsetWidth;  // the other pane stays as it is
    this.keepWidth(side, Math.max(180, Math.min(Math.max(180, most), width)));
  }
  keepWidth(side, width) {
    this.widths[side] = width; if (!width) this.widths = {left: 0, right: 0};
    this.resize();
    try { localStorage.setItem("tkx-widths", JSON.stringify(this.widths)); } catch { /* no storage for this page */ }
    this.address();
  }
  splitter(side, label) {
    const pane = () => side === "left" ? this.left : this.right, sign = side === "left" ? 1 : -1; let from = null;
    return h("div", {class: "tkx-splitter", role: "separator", tabindex: "0", "aria-orientation": "vertical", "aria-label": label, "aria-valuemin": "0", "aria-valuenow": "0", "aria-valuemax": "4000", title: "drag, or press the arrow keys; double-click: as at first",
      pointerdown: e => { from = [e.clientX, pane().offsetWidth]; e.currentTarget.setPointerCapture(e.pointerId); e.preventDefault(); },
      pointermove: e => { if (from) this.setWidth(side, from[1] + sign * (e.clientX - from[0])); }, pointerup: () => { from = null; },
      dblclick: () => this.keepWidth(side, 0),
      keydown: e => { const step = {ArrowRight: 24, ArrowLeft: -24}[e.key]; if (!step) return; e.preventDefault(); this.setWidth(side, pane().offsetWidth + sign * step); }});
  }

  // ── the state in the address: run, question, node, compared run, view, widths ──
  state() {
    const own = new URLSearchParams();
    if (this.run) own.set("run", this.run.name.slice(0, 12));
    if (this.at >= 0) own.set("row", this.at);
    if (this.tree.selected > 0 && this.tree.t) own.set("node", this.tree.t.id[this.tree.selected]);
    if (this.other) { own.set("with", this.other.name); own.set("first", this.comparison.first); own.set("second", this.comparison.second); }
    if (this.shownAs !== "outline") own.set("view", this.shownAs);
    if (this.widths.left || this.widths.right) own.set("panes", `${Math.round(this.widths.left)},${Math.round(this.widths.right)}`);
    return own.toString();
  }
  // another run, question or comparison is a new entry of the history; a node, a view or a width is not
  address() {
    if (!this.options.page || this.moving || !this.started) return;
    const hash = `#${this.state()}`, [was, is] = [location.hash, hash].map(h => new URLSearchParams(h.slice(1)));
    clearTimeout(this.later);
    if (hash === location.hash) return;
    const write = (how, text) => { try { history[how](null, "", text); } catch { /* a file in a frame has no history */ } };
    if (!["run", "row", "with", "second"].every(key => was.get(key) === is.get(key))) write("pushState", hash);
    else this.later = setTimeout(() => { if (!this.moving) write("replaceState", `#${this.state()}`); }, 150);  // who walks through nodes writes once
  }
  // several steps that are one entry of the history
  async together(work) { this.moving = (this.moving || 0) + 1; try { return await work(); } finally { this.moving--; this.address(); } }
  asked_for() { return this.options.page ? Object.fromEntries(new URLSearchParams(location.hash.slice(1))) : {}; }
  async restore(wanted) {
    await this.together(async () => {
      if (wanted.panes) { const [left, right] = wanted.panes.split(",").map(Number); this.widths = {left: left || 0, right: right || 0}; this.resize(); }
      const known = this.runs.find(r => r.name.startsWith(wanted.run || "-"));
      if (wanted.run && !known) this.say(`There is no run ${cut(wanted.run, 40)} here.`, true);
      if (known && (!this.run || this.run.name !== known.name)) await this.openRun(known.name);
      const other = this.runs.find(r => r.name.startsWith(wanted.with || "-"));
      if (other && wanted.second) await this.compareWith(other.name, wanted.first || null, wanted.second, false); else if (other) await this.compareWith(other.name, null, undefined, false); else if (this.other) await this.compareWith("");
      if (wanted.row != null && this.rows[+wanted.row]) { if (+wanted.row !== this.at || this.row !== this.rows[this.at]) await this.openRow(+wanted.row, false); if (wanted.node == null && this.narrow()) this.pane("tree"); }
      const place = wanted.node != null && this.tree.t ? this.tree.place.get(+wanted.node) : undefined;
      if (place !== undefined) this.tree.pick(place);
      if (["outline", "drawing"].includes(wanted.view || "outline")) this.view(wanted.view || "outline");
    });
  }
  async copyLink() {
    const text = this.source.link ? this.source.link(this.state()) : `${location.href.split("#")[0]}#${this.state()}`;
    let done = true; try { await navigator.clipboard.writeText(text); } catch { done = false; }
    this.say(done ? `Copied. ${this.source.link ? "It opens on this machine while the command runs; treekit explore --html FILE makes a file for other machines." : ""}` : text);
  }

  // ── keys ──
  helpDialog() {
    const keys = [["↑ ↓ PageUp PageDown Home End", "walk through questions or nodes"], ["→ ← space", "unfold, fold"], ["*", "unfold all"], ["Enter", "open: from questions to the tree, from the tree to the node"], ["/", "search the tree"], ["n N", "next and previous found node"],
      ["e", "first wrong node"], ["d", "drawing"], ["+ − 0", "zoom, fit"], ["f F", "next and previous flipped question"], ["g", "full-text search of the run"], ["r", "all runs"], ["s", "switches"], ["?", "this help"], ["Esc", "close"]];
    return h("dialog", {class: "tkx-help", "aria-label": "Keyboard shortcuts"}, h("h2", {}, "Keys"), h("table", {}, ...keys.map(([key, text]) => h("tr", {}, h("th", {scope: "row"}, key), h("td", {}, text)))),
      h("p", {class: "tkx-small"}, "The lines between the panes can be dragged. The address holds run, question, node and comparison."), h("button", {class: "tkx-button", click: () => this.helpBox.close()}, "Close"));
  }
  help() { if (this.helpBox.open) this.helpBox.close(); else this.helpBox.showModal(); }
  pane(name) {
    this.el.dataset.pane = name;
    for (const b of this.tabs.children) b.setAttribute("aria-pressed", String(b.dataset.pane === name));
    if (this.shownAs === "drawing") this.tree.paint();
    this.benchButton.setAttribute("aria-expanded", String(name === "switches"));
    if (name === "switches") this.bench.open();
    if (name === "runs") this.runTable.open();
  }
  view(as) {
    this.shownAs = as;
    this.viewButton.setAttribute("aria-pressed", String(as === "drawing")); this.viewButton.textContent = as === "drawing" ? "Outline" : "Drawing";
    this.tree.list.el.hidden = as !== "outline"; this.tree.canvas.hidden = as !== "drawing"; this.fitButtons.hidden = as !== "drawing"; this.legend.hidden = as !== "drawing" || !(this.tree.t && this.tree.t.search);
    this.tree.list.paint(); this.tree.paint(); this.address();
  }
  keys(e) {
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) || e.ctrlKey || e.metaKey || e.altKey || this.helpBox.open) return;
    const pane = this.el.dataset.pane;
    if (e.key === "/") { this.pane("tree"); this.nodeSearch.focus(); e.preventDefault(); }
    else if (e.key === "d") this.view(this.shownAs === "drawing" ? "outline" : "drawing");
    else if (e.key === "e") this.toError();
    else if (e.key === "f" || e.key === "F") this.flip(e.key === "f" ? 1 : -1);
    else if (e.key === "g") { this.finder.box.focus(); e.preventDefault(); }
    else if (e.key === "r") { this.pane("runs"); e.preventDefault(); }
    else if (e.key === "s") { this.pane("switches"); this.bench.el.focus(); }
    else if (e.key === "?") this.help();
    else if (e.key === "Escape" && ["switches", "runs", "found"].includes(pane)) { this.pane("questions"); (pane === "switches" ? this.benchButton : this.runsButton).focus(); }
  }
  async start(options) {
    if (options.note) this.missing(options.note);
    await this.trying(async () => {
      const known = await this.get("runs"), wanted = this.asked_for();
      this.can = known.can || []; this.runs = known.runs;
      if (!this.runs.length) { this.say("No run is saved here yet: run `treekit ask`, `treekit reproduce`, or treekit.experiments.run in a notebook."); return; }
      const first = options.run || known.open || this.runs[0].name, other = options.other || known.other;
      this.offer(this.runs[0].name);
      if (wanted.run) await this.restore(wanted);
      if (!this.run) {
        await this.openRun(first);
        if (other) await this.compareWith(other);
        const row = wanted.row != null ? +wanted.row : options.row;
        if (row != null) await this.openRow(row);
      }
      this.started = true; this.address();
      if (options.page) document.addEventListener("keydown", e => { if (e.target === document.body) { this.keys(e); if (/^(Arrow|Page|Home|End|Enter)/.test(e.key) && this.questionKey(e)) { this.questions.el.focus(); e.preventDefault(); } } });
      if (options.page) addEventListener("popstate", () => this.trying(() => this.restore(this.asked_for())));
      this.resume(known.job);
      if (this.source.live) this.watch();
    });
  }
  // a served page follows the store: new runs are offered, and a run in progress grows
  watch() {
    let asking = false;  // one question at a time, however long the last one takes
    setInterval(async () => {
      if (document.hidden || this.busy || asking) return;
      asking = true;
      try {
        const known = await this.source.get("runs"), before = new Set(this.runs.map(r => r.name)), come = known.runs.filter(r => !before.has(r.name));
        const changed = come.length || known.runs.length !== this.runs.length;
        if (changed) { this.know(known.runs); if (this.el.dataset.pane === "runs") { this.runTable.draw(); this.runTable.load(); } }
        this.resume(known.job);
        if (come.length) this.say(`New run: ${cut(come[0].label, 100)}`);
      } catch { /* the command has ended: what is shown stays */ }
      finally { asking = false; }
    }, 3000);
  }
  know(runs) { const old = new Map(this.runs.map(r => [r.name, r])); this.runs = runs.map(r => ({...r, summary: old.get(r.name) ? old.get(r.name).summary : undefined})); this.offer(); }
  offer() {
    const at = this.runBox.value, named = r => `${cut(r.label, 90)} · ${day(r.time)} · ${r.name.slice(0, 6)}`, option = r => h("option", {value: r.name}, named(r));
    fill(this.runBox, ...this.runs.map(option));
    if (at) this.runBox.value = at;
    const chosen = this.runs.find(r => r.name === this.runBox.value);
    fill(this.runLine, chosen ? named(chosen) : "");  // a list shows the beginning of a long name only
    // every run, and every method of a run that has several
    this.others = Object.assign(Object.create(null), {});
    const entry = (key, text, ...what) => { this.others[key] = what; return h("option", {value: key}, text); };
    const own = this.run ? this.run.head.methods : [];
    fill(this.otherBox, h("option", {value: ""}, "nothing"), ...this.runs.flatMap(r => r.methods.length < 2 && own.length < 2 ? (this.run && r.name === this.run.name ? [] : [entry(r.name, named(r), r.name)])
      : [h("optgroup", {label: named(r)}, ...r.methods.map(m => entry(`${r.name}/${m}`, m, r.name, null, m)))]));
    this.otherField.hidden = this.runs.length < 2 && own.length < 2;
  }
  labelOf(name) { const r = this.runs.find(r => r.name === name); return r ? cut(r.label, 80) : name.slice(0, 6); }
  async openRun(name) { await this.trying(() => this.together(() => this.opened(name))); }
  async opened(name) {
    await this.trying(async () => {
      const found = await this.get("run", name);
      this.run = found; this.rows = found.rows; this.at = -1; this.row = null; this.other = null; this.flips = null; this.runBox.value = found.name; this.offer(); this.otherBox.value = "";
      const options = (box, all, values) => { fill(box, h("option", {value: ""}, all), ...values.map(v => h("option", {value: v}, v))); box.hidden = values.length < 2; };
      options(this.datasetBox, "all data sets", [...new Set(this.rows.map(r => r.dataset))]);
      options(this.methodBox, "all methods", [...new Set(this.rows.map(r => r.method))]);
      this.notesChanged();
      fill(this.sortBox, ...[["", "as they were asked"], ["value", "wrong first"], ["kind", "first wrong node"], ["tokens", "most tokens"], ["words", "longest question"], ["nodes", "largest tree"]].map(([v, t]) => h("option", {value: v}, t)));
      this.secondBox.hidden = true; this.flipButtons.hidden = true; fill(this.flipsLine); this.filter();
      if (this.el.dataset.pane === "switches") this.bench.open();
      if (this.shown.length) await this.openRow(this.shown[0], false);
    });
  }
  verdicts() {
    const kinds = [...new Set(this.rows.map(r => r.wrong.kind).filter(k => k))];
    const flips = this.flips ? ["flipped", "gained", "lost", ...this.flips["answer changed"].size ? ["answer changed"] : [], "without partner"] : [], notes = this.rows.some(r => r.note) ? ["annotated"] : [], was = this.verdictBox.value;
    fill(this.verdictBox, h("option", {value: ""}, "right and wrong"), ...["right", "wrong", ...kinds.map(k => `wrong: ${k}`), ...flips, ...notes].map(v => h("option", {value: v}, v)));
    if ([...this.verdictBox.options].some(o => o.value === was)) this.verdictBox.value = was;
  }
  filter() {
    const text = this.searchBox.value.trim().toLowerCase(), verdict = this.verdictBox.value, sort = this.sortBox.value;
    const fits = r => (!this.datasetBox.value || r.dataset === this.datasetBox.value) && (!this.methodBox.value || r.method === this.methodBox.value)
      && (!text || `${r.question} ${r.answer} ${r.golds.join(" ")} ${r.id} ${r.note ? r.note.text : ""}`.toLowerCase().includes(text))
      && (!verdict || (verdict === "right" ? r.value >= 1 && r.value != null : verdict === "wrong" ? r.value != null && r.value < 1 : verdict === "annotated" ? !!r.note : this.flips && this.flips[verdict] ? this.flips[verdict].has(r.i) : `wrong: ${r.wrong.kind}` === verdict));
    const key = {value: r => r.value == null ? 2 : r.value, kind: r => r.wrong.kind || "~", tokens: r => -r.tokens, words: r => -r.words, nodes: r => -r.nodes}[sort];
    const rows = this.rows.filter(fits);
    if (key) rows.sort((a, b) => key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a.i - b.i);
    this.shown = rows.map(r => r.i);
    const judged = rows.filter(r => r.value != null), right = some => `${some.filter(r => r.value >= 1).length} of ${some.length} right`, methods = [...new Set(judged.map(r => r.method))];
    const scores = methods.length > 1 ? methods.map(m => `${cut(m, 40)} ${right(judged.filter(r => r.method === m))}`).join(", ") : right(judged);  // methods aren't pooled
    fill(this.counts, `${plural(rows.length, "answer")}, ${scores}, ${plural(rows.reduce((s, r) => s + r.calls, 0), "call")}, ${plural(rows.reduce((s, r) => s + r.tokens, 0), "token")}`);
    this.questions.show(this.shown.length, this.shown.indexOf(this.at));
  }
  questionRow(row, at) {
    const r = this.rows[this.shown[at]], verdict = this.verdict(r), several = (box, value) => box.options.length > 2 && !box.value ? ` · ${value}` : "";
    row.setAttribute("role", "option"); row.setAttribute("aria-setsize", this.shown.length); row.setAttribute("aria-posinset", at + 1);
    const flip = this.flips && (this.flips.gained.has(r.i) ? "gained" : this.flips.lost.has(r.i) ? "lost" : this.flips["answer changed"].has(r.i) ? "answer changed" : "");
    const answer = cut(r.answer || r.error || "(none)", 60), gold = r.golds.length ? ` · gold ${cut(r.golds.join("; "), 60)}` : "";
    fill(row, h("span", {class: `tkx-verdict tkx-is-${verdict[1]}`}, verdict[0]), h("span", {class: "tkx-two"}, h("span", {class: "tkx-asked"}, flip ? h("b", {}, `${flip} · `) : "", r.note ? "✎ " : "", cut(r.question, 240)),
      h("span", {class: "tkx-small tkx-line"}, h("b", {}, answer), gold, r.wrong.kind ? ` · ${r.wrong.kind}` : "", several(this.methodBox, r.method), several(this.datasetBox, r.dataset))));
  }
  verdict(r) { return r.value == null ? ["–", "open"] : r.value >= 1 ? ["✓", "right"] : r.value > 0 ? ["◐", "part"] : ["✗", "wrong"]; }
  questionKey(e) {
    const at = this.shown.indexOf(this.at), last = this.shown.length - 1, step = {ArrowDown: 1, ArrowUp: -1, PageDown: this.questions.page(), PageUp: -this.questions.page(), Home: -1e9, End: 1e9}[e.key];
    if (step) { this.openRow(this.shown[Math.max(0, Math.min(last, at + step))], false); return true; }
    if (e.key === "Enter" || e.key === "ArrowRight") { this.pane("tree"); (this.shownAs === "drawing" ? this.tree.canvas : this.tree.list.el).focus(); return true; }
    return false;
  }
  async openRow(i, go = true) {
    if (i == null || !this.rows[i]) return;
    const asked = ++this.asked;
    if (go) this.pane("tree");  // at once: a pane that is chosen while the tree is read stays
    await this.trying(async () => {
      this.at = i; this.questions.at = this.shown.indexOf(i); this.questions.reveal(Math.max(0, this.questions.at));
      const own = this.rows[i], open = this.can.includes("fork") && this.run.free && own.value != null && own.value < 1 && !own.wrong.why;
      const [tree, found] = await Promise.all([this.get("tree", this.run.name, i), open ? this.get("wrong", this.run.name, i) : own.wrong]);
      own.wrong = found;
      if (asked !== this.asked) return;
      this.row = own; this.nodeShown = ""; this.tree.show(tree); this.flagged(this.tree, this.row.wrong); this.header();
      this.nodeSearch.value = ""; fill(this.found);
      const rounds = tree.search ? tree.search.rounds : 0;
      this.sliderBox.hidden = !rounds; this.legend.hidden = !rounds || this.shownAs !== "drawing"; this.slider.max = rounds; this.slider.value = rounds; this.round(rounds);
      const wrong = this.row.wrong.node != null ? this.tree.place.get(this.row.wrong.node) : undefined;
      if (!this.tree.n) { this.nodeAsked = (this.nodeAsked || 0) + 1; fill(this.right, h("h2", {}, "no tree"), h("p", {class: "tkx-small"}, this.row.error || "The answer has no steps.")); }
      this.tree.pick(wrong ?? 0);
      const picks = this.tree.picks;  // who has moved on meanwhile stays where they are
      await this.align();
      if (asked === this.asked && this.parted != null && picks === this.tree.picks) this.tree.pick(this.parted);
      if (asked === this.asked) this.address();
    });
  }
  flagged(view, wrong) { if (wrong.node != null && view.place.has(wrong.node)) view.flags.set(view.place.get(wrong.node), wrong.kind); view.list.paint(); }
  round(n) {
    if (!this.tree.t) return;
    this.tree.setRound(n); fill(this.sliderText, ` ${n} of ${this.slider.max}`); this.slider.setAttribute("aria-valuetext", `${n} of ${this.slider.max}`);
  }
  header(span) {
    const r = this.row, v = this.verdict(r), q = r.question;
    const asked = span && q.length <= 2000 ? [q.slice(0, span[0]), h("mark", {}, q.slice(...span)), q.slice(span[1])] : brief(q);
    const error = r.wrong.kind && (r.wrong.node != null ? h("button", {class: "tkx-button", click: () => this.toError()}, `first wrong node: ${r.wrong.kind}`) : h("span", {class: "tkx-small"}, `${r.wrong.kind}: `));
    fill(this.head, h("h2", {}, ...asked), h("p", {}, h("b", {}, "answer "), h("span", {class: `tkx-verdict tkx-is-${v[1]}`}, v[0]), " ", ...brief(r.answer || r.error || "(none)")),
      h("p", {}, h("b", {}, "gold "), ...(this.expected(r) || brief(r.golds.join("; ") || "–"))), (error || r.wrong.why) && h("p", {class: "tkx-small"}, error, " ", ...brief(r.wrong.why)),
      r.steps.length ? h("details", {class: "tkx-small"}, h("summary", {}, `gold steps: ${r.steps.length}`), h("ol", {}, ...r.steps.map(([q, a]) => h("li", {}, `${q} → ${a}`)))) : null,
      h("p", {class: "tkx-small"}, `${r.method} · ${r.dataset} · ${r.id} · ${plural(r.calls, "call")} · ${plural(r.tokens, "token")} · ${dollars(r.dollars)} · ${r.seconds} s`),
      this.annotation(r), ...this.tree.t.remarks.map(n => h("p", {class: "tkx-small"}, "! ", ...brief(n))));
  }
  // ── annotations: right, wrong, a note, the answer that was expected; saved with the run ──
  noted(r, changed) {
    const {verdict, text, gold} = {verdict: "", text: "", gold: "", ...r.note, ...changed};
    return this.trying(() => this.source.post(`note/${encodeURIComponent(this.run.name)}/${r.i}`, {verdict, text, gold}));
  }
  // a question of one's own has no gold answer: it can be typed in, and the answer is judged by it
  expected(r) {
    const own = (r.note || {}).gold || "";
    if (!this.can.includes("note") || (r.golds.length && !own)) return null;
    const box = h("input", {type: "text", "aria-label": "expected answer", placeholder: "expected answer (none is known)", size: "30", maxlength: "2000", title: "“ / ” separates other wordings", change: async () => {
      const {name} = this.run, other = this.other && [this.other.name, this.comparison.first, this.comparison.second];
      if (!await this.noted(r, {gold: box.value.trim()})) return;
      await this.trying(async () => {
        const found = await this.get("run", name);
        if (this.run.name !== name) return;
        this.run = found; this.rows = found.rows; this.runs.forEach(known => { if (known.name === name) known.summary = undefined; });
        this.notesChanged(); this.filter(); await this.openRow(r.i, false);
        if (other) await this.compareWith(...other, false);
      });
    }});
    box.value = own; return [box];
  }
  annotation(r) {
    const note = r.note || {verdict: "", text: ""};
    if (!this.can.includes("note")) return r.note ? h("p", {class: "tkx-small"}, h("b", {}, "note "), note.verdict, note.text ? ` ${note.text}` : "") : null;
    const save = async changed => {
      const made = await this.noted(r, changed);
      if (!made) return;
      r.note = made.note; this.notesChanged(); this.questions.paint();
      if (this.row === r) this.header(this.tree.t.spans[this.tree.selected]);
    };
    const mark = (value, text) => h("button", {class: "tkx-button", "aria-pressed": String(note.verdict === value), click: () => save({verdict: note.verdict === value ? "" : value})}, text);
    const words = h("input", {type: "text", "aria-label": "note on this answer", placeholder: "note", maxlength: "2000", change: () => save({text: words.value})}); words.value = note.text;
    return h("div", {class: "tkx-tools tkx-annotation"}, h("span", {class: "tkx-small"}, "Your judgement:"), mark("right", "✓ right"), mark("wrong", "✗ wrong"), words);
  }
  notesChanged() { this.exportButton.hidden = !this.rows.some(r => r.note); this.verdicts(); }
  exportNotes() {
    const cell = v => `"${(/^[=+\-@\t\r]/.test(String(v ?? "")) ? `'${v}` : String(v ?? "")).replaceAll('"', '""')}"`, head = ["run", "method", "dataset", "id", "question", "gold", "answer", "value", "verdict", "note"];
    const lines = this.rows.filter(r => r.note).map(r => [this.run.name, r.method, r.dataset, r.id, r.question, r.golds.join("; "), r.answer, r.value, r.note.verdict, r.note.text]);
    const address = URL.createObjectURL(new Blob([[head, ...lines].map(line => line.map(cell).join(",")).join("\r\n") + "\r\n"], {type: "text/csv"}));
    const link = h("a", {href: address, download: `notes-${this.run.name.slice(0, 6)}.csv`}); link.click(); setTimeout(() => URL.revokeObjectURL(address), 10000);
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
      if (asked === this.nodeAsked) { this.showNode(node, view, i, second); this.nodeShown = which; if (!second) this.address(); }
    });
  }
  // the same node in the other run, and what is different there
  against(node) {
    if (!this.other || !this.aligned) return null;
    const id = this.aligned.get(node.id), other = this.labelOf(this.other.name), derived = this.other.head.about.parent || other === this.comparison.second, head = `Against ${this.comparison.second}${derived ? "" : ` (${other})`}`;
    if (id == null) return h("section", {}, h("h3", {}, head), h("p", {class: "tkx-small"}, "The other run has no such node."));
    const box = h("div", {}, h("p", {class: "tkx-small"}, "comparing…"));
    this.get("node", this.other.name, this.partner, id).then(its => fill(box, nodeDiff(node, its)), e => fill(box, h("p", {class: "tkx-small"}, String(e.message || e))));
    return h("section", {class: "tkx-against"}, h("h3", {}, head), box);
  }
  showNode(node, view, i, second) {
    const t = view.t, kids = [];
    for (let c = i + 1; c < t.end[i] && kids.length < 20; c = t.end[c]) kids.push(c);
    const go = (j, text) => h("button", {class: "tkx-button", click: () => view.pick(j)}, text);
    const part = (title, ...inside) => inside.length ? h("section", {}, h("h3", {}, title), ...inside) : null;
    const facts = node.facts.map(([name, text]) => h("div", {class: text.length < 50 && !text.includes("\n") ? "tkx-fact tkx-brief" : "tkx-fact"}, h("h4", {}, name), longText(text)));
    const run = second ? this.other.name : this.run.name, at = second ? this.partner : this.at;
    const parsed = node.parsed ? h("div", {class: "tkx-parse"}, h("p", {class: "tkx-small"}, "reading it…")) : null;  // as high before it is read as after: nothing below moves
    if (parsed) this.trying(() => this.parses(parsed, run, at, node.id, second));
    fill(this.right, h("h2", {}, second ? "other run: " : "", cut(node.kind, 200)), longText(node.text), h("p", {class: "tkx-small"}, view.markOf(i)),
      h("p", {class: "tkx-near"}, t.parent[i] >= 0 ? go(t.parent[i], "↑ above") : null, ...kids.map((c, n) => go(c, `↓ ${n + 1}`))),
      ...node.notes.map(n => h("p", {class: "tkx-warn"}, "! ", ...brief(n))), !second && this.against(node),
      parsed && part("Dependency tree", parsed), part(`Passages (${node.hits.length})`, ...node.hits.length ? node.hits.map((hit, n) => this.passage(hit, n, node, second)) : []),
      part("What was read", ...facts), node.document && this.documentOf(node.document), !second && this.forkOfRoute(node.routed),
      part(`Calls (${node.calls.length})`, ...node.calls.map((call, n) => this.call(call, n, second))),
      ...node.thinking.map(text => part("Thinking", longText(text))), !second && this.forkOfNode(node));
    this.right.scrollTop = 0;
  }
  passage(hit, n, node, second) {
    const bar = hit.informativeness != null ? h("span", {class: "tkx-bar", role: "img", "aria-label": `informativeness ${hit.informativeness}`}, h("i", {style: `width:${Math.max(0, Math.min(1, hit.informativeness)) * 60}px`})) : null;
    const more = [hit.note, ...(hit.entities || []).map(e => `${e.name}: importance ${e.importance}, rank ${e.rank}`)].filter(Boolean);
    return h("div", {class: "tkx-hit"}, h("details", {class: "tkx-passage"}, h("summary", {}, `${n + 1}. ${hit.title || hit.id} `, hit.gold && h("span", {class: "tkx-badge tkx-gold"}, "supporting"), hit.marks.length ? h("span", {class: "tkx-badge tkx-gold"}, "gold answer") : null,
      h("span", {class: "tkx-small"}, ` score ${hit.score}`), bar, hit.informativeness != null && h("span", {class: "tkx-small"}, ` informativeness ${hit.informativeness}`)),
      hit.text ? longText(hit.text, hit.marks) : h("p", {class: "tkx-small"}, "its text isn't at hand here; the prompt below has what the model read"), ...more.map(m => h("p", {class: "tkx-small"}, m))));
  }
  call(call, n, second) {
    if (call.missing) return h("p", {class: "tkx-small"}, `call ${call.key.slice(0, 12)} isn't in this store`);
    const took = `${call.model} · ${plural(call.tokens_in, "token")} in, ${call.tokens_out} out · ${dollars(this.run.free ? 0 : call.dollars)} · ${call.seconds.toFixed(2)} s`;
    const reply = call.score != null ? h("p", {}, `log-probability of the text below: ${call.score}`) : null;
    return h("details", {class: "tkx-call", open: n === 0}, h("summary", {}, `call ${n + 1} `, h("span", {class: "tkx-small"}, took)),
      h("details", {}, h("summary", {}, "prompt as sent"), ...call.messages.map(([role, text]) => h("div", {}, h("h4", {}, role), longText(text)))),
      h("h4", {}, call.score != null ? "scored" : "reply as received"), reply, longText(call.score != null ? call.continuation : call.reply),
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
  async compareWith(name, first, second, jump = true) { await this.together(() => this.compared(name, first, second, jump)); }
  async compared(name, first, second, jump) {
    this.other = null; this.flips = null; this.aligned = null; this.secondBox.hidden = true; this.flipButtons.hidden = true; this.nodeShown = ""; fill(this.flipsLine);
    if (!name) { this.verdicts(); this.filter(); return; }
    await this.trying(async () => {
      const mine = first || (second ? this.methodBox.value || (this.row && this.row.method) || this.run.head.methods[0] : null);
      const [found, run] = [await this.get("compare", this.run.name, name, ...mine ? [mine, second] : []), await this.get("run", name)];
      this.otherBox.value = this.others[name] ? name : `${name}/${found.second}`; this.other = run; this.comparison = found;
      if (mine && this.run.head.methods.length > 1) { this.methodBox.value = mine; this.filter(); if (this.rows[this.at] && this.rows[this.at].method !== mine) this.at = -1; }
      this.partners = new Map([...found.pairs, ...found.unjudged].map(p => [p[2], p[3]]));
      const set = ns => new Set(ns.map(n => found.pairs[n][2])), [gained, lost] = [set(found.gained), set(found.lost)];
      const changed = new Set(found.changed.map(n => found.unjudged[n][2]));  // without a gold answer: another answer
      this.flips = {flipped: new Set([...gained, ...lost, ...changed]), gained, lost, "answer changed": changed, "without partner": new Set(found.alone.filter(a => a[2] === "first").map(a => a[3]))};
      fill(this.flipsLine, this.saidOf(found)); this.flipButtons.hidden = !this.flips.flipped.size;
      this.verdicts(); this.filter();
      const flipped = this.shown.filter(i => this.flips.flipped.has(i)), here = this.at >= 0 && (!jump || this.flips.flipped.has(this.at));
      await this.openRow(here ? this.at : flipped[0] ?? (this.at < 0 ? this.shown[0] : this.at), false);
    });
  }
  saidOf(found) {
    const alone = found.alone.length ? `; ${found.alone.length} without a partner` : "";
    const changed = found.unjudged.length ? `${found.changed.length} of ${found.unjudged.length} answers without a gold answer changed` : "";
    if (found.pairs.length + found.unjudged.length === 1) {  // a fork: one question has no test
      const [, , i, j] = [...found.pairs, ...found.unjudged][0], said = r => `${this.verdict(r)[0]} ${cut(r.answer || r.error || "(none)", 60)}`;
      return `${found.second} against ${found.first}, on one question: ${said(this.rows[i])} → ${said(this.other.rows[j])}`;
    }
    if (changed && !found.pairs.length) return `${found.second} against ${found.first}: ${changed}${alone}`;
    const effect = found.effect ? `; ${signed(found.effect[0])} (${interval(found.effect[1], found.effect[2])})` : "";
    return `${found.second} against ${found.first}: gains ${found.gained.length}, loses ${found.lost.length} of ${found.pairs.length}; McNemar's p ${pText(found.p)}${effect}${changed && `; ${changed}`}${alone}`;
  }
  // the next question whose answer is right in one run and wrong in the other, or is another one
  flip(way) {
    if (!this.flips) return;
    const all = this.shown.filter(i => this.flips.flipped.has(i)), places = all.map(i => this.shown.indexOf(i)), at = this.shown.indexOf(this.at);
    if (!all.length) { this.say("No question flips."); return; }
    const next = way > 0 ? places.find(p => p > at) ?? places[0] : places.findLast(p => p < at) ?? places[places.length - 1];
    this.openRow(this.shown[next], false);
  }
  async align() {
    this.parted = null; this.aligned = null; this.secondBox.hidden = true;
    if (!this.other || !this.partners.has(this.at)) return;
    this.partner = this.partners.get(this.at);
    const at = this.at, tree = await this.get("tree", this.other.name, this.partner), found = await this.get("align", this.run.name, at, this.other.name, this.partner);
    if (at !== this.at) return;
    const r = this.other.rows[this.partner], v = this.verdict(r);
    this.aligned = new Map(found.pairs.filter(([a, b]) => a != null && b != null)); this.nodeShown = "";
    this.secondBox.hidden = false; fill(this.secondHead, `other run, ${cut(this.comparison.second, 60)}: ${v[0]} ${cut(r.answer || r.error, 200)}`); this.second.show(tree); this.flagged(this.second, r.wrong);
    found.pairs.forEach(([a, b, differs], n) => {
      const said = n === found.parted ? "first difference" : differs ? "differs" : null;
      if (!said) return;
      if (a != null) this.tree.flags.set(this.tree.place.get(a), said);
      if (b != null) this.second.flags.set(this.second.place.get(b), said);
    });
    this.tree.list.paint(); this.second.list.paint();
    if (found.parted != null) { const [a, b] = found.pairs[found.parted]; if (a != null) this.parted = this.tree.place.get(a); if (b != null) this.second.pick(this.second.place.get(b), false); }
    else if (this.tree.selected >= 0) this.openNode(this.tree.selected);
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
    const kept = node.hits.map((hit, n) => [hit, h("input", {type: "checkbox", checked: true, "aria-label": `the fork finds passage ${n + 1}`})]), left = () => kept.some(([, box]) => !box.checked);
    return h("details", {class: "tkx-fork"}, h("summary", {}, "Fork: other queries or passages"), ...boxes,
      h("button", {class: "tkx-button", click: () => asked().length ? this.fork({queries: asked()}) : this.say("Change a query first.")}, "Search these instead"),
      ...queries.length === 1 && node.hits.length ? [h("p", {class: "tkx-small"}, "Passages that the fork finds:"), ...kept.map(([hit, box], n) => h("label", {class: "tkx-route"}, box, ` ${n + 1}. ${cut(hit.title || hit.id, 100)}`)),
        h("button", {class: "tkx-button", click: () => left() ? this.fork({passages: [[queries[0], kept.filter(([, box]) => box.checked).map(([hit]) => hit.id)]]}) : this.say("Untick the passages that the fork is not to find.")}, "Find only the ticked passages")] : []);
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
    const parent = this.run.name, method = this.row.method, at = this.at;
    await this.trying(async () => {
      const made = await this.work("The fork", `fork/${encodeURIComponent(parent)}/${at}`, edits);
      if (!made) return;
      await this.again();
      if (this.run.name !== parent) { await this.openRun(parent); await this.openRow(at, false); }
      await this.compareWith(made.run, method, made.method, false);  // as it was on the left, changed on the right
      this.say(`Fork: ${made.found} calls from the store, ${made.asked} asked, ${dollars(made.dollars)}. Answer: ${made.answer || made.error || "(none)"}`, !!made.error);
    });
  }
  async again() { this.know((await this.get("runs")).runs); }
  // begins something, shows how far it is with a button that stops it, and returns what came of it
  async work(title, path, body, seen = () => {}) {
    this.busy = true;
    try { return await this.followed(title, (await this.source.post(path, body)).job, seen); } finally { this.busy = false; }
  }
  // what was begun before F5, or in another tab: followed to its end, with the same button that stops it
  async resume(job) {
    if (!job || this.busy) return;
    this.busy = true;
    try {
      await this.trying(async () => {
        const title = `${job.title[0].toUpperCase()}${job.title.slice(1)}`, found = await this.followed(title, job.id, () => {});
        if (!found) return;
        await this.again();
        const open = name => h("button", {class: "tkx-button", click: () => this.openRun(name)}, `Open run ${name.slice(0, 6)}`);
        this.say(`${title} has ended. `);
        this.status.append(...[found, ...found.points || []].filter(f => f.run).map(f => open(f.run)));
      });
    } finally { this.busy = false; }
  }
  async followed(title, job, seen) {
    const text = h("span", {}, `${title} runs…`), bar = h("progress", {"aria-label": title});
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
    for (const arcs of box.querySelectorAll(".tkx-arcs")) {  // the node's words are in view
      const marks = [...arcs.querySelectorAll(".tkx-marked")].map(m => m.getBoundingClientRect()), own = arcs.getBoundingClientRect();
      if (marks.length && marks[marks.length - 1].right > own.right) arcs.scrollLeft = marks[0].left - own.left - 20;
    }
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
    return h("div", {class: "tkx-arcs", tabindex: "0", role: "group", "aria-label": "dependency tree"}, drawing("svg", {role: "img", "aria-label": `word ← head: ${said}`, width: at + 8, height: base + 26, viewBox: `0 0 ${at + 8} ${base + 26}`, style: `min-width:${Math.round((at + 8) * SMALLEST_ARCS)}px`}, ...svg));
  }
  forkOfHead(text, {n, words, heads}) {
    const box = (label, first) => h("select", {"aria-label": label}, ...first, ...words.map((w, i) => h("option", {value: i + 1}, `${i + 1} ${w}`)));
    const word = box("word", []), head = box("its new head", [h("option", {value: 0}, "the root")]);
    word.addEventListener("change", () => { head.value = heads[word.value - 1]; }); head.value = heads[0];
    return h("details", {class: "tkx-fork"}, h("summary", {}, "Fork: another edge of the parse"), h("div", {class: "tkx-tools"}, word, " below ", head,
      h("button", {class: "tkx-button", click: () => +head.value === heads[word.value - 1] ? this.say("Choose another head first.") : this.fork({heads: [[text, n, heads.map((hd, i) => i + 1 === +word.value ? +head.value : hd)]]})}, "Hang it there")));
  }
}

