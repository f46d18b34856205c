"use strict";
// treekit's site. Tables can be read without it; it opens cells, searches, copies and filters. Data comes as scripts, which a page may load from a disk, too.
const treekit = window.treekit = {
  taken: {}, waiting: {},
  take(name, value) { this.taken[name] = value; (this.waiting[name] || []).forEach(done => done(value)); delete this.waiting[name]; },
  get(name, src) {
    if (name in this.taken) return Promise.resolve(this.taken[name]);
    return new Promise((done, lost) => {
      if (this.waiting[name]) return this.waiting[name].push(done);
      this.waiting[name] = [done];
      const script = document.createElement("script");
      script.src = src;
      script.onerror = () => { delete this.waiting[name]; script.remove(); lost(new Error(`${src} can't be loaded`)); };
      document.head.append(script);
    });
  },
};
const root = document.body.dataset.root, here = document.body.dataset.here;
const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
function h(tag, given = {}, ...inside) {
  const el = document.createElement(tag);
  for (const [k, v] of Object.entries(given)) if (k === "on") Object.entries(v).forEach(([e, f]) => el.addEventListener(e, f)); else if (v !== null && v !== false) el.setAttribute(k, v === true ? "" : v);
  el.append(...inside.flat().filter(x => x !== null && x !== undefined && x !== ""));
  return el;
}

// ---- a sheet's data, by its name in this page's folder
const folder = here.replace(/[^/]*$/, "");
const sheetData = name => treekit.get(folder + name, `${name}.js`);
const lineOf = (data, i) => Object.fromEntries(data.head.map((k, n) => [k, data.lines[i][n]]));

