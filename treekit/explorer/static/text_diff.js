// ── what differs between two texts, word by word ──
const MOST_EDITS = 1500, FOLDED = 500;  // edits that are looked for; characters in a row that are the same, from which on they are folded

const wordsOf = text => text.match(/\s+|\p{N}+(?:[.,:]\p{N}+)+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || [];
const linesOf = text => text.match(/[^\n]*\n|[^\n]+$/g) || [];

// Myers' algorithm (1986) on two lists: [operation, item] each, or null where more than `most` edits are needed.
function edits(a, b, most) {
  const n = a.length, m = b.length, rows = [];
  let v = new Map([[1, 0]]);
  for (let d = 0; d <= Math.min(n + m, most); d++) {
    const row = new Map(v); rows.push(row);
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1)) ? v.get(k + 1) ?? 0 : (v.get(k - 1) ?? 0) + 1, y = x - k;
      while (x < n && y < m && a[x] === b[y]) { x++; y++; }
      v.set(k, x);
      if (x >= n && y >= m) return traced(a, b, rows, d);
    }
  }
  return null;
}
function traced(a, b, rows, d) {
  const out = []; let x = a.length, y = b.length;
  for (; d >= 0; d--) {
    const v = rows[d], k = x - y;
    const before = k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1)) ? k + 1 : k - 1, px = d ? v.get(before) ?? 0 : 0, py = d ? px - before : 0;
    while (x > px && y > py && x > 0 && y > 0 && a[x - 1] === b[y - 1]) { out.push(["=", a[--x]]); y--; }
    if (!d) break;
    if (x > px) out.push(["-", a[--x]]); else if (y > py) out.push(["+", b[--y]]);
  }
  return out.reverse();
}
// [operation, text] in order: "=" in both, "-" in the first, "+" in the second.
export function textDiff(first, second) {
  let start = 0, end = 0;
  const a = wordsOf(first), b = wordsOf(second);
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const mine = a.slice(start, a.length - end), its = b.slice(start, b.length - end);
  const inner = edits(mine, its, MOST_EDITS) || edits(linesOf(mine.join("")), linesOf(its.join("")), MOST_EDITS) || [["-", mine.join("")], ["+", its.join("")]];
  const parts = [];
  const add = (sign, text) => { if (!text) return; const last = parts[parts.length - 1]; if (last && last[0] === sign) last[1] += text; else parts.push([sign, text]); };
  add("=", a.slice(0, start).join(""));
  let gone = "", come = "";
  const flush = () => { add("-", gone); add("+", come); gone = come = ""; };
  for (const [sign, text] of inner) {
    if (sign === "-") gone += text; else if (sign === "+") come += text;
    else if (/^\s+$/.test(text) && gone && come) { gone += text; come += text; }  // a blank between two changed words
    else { flush(); add("=", text); }
  }
  flush(); add("=", end ? a.slice(a.length - end).join("") : "");
  return parts;
}
// The difference as an element: what is gone is struck out, what has come is underlined; long equal stretches are folded.
function diffBox(first, second) {
  const same = text => {
    if (text.length <= FOLDED) return [text];
    const middle = text.slice(200, -200), more = h("button", {class: "tkx-button tkx-unfold", click: () => more.replaceWith(middle)}, `… ${middle.length.toLocaleString("en")} equal characters …`);
    return [text.slice(0, 200), more, text.slice(-200)];
  };
  // a blank between what is gone and what has come in its place: they are two words
  const apart = (sign, text, before) => sign === "+" && before && before[0] === "-" && !/\s$/.test(before[1]) && !/^\s/.test(text);
  const parts = textDiff(first, second).flatMap(([sign, text], n, all) => sign === "=" ? same(text) : [apart(sign, text, all[n - 1]) ? " " : "", h(sign === "-" ? "del" : "ins", {}, cut(text, LONG))]);
  return h("pre", {class: "tkx-text tkx-diff", tabindex: "0"}, ...parts);
}
// Two nodes, part by part: only the parts that differ are shown.
function nodeDiff(first, second) {
  const facts = node => new Map(node.facts), mine = facts(first), its = facts(second), parts = [["text", first.text, second.text]];
  for (const name of new Set([...mine.keys(), ...its.keys()])) parts.push([name, mine.get(name) || "", its.get(name) || ""]);
  const passage = hit => hit ? `${hit.title || hit.id}\n${hit.text}` : "", listed = hits => hits.map((hit, n) => `${n + 1}. ${hit.title || hit.id}\n`).join("");
  parts.push(["passages, in their order", listed(first.hits), listed(second.hits)]);
  const byId = new Map(second.hits.map(hit => [hit.id, hit]));
  for (const hit of first.hits) if (byId.has(hit.id)) parts.push([`passage ${hit.title || hit.id}`, passage(hit), passage(byId.get(hit.id))]);
  const said = call => !call || call.missing ? ["", ""] : [call.messages.map(([role, text]) => `[${role}]\n${text}`).join("\n\n"), call.score != null ? `${call.continuation}\n${call.score}` : call.reply];
  for (let k = 0; k < Math.max(first.calls.length, second.calls.length); k++) {
    const [a, b] = [said(first.calls[k]), said(second.calls[k])], which = first.calls.length > 1 || second.calls.length > 1 ? ` of call ${k + 1}` : "";
    parts.push([`prompt${which}`, a[0], b[0]], [`reply${which}`, a[1], b[1]]);
  }
  const differing = parts.filter(([, a, b]) => a !== b), equal = parts.filter(([, a, b]) => a === b && a).map(([name]) => name);
  return h("div", {}, ...differing.map(([name, a, b]) => h("div", {class: "tkx-changed-part"}, h("h4", {}, name), diffBox(a, b))),
    h("p", {class: "tkx-small"}, differing.length ? `the same: ${cut(equal.join(", "), 200) || "nothing"}` : "nothing differs in this node"));
}

