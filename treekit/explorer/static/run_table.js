// ── tables over the panes: all runs, and what was found in the texts ──
const SHOWN_RUNS = 200, COLUMNS = [
  ["time", "date", r => -r.time], ["label", "run", r => r.label.toLowerCase()], ["artefact", "table or figure", r => (r.about.artefact || "~")],
  ["methods", "methods", r => r.methods.join(", ").toLowerCase()], ["data", "data", r => Object.keys(r.datasets).join(", ")],
  ["n", "n", r => -questionsOf(r)], ["score", "score", r => -(bestOf(r) ?? -1)], ["calls", "calls a question", r => -(sumOf(r, "calls") ?? -1)],
  ["dollars", "cost", r => -(sumOf(r, "dollars") ?? -1)]];
const questionsOf = r => Object.values(r.datasets).reduce((a, b) => a + b, 0);
const scoresOf = r => r.summary ? r.summary.methods.map(m => m.score).filter(s => s != null) : [];
const bestOf = r => { const own = scoresOf(r); return own.length ? Math.max(...own) : null; };
const sumOf = (r, what) => r.summary && r.summary.methods.every(m => m[what] != null) ? r.summary.methods.reduce((s, m) => s + m[what], 0) : null;

class RunTable {
  constructor(explorer) {
    Object.assign(this, {x: explorer, sort: "time", turned: false, most: SHOWN_RUNS});
    this.filterBox = h("input", {type: "search", "aria-label": "Filter runs", placeholder: "filter: method, data, table, date", input: () => this.draw()});
    this.count = h("p", {class: "tkx-small", role: "status"});
    this.body = h("tbody", {});
    this.heads = COLUMNS.map(([key, text]) => h("th", {scope: "col", class: `tkx-of-${key}`}, h("button", {class: "tkx-sort", click: () => { this.turned = this.sort === key && !this.turned; this.sort = key; this.draw(); }}, text)));
    this.el = h("section", {class: "tkx-over tkx-runs", "aria-label": "Runs"}, h("div", {class: "tkx-tools"}, h("h2", {}, "Runs"), this.filterBox, this.count, h("button", {class: "tkx-button", "aria-label": "Close the runs", click: () => this.x.pane("questions")}, "×")),
      h("div", {class: "tkx-scroll", tabindex: "0", role: "group", "aria-label": "table of runs"}, h("table", {}, h("thead", {}, h("tr", {}, ...this.heads, h("th", {scope: "col"}, h("span", {class: "tkx-hidden"}, "compare")))), this.body)));
  }
  open() { this.draw(); this.filterBox.focus(); this.load(); }
  // scores and costs are computed run by run, while the table is open
  async load() {
    if (this.loading) return;
    this.loading = true;
    for (const r of this.shown || []) {
      if (this.x.el.dataset.pane !== "runs") break;
      if (r.summary) continue;
      try { r.summary = await this.x.get("summary", r.name); } catch (e) { r.summary = {methods: [], error: String(e.message || e)}; }
      this.cells(r);
    }
    this.loading = false;
    if (["score", "calls", "dollars"].includes(this.sort)) this.draw();
  }
  cells(r) {
    const row = this.rows && this.rows.get(r.name);
    if (!row) return;
    const own = scoresOf(r), [low, high] = [Math.min(...own), Math.max(...own)], one = r.summary && r.summary.methods.length === 1 ? r.summary.methods[0] : null;
    const score = !r.summary ? "…" : r.summary.error ? "–" : !own.length ? "–" : low === high ? number(low) : `${number(low)} to ${number(high)}`;
    const calls = sumOf(r, "calls"), asked = questionsOf(r) * r.methods.length;
    fill(row.score, score); row.score.title = r.summary && r.summary.error || (one && one.low != null ? `95 %: ${number(one.low)} to ${number(one.high)}` : r.summary ? r.summary.methods.map(m => `${m.method} ${number(m.score)}`).join("\n") : "");
    fill(row.calls, calls == null ? "…" : (calls / Math.max(1, asked)).toFixed(1)); fill(row.dollars, r.summary ? r.summary.free ? "$0" : dollars(sumOf(r, "dollars")) : "…");
  }
  draw() {
    const x = this.x, words = queryWords(this.filterBox.value), [, , key] = COLUMNS.find(([k]) => k === this.sort), way = this.turned ? -1 : 1;
    const text = r => `${r.label} ${r.name} ${r.about.artefact || ""} ${r.methods.join(" ")} ${Object.keys(r.datasets).join(" ")} ${day(r.time)} ${r.model} ${r.profile}`.toLowerCase();
    const found = x.runs.filter(r => { const own = text(r); return words.every(w => own.includes(w)); });
    this.shown = found.map((r, n) => [key(r), n, r]).sort((a, b) => (a[0] < b[0] ? -way : a[0] > b[0] ? way : a[1] - b[1])).map(e => e[2]);
    this.rows = new Map();
    this.heads.forEach((th, n) => th.setAttribute("aria-sort", COLUMNS[n][0] !== this.sort ? "none" : this.turned ? "descending" : "ascending"));
    fill(this.count, `${plural(this.shown.length, "run")} of ${x.runs.length}`);
    const line = r => {
      const cell = (what, ...inside) => h("td", {class: `tkx-${what}`}, ...inside), row = {score: cell("number", "…"), calls: cell("number tkx-of-calls", "…"), dollars: cell("number tkx-of-dollars", "…")};
      const methods = r.about.method || (r.about.parent ? r.label.split(":")[0] : r.methods.slice(0, 3).join(", ") + (r.methods.length > 3 ? ` and ${r.methods.length - 3} more` : ""));
      this.rows.set(r.name, row);
      const el = h("tr", {"aria-current": x.run && x.run.name === r.name ? "true" : null, click: e => { if (!e.target.closest("button")) this.choose(r.name); }}, cell("date tkx-of-time", day(r.time)),
        cell("label", h("button", {class: "tkx-link", click: () => this.choose(r.name)}, cut(r.label, 240)), h("span", {class: "tkx-small"}, h("span", {class: "tkx-then"}, `${day(r.time)} · `), `${r.name.slice(0, 6)}${r.about.parent ? ` from ${r.about.parent[0].slice(0, 6)}` : ""}${r.failed ? `, ${r.failed} failed` : ""}`)), cell("of-artefact", r.about.artefact || "–"),
        cell("of-methods", methods), cell("of-data", Object.keys(r.datasets).join(", ")), cell("number", questionsOf(r)), row.score, row.calls, row.dollars,
        cell("do", x.run && x.run.name !== r.name ? h("button", {class: "tkx-button", "aria-label": `Compare with ${r.label} ${r.name.slice(0, 6)}`, click: () => { x.pane("questions"); x.compareWith(r.name); }}, "compare") : null));
      return el;
    };
    const rest = this.shown.length - this.most;
    fill(this.body, ...this.shown.slice(0, this.most).map(line), rest > 0 ? h("tr", {}, h("td", {colspan: COLUMNS.length + 1}, h("button", {class: "tkx-button", click: () => { this.most = Infinity; this.draw(); this.load(); }}, `show ${rest} more`))) : null);
    for (const r of this.shown.slice(0, this.most)) if (r.summary) this.cells(r);
  }
  choose(name) { this.x.pane("questions"); this.x.openRun(name); }
}