// ---- the panel of a cell
const number = word => word === "" || word === undefined || isNaN(+word) ? null : +word;
const places = (...words) => Math.max(0, ...words.map(w => (String(w).split(".")[1] || "").length));
function picture(line, value) {  // interval, ours, print, on one line
  const ours = number(value), low = number(line.low), high = number(line.high), print = number(line.published);
  const known = [ours, low, high, print].filter(x => x !== null);
  if (ours === null || known.length < 2) return null;
  const from = Math.min(...known), to = Math.max(...known), wide = (to - from) || 1, x = v => 20 + 400 * (v - from) / wide;
  const ns = "http://www.w3.org/2000/svg", s = (tag, a, text) => { const e = document.createElementNS(ns, tag); Object.entries(a).forEach(([k, v]) => e.setAttribute(k, v)); if (text) e.textContent = text; return e; };
  const svg = s("svg", {viewBox: "0 0 440 52", width: 440, role: "img", "aria-label": `ours ${value}` + (low !== null ? `, 95 % interval ${line.low} to ${line.high}` : "") + (print !== null ? `, in print ${line.published}` : "")});
  if (low !== null && high !== null) svg.append(s("line", {x1: x(low), x2: x(high), y1: 26, y2: 26, stroke: "currentColor", "stroke-width": 3, "stroke-linecap": "round", opacity: .45}));
  svg.append(s("circle", {cx: x(ours), cy: 26, r: 5, fill: "currentColor"}), s("text", {x: Math.min(380, Math.max(30, x(ours))), y: 14, "text-anchor": "middle"}, `ours ${value}`));
  if (print !== null) svg.append(s("path", {d: `M${x(print)} 18v16`, stroke: "currentColor", "stroke-width": 2, "stroke-dasharray": "3 2"}), s("text", {x: Math.min(400, Math.max(30, x(print))), y: 47, "text-anchor": "middle"}, `print ${line.published}`));
  return svg;
}
function difference(line, value) {
  const ours = number(value), print = number(line.published);
  if (ours === null || print === null) return null;
  const d = (ours - print).toFixed(places(value, line.published));
  const sure = line.difference ? "" : ", of two different experiments";
  return `${d > 0 ? "+" : ""}${d.replace("-", "−")} (ours − print${sure})`;
}
const TREATED = new Set(["group", "paper", "retriever", "method", "dataset", "metric", "published", "flag", "reproduced", "value", "low", "high", "n", "failures", "difference", "verdict", "reason", "model", "corpus"]);
function facts(data, i) {
  const line = lineOf(data, i), value = line[data.key], list = [], row = (k, ...v) => { if (v.some(x => x)) list.push(h("dt", {}, k), h("dd", {}, ...v)); };
  row("ours", value + (line.low ? `, 95 % interval ${line.low} to ${line.high}` : ""));
  row("questions", line.n ? `n = ${line.n}` : "", line.failures && line.failures !== "0" ? h("span", {class: "failed"}, `${line.failures} failed, scored 0`) : line.failures === "0" ? ", 0 failed" : "");
  row("in print", line.published ? line.published + (line.flag && line.flag !== "ok" ? ` (${line.flag})` : "") : "published" in line ? "no such number" : "");
  row("difference", difference(line, value) || (line.difference || ""));
  if (line.verdict) row("verdict", h("span", {class: `badge ${line.verdict.replace(" ", "-")}`}, line.verdict));
  if (line.reason) row(line.verdict === "not comparable" ? "because" : "note", h("ul", {}, line.reason.split("; ").map(r => h("li", {}, r))));
  if (data.marks[i]) row("in its column", data.marks[i] === "best" ? "the best" : "can’t be told from the best by these questions");
  row("model", line.model || ""); row("passages", line.corpus || "");
  for (const k of data.head) if (!TREATED.has(k)) row(k, line[k]);
  for (const [k, v] of Object.entries(data.facts)) row(k, v);
  return h("dl", {}, list);
}
function panel(data, name, i, close) {
  const line = lineOf(data, i);
  const asked = h("div", {});
  const questions = data.behind
    ? h("button", {type: "button", on: {click: e => { e.target.disabled = true; showQuestions(asked, name, i, line).catch(x => asked.append(h("p", {class: "trouble"}, x.message))); }}}, "The questions behind it")
    : h("p", {class: "small"}, "The scores of its questions don’t lie beside this table. The command above leaves them; ", h("code", {}, "make site"), " then shows them here, with the trees of their answers.");
  return h("div", {class: "panel", role: "region", "aria-label": "How this number was made"},
    h("button", {type: "button", style: "float:right", on: {click: close}}, "Close"),
    h("h3", {}, [line.method, line.dataset, line.metric].filter(Boolean).join(" · ")), picture(line, line[data.key]), facts(data, i),
    h("p", {class: "small"}, data.record), h("p", {}, "Make it again:"), h("pre", {class: "command", tabindex: "0"}, h("code", {}, data.command)),
    h("p", {}, copier("Copy command", () => data.command), " ", copier("Copy link", () => location.href.split("#")[0] + `#l${i}`)), questions, asked);
}
function toggle(button) {
  const row = button.closest("tr"), open = button.getAttribute("aria-expanded") === "true", table = button.closest("table");
  $$("tr.facts", table).forEach(r => r.remove()); $$('.cell[aria-expanded="true"]', table).forEach(b => b.setAttribute("aria-expanded", "false"));
  if (open) return;
  const name = table.dataset.sheet, cell = h("td", {colspan: 99}), extra = h("tr", {class: "facts"}, cell);
  button.setAttribute("aria-expanded", "true");
  row.after(extra);
  const fit = () => { const inner = cell.firstChild; if (inner) inner.style.width = `${table.parentElement.clientWidth}px`; };
  sheetData(name).then(data => { cell.append(panel(data, name, +button.dataset.l, () => { toggle(button); button.focus(); })); fit(); }, e => cell.append(h("div", {class: "panel trouble"}, e.message)));
  addEventListener("resize", fit, {passive: true});
}
document.addEventListener("click", e => { const b = e.target.closest("button.cell"); if (b) toggle(b); });
document.addEventListener("keydown", e => { if (e.key !== "Escape") return; const b = document.querySelector('.cell[aria-expanded="true"]'); if (b) { toggle(b); b.focus(); } });
$$("button.cell").forEach(b => b.setAttribute("aria-expanded", "false"));

