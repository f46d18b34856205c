// ── the calls of an answer over time ──
const SHOWN_CALLS = 150;

class Timeline {
  constructor(explorer) { this.x = explorer; this.el = h("div", {class: "tkx-timeline", tabindex: "0", role: "group", "aria-label": "calls over time", hidden: true}); }
  async open() {
    const x = this.x, which = JSON.stringify([x.run && x.run.name, x.at]);
    if (this.el.hidden || !x.run || x.at < 0 || which === this.of) return;
    this.of = which; fill(this.el, h("p", {class: "tkx-small"}, "reading it…"));
    const found = await x.trying(() => x.get("timeline", x.run.name, x.at));
    if (found && this.of === which) this.draw(found, SHOWN_CALLS);
  }
  draw(found, most) {
    const x = this.x, end = found.end || 1, seconds = v => v >= 1 ? `${v.toFixed(1)} s` : `${(v * 1000).toFixed(v < 0.01 ? 2 : 0)} ms`;
    if (!found.calls.length) { fill(this.el, h("p", {class: "tkx-small"}, "This answer has no calls in the store.")); return; }
    const critical = found.calls.filter(c => c.critical), sum = critical.reduce((s, c) => s + c.seconds, 0);
    const row = c => {
      const place = x.tree.place.get(c.node), kind = place === undefined ? "" : x.tree.t.kind[place], text = place === undefined ? "" : x.tree.t.text[place];
      const bar = h("span", {class: "tkx-span", style: `left:${100 * c.start / end}%;width:${Math.max(0.4, 100 * c.seconds / end)}%`});
      return h("button", {class: `tkx-when ${c.critical ? "tkx-critical" : ""}`, click: () => { if (place !== undefined) { x.tree.pick(place); x.tree.tapped(place); } }},
        h("span", {class: "tkx-what"}, h("b", {}, kind), ` ${cut(text, 60)}`), h("span", {class: "tkx-lane"}, bar), h("span", {class: "tkx-small"}, seconds(c.seconds), h("span", {class: "tkx-hidden"}, ` from ${seconds(c.start)}${c.critical ? ", on the critical path" : ""}`)));
    };
    const rest = found.calls.length - most;
    fill(this.el, h("p", {class: "tkx-small"}, `${plural(found.calls.length, "call")}; critical path (bold): ${plural(critical.length, "call")}, ${seconds(sum)} of ${seconds(end)}. ${found.measured ? "Times as measured when the calls were made." : "The store has no times of one run for these calls: each begins when the calls of the step before it have ended."}`),
      ...found.calls.slice(0, most).map(row), rest > 0 ? h("button", {class: "tkx-button", click: () => this.draw(found, Infinity)}, `show ${rest} more`) : null);
  }
}

