"use strict";
(() => {
  const runs = new Map(JSON.parse(document.getElementById("runs").textContent).map((r) => [r.name, r]));
  const at = (id) => document.getElementById(id);
  const panel = at("panel");

  const add = (parent, tag, className, text) => {
    const e = document.createElement(tag);
    if (className) e.className = className;
    e.textContent = text;
    parent.append(e);
    return e;
  };

  const show = (name) => {
    const r = runs.get(name);
    if (!r) return;
    at("panel-name").textContent = r.name;
    at("panel-verdict").textContent = r.verdict;
    at("panel-verdict").className = "badge " + r.verdict;
    at("panel-meaning").textContent = r.meaning;
    at("panel-time").textContent = r.seconds ? (r.seconds * 1000).toFixed(0) + " ms" : "";
    at("panel-level").textContent = r.level;
    at("panel-rule").textContent = r.rule;
    const body = at("panel-body");
    body.replaceChildren();
    for (const m of [...(r.messages || []), ...(r.reason ? [r.reason] : [])]) add(body, "pre", "message", m);
    for (const m of r.log || []) add(body, "p", "note", m);
    if (r.timeline && r.timeline.some(Boolean)) {
      add(body, "h3", "", "Timeline in milliseconds since the start of the case");
      const lines = add(body, "pre", "timeline", "");
      lines.tabIndex = 0;
      const version = (text) => [...text.matchAll(/\b(?:at|version) (\d+)\b/g)].map((m) => m[1]);
      const named = new Set((r.messages || []).flatMap(version));
      for (const line of r.timeline) add(lines, "span", version(line).slice(0, 1).some((v) => named.has(v)) ? "hit" : "", line);
    }
    if (r.rerun) {
      const p = add(body, "p", "again", "");
      add(p, "code", "", r.rerun);
      const b = add(p, "button", "", "Copy");
      b.type = "button";
      b.dataset.copy = r.rerun;
    }
    panel.showModal();
    history.replaceState(null, "", "#" + name);
  };

  document.addEventListener("click", (e) => {
    const cell = e.target.closest(".cell");
    if (cell) return show(cell.dataset.name);
    if (e.target === panel) return panel.close();
    const copy = e.target.closest("[data-copy]");
    if (copy && navigator.clipboard) {
      navigator.clipboard.writeText(copy.dataset.copy).then(() => {
        copy.textContent = "Copied";
        setTimeout(() => { copy.textContent = "Copy"; }, 1500);
      });
    }
  });
  panel.addEventListener("close", () => history.replaceState(null, "", location.pathname + location.search));

  // Arrow keys move between the cells of the map.
  document.addEventListener("keydown", (e) => {
    const cell = document.activeElement && document.activeElement.closest(".cell");
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[e.key];
    if (!cell || !step) return;
    const rows = [...document.querySelectorAll(".map tr:not(.group):not([hidden])")].filter((r) => r.querySelector(".cell"));
    const row = rows.indexOf(cell.closest("tr"));
    const column = [...rows[row].querySelectorAll(".cell")].indexOf(cell);
    const to = rows[row + step[0]];
    if (!to) return;
    const cells = to.querySelectorAll(".cell");
    const next = cells[Math.min(column + step[1], cells.length - 1)];
    if (next) { next.focus(); e.preventDefault(); }
  });

  const filter = at("filter"), find = at("find");
  const apply = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = [...filter.querySelectorAll(":checked")].map((c) => c.value);
    let left = 0;
    for (const body of document.querySelectorAll(".map tbody")) {
      let shown = 0;
      for (const row of body.querySelectorAll("tr:not(.group)")) {
        const text = row.dataset.text.toLowerCase(), verdicts = row.dataset.verdicts.split(" ");
        row.hidden = !words.every((w) => text.includes(w)) || wanted.length > 0 && !wanted.some((v) => verdicts.includes(v));
        if (!row.hidden) shown++;
      }
      body.hidden = shown === 0;
      left += shown;
    }
    at("nothing").hidden = left > 0;
  };
  filter.addEventListener("input", apply);
  filter.addEventListener("submit", (e) => e.preventDefault());
  filter.hidden = false;
  at("clickable").hidden = false;
  if (location.hash.length > 1) show(decodeURIComponent(location.hash.slice(1)));
})();
