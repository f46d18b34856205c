// ── where things come from ──
// A saved page: chunks of compressed JSON, opened when something in them is wanted.
export function savedSource(element) {
  const index = JSON.parse(element("index").textContent), opened = new Map();
  async function chunk(n) {
    const packed = Uint8Array.from(atob(element(`chunk${n}`).textContent.trim()), c => c.charCodeAt(0));
    return JSON.parse(await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).text());
  }
  // a full-text search reads all chunks, one after the other
  async function search(run, query) {
    const words = queryWords(query), hits = []; let total = 0;
    for (const n of [...new Set(Object.entries(index.paths).filter(([path]) => path.startsWith(`node/${run}/`) || path === `run/${run}`).map(([, n]) => n))].sort((a, b) => a - b)) {
      for (const [path, found] of Object.entries(await chunk(n))) {
        const [what, of, i] = path.split("/");
        if (of !== run || (what !== "node" && what !== "run")) continue;
        const texts = what === "run" ? found.rows.flatMap(r => [["question", r.question, r.i], ["answer", r.answer, r.i]])
          : [["node", found.text], ...found.facts, ...found.hits.map(hit => ["passage", `${hit.title || hit.id}. ${hit.text}`]), ...found.calls.filter(c => !c.missing).flatMap(c => [["prompt", c.messages.map(m => m[1]).join("\n")], ["reply", c.reply]])];
        for (const [where, text, row] of texts) {
          const low = (text || "").toLowerCase(), at = low.indexOf(words[0]);
          if (at < 0 || !words.every(w => low.includes(w))) continue;
          if (++total <= 200) hits.push({i: row ?? +i, node: what === "run" ? null : found.id, where, snippet: [[text.slice(Math.max(0, at - 60), at), false], [text.slice(at, at + words[0].length), true], [text.slice(at + words[0].length, at + 140), false]]});
        }
      }
    }
    return {total, hits};
  }
  return {options: index.options, async get(path) {
    if (path.startsWith("search/")) { const [, run, query] = path.split("/").map(decodeURIComponent); return search(run, query); }
    const n = index.paths[path];
    if (n === undefined) throw new Error("this page doesn't hold it: open the run with `treekit explore`");
    if (!opened.has(n)) { if (opened.size > 40) opened.delete(opened.keys().next().value); opened.set(n, chunk(n)); }
    return (await opened.get(n))[path];
  }};
}
// A served page: the same machine, with the token that the address had. The tab keeps the token for F5 and Back.
export function servedSource(token) {
  async function ask(path, body) {
    let reply; try { reply = await fetch(`/api/${path}`, {method: body ? "POST" : "GET", headers: {"X-Treekit-Token": token, "Content-Type": "application/json"}, body: body && JSON.stringify(body)}); }
    catch { throw new Error("`treekit explore` has ended: start it again"); }
    const found = await reply.json();
    if (!reply.ok) throw new Error(found.error);
    return found;
  }
  return {get: path => ask(path), post: (path, body) => ask(path, body), live: true, link: state => `${location.origin}/?token=${token}#${state}`};
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