// ---- questions
async function showQuestions(into, name, i, line) {
  const data = await treekit.get(`${folder}${name}.q`, `${name}.q.js`), method = (line.method || "").split(" [")[0], rows = [];
  for (const [k, scores] of data.lines[i]) { const [dataset, ids] = data.samples[k]; ids.forEach((id, n) => rows.push({dataset, id, score: scores[n], text: ((data.texts[dataset] || {})[id]), said: (((data.answers[method] || {})[dataset] || {})[id])})); }
  const body = h("tbody"), told = h("p", {class: "small"}), more = h("button", {type: "button", hidden: true}, "Show all");
  let wrong = false, all = false;
  const only = h("button", {type: "button", "aria-pressed": "false", on: {click: () => { wrong = !wrong; only.setAttribute("aria-pressed", wrong); draw(); }}}, "Only those below full score");
  more.addEventListener("click", () => { all = true; draw(); });
  const top = Math.max(...rows.map(r => r.score), 1), shows = v => Number.isInteger(v) ? String(v) : v.toFixed(2);
  function draw() {
    const chosen = rows.filter(r => !wrong || r.score < (top > 1 ? 100 : 1)), some = all ? chosen : chosen.slice(0, 20);
    body.replaceChildren(...some.map(r => h("tr", {}, h("td", {class: "score"}, (r.score >= (top > 1 ? 100 : 1) ? "✓ " : r.score > 0 ? "" : "✗ ") + shows(r.score)), h("td", {}, r.text ? r.text[0] : r.id), h("td", {}, r.text ? r.text[1] : ""),
      h("td", {}, r.said ? (r.said[1] ? h("span", {class: "failed"}, `failed: ${r.said[1]}`) : r.said[0]) : ""), h("td", {}, tree(r)))));
    told.textContent = `${chosen.length} of ${rows.length} questions${chosen.length > some.length ? `, the first ${some.length} shown` : ""}.`;
    more.hidden = chosen.length <= some.length;
  }
  const tree = r => r.said && data.trees.includes(r.said[2]) && r.said[3] >= 0 ? h("a", {href: `${root}trees/${r.said[2]}.html#row=${r.said[3]}`}, "its tree") : r.said ? h("code", {title: "its run, in the explorer"}, `treekit explore ${r.said[2].slice(0, 6)}`) : "";
  const heads = ["score", "question", "gold", "answer", "tree"].map(t => h("th", {scope: "col"}, t));
  if (!rows.some(r => r.text)) into.append(h("p", {class: "small"}, "The run that asked them isn’t kept here, so only their ids are known."));
  into.append(h("p", {}, only, " ", more), told, h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Questions"}, h("table", {class: "questions"}, h("thead", {}, h("tr", {}, heads)), body)));
  draw();
}

// ---- copying
async function copy(text, button) {
  let done = false;
  try { await navigator.clipboard.writeText(text); done = true; } catch { /* a page on a disk may have no clipboard */ }
  if (!done) { const box = h("textarea", {style: "position:fixed;opacity:0", "aria-hidden": "true"}); box.value = text; document.body.append(box); box.select(); done = document.execCommand("copy"); box.remove(); }
  const was = button.textContent; button.textContent = done ? "Copied" : "Can’t copy here"; setTimeout(() => { button.textContent = was; }, 1500);
}
const copier = (label, text) => h("button", {type: "button", on: {click: e => copy(text(), e.target)}}, label);
$$("button[data-copy]").forEach(b => { b.hidden = false; b.addEventListener("click", async () => { const kind = b.dataset.copy; copy(kind === "command" ? b.dataset.text : (await sheetData(b.dataset.of))[kind], b); }); });

// ---- the rest of a long table
$$("button[data-more]").forEach(b => { b.hidden = false; b.addEventListener("click", async () => {
  const data = await sheetData(b.dataset.more), body = document.querySelector(`table[data-sheet="${CSS.escape(b.dataset.more)}"] tbody`);
  body.append(...data.lines.slice(body.rows.length).map(line => h("tr", {}, line.map(w => h("td", {class: w.length > 60 ? "long" : null}, w))))); b.remove(); }); });

// ---- filters: leave lines with one value
$$(".filters").forEach(f => { f.hidden = false; });
document.addEventListener("click", e => {
  const b = e.target.closest("button[data-filter]");
  if (!b) return;
  const on = b.getAttribute("aria-pressed") !== "true", key = b.dataset.filter;
  $$(`button[data-filter="${key}"]`).forEach(o => o.setAttribute("aria-pressed", o === b && on));
  $$(`tr[data-${key}]`).forEach(r => { r.hidden = on && r.dataset[key] !== b.dataset.value; });
  $$(".entries").forEach(x => { const own = $$(`tr[data-${key}]`, x); x.hidden = own.length ? own.every(r => r.hidden) : on; });
});

// ---- search
const box = document.getElementById("find"), found = document.getElementById("found");
const plain = text => text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
let entries = null;
const weight = {page: 4, table: 3, figure: 3, ledger: 3, row: 1};
async function search() {
  const words = plain(box.value).split(/[\s·,]+/).filter(Boolean);
  if (!words.length) { found.hidden = true; return; }
  if (!entries) entries = (await treekit.get("search", `${root}static/search.js`)).map(e => ({title: e[0], place: e[1], kind: e[2], a: plain(e[0]), b: plain(`${e[3]} ${e[2]}`)}));
  const hits = [];
  for (const e of entries) {
    let score = weight[e.kind] || (e.kind.startsWith("claim") ? 1.5 : 0);
    for (const w of words) { const at = e.a.indexOf(w); if (at >= 0) score += at === 0 || /\W/.test(e.a[at - 1]) ? 8 + 8 * w.length / e.a.length : 3; else if (e.b.includes(w)) score += 2; else { score = -1; break; } }
    if (score > 0) hits.push([score, e]);
  }
  hits.sort((x, y) => y[0] - x[0]);
  found.replaceChildren(h("p", {role: "status"}, hits.length ? `${hits.length} found${hits.length > 30 ? ", the best 30" : ""}` : "nothing found; all words must be there"), ...hits.slice(0, 30).map(([, e]) => h("a", {href: root + e.place}, e.title, h("small", {}, e.kind + (e.place.includes("/") ? ` · ${e.place.replace(/[#].*/, "")}` : "")))));
  found.hidden = false;
}
box.addEventListener("input", search); box.addEventListener("focus", search);
box.form.addEventListener("submit", e => { e.preventDefault(); const first = found.querySelector("a[data-at]") || found.querySelector("a"); if (first && !found.hidden) location.href = first.href; });
box.form.addEventListener("keydown", e => {
  if (e.key === "Escape") { found.hidden = true; return; }
  if (e.key !== "ArrowDown" && e.key !== "ArrowUp") return;
  const links = $$("a", found); if (!links.length) return;
  const at = links.findIndex(a => a.hasAttribute("data-at")), next = (at + (e.key === "ArrowDown" ? 1 : links.length - (at < 0 ? 0 : 1))) % links.length;
  links.forEach(a => a.removeAttribute("data-at")); links[next].setAttribute("data-at", ""); links[next].scrollIntoView({block: "nearest"}); e.preventDefault();
});
document.addEventListener("click", e => { if (!e.target.closest(".find, #found")) found.hidden = true; });
document.addEventListener("keydown", e => { if (e.key === "/" && !/INPUT|TEXTAREA/.test(document.activeElement.tagName)) { e.preventDefault(); box.focus(); } });

// ---- light and dark
const themes = ["", "light", "dark"], button = document.getElementById("theme"), theme = () => document.documentElement.dataset.theme || "";
const name = () => { button.textContent = {"": "Theme: auto", light: "Theme: light", dark: "Theme: dark"}[theme()]; };
button.hidden = false; name();
button.addEventListener("click", () => { const next = themes[(themes.indexOf(theme()) + 1) % 3]; document.documentElement.dataset.theme = next; try { localStorage.setItem("treekit-theme", next); } catch { /* not kept */ } name(); });

// ---- a link to a cell: #l12, in the page's first table that has it
function openLinked() {
  const line = location.hash.match(/^#l(\d+)$/); if (!line) return;
  const cell = document.querySelector(`button.cell[data-l="${line[1]}"]`);
  if (cell) { if (cell.getAttribute("aria-expanded") !== "true") toggle(cell); cell.scrollIntoView({block: "center"}); cell.focus({preventScroll: true}); }
}
addEventListener("hashchange", openLinked); openLinked();

// ---- on paper, what is folded is shown
addEventListener("beforeprint", () => $$("details:not(.contents)").forEach(d => { if (!d.open) { d.open = true; d.dataset.was = ""; } }));
addEventListener("afterprint", () => $$("details[data-was]").forEach(d => { d.open = false; delete d.dataset.was; }));