class TextSearch {
  constructor(explorer) {
    this.x = explorer; this.asked = 0;
    this.box = h("input", {type: "search", "aria-label": "Search all texts of the run", placeholder: "search prompts, replies, passages, answers", keydown: e => { if (e.key === "Enter") this.go(); }});
    this.status = h("p", {class: "tkx-small", role: "status"}); this.list = h("ol", {class: "tkx-finds"});
    this.el = h("section", {class: "tkx-over tkx-found", "aria-label": "Found texts"}, h("div", {class: "tkx-tools"}, h("h2", {}, "Full text"), this.status, h("span", {class: "tkx-grow"}), h("button", {class: "tkx-button", "aria-label": "Close the search", click: () => this.x.pane("questions")}, "×")), h("div", {class: "tkx-scroll", tabindex: "0", role: "group", "aria-label": "results"}, this.list));
  }
  async go() {
    const x = this.x, query = this.box.value.trim(), asked = ++this.asked;
    if (!query || !x.run) return;
    x.pane("found"); fill(this.list); fill(this.status, "searching…");
    const found = await x.trying(() => x.get("search", x.run.name, query));
    if (asked !== this.asked) return;
    if (!found) { fill(this.status); return; }
    fill(this.status, `${plural(found.total, "text")} with “${query}”${found.total > found.hits.length ? `; the first ${found.hits.length}` : ""}`);
    fill(this.list, ...found.hits.map(hit => h("li", {}, h("button", {class: "tkx-link tkx-find", click: () => this.show(hit)}, h("span", {class: "tkx-badge tkx-gold"}, hit.where), ` ${cut(x.rows[hit.i] ? x.rows[hit.i].question : "", 90)} `,
      h("span", {class: "tkx-small"}, ...hit.snippet.map(([text, marked]) => marked ? h("mark", {}, text) : text))))));
  }
  async show(hit) {
    const x = this.x;
    x.pane("tree"); await x.openRow(hit.i);
    const place = hit.node == null ? undefined : x.tree.place.get(hit.node);
    if (place !== undefined) { x.tree.pick(place); x.pane("node"); }
  }
}

