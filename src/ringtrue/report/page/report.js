"use strict";
// The page without this script is complete but still. Here are the live parts: theme, plot, query table, one query in detail.
// Nothing is ever written as markup: every text from documents and queries goes in as text.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const [ID, TEXT, SLICES, NOW, BEFORE, MS, MS_BEFORE, ERROR, HITS, HITS_BEFORE, GRADES, MISSING, LOST] = Array(13).keys();
  const PAGE = 50, SVG = "http://www.w3.org/2000/svg", UNKNOWN = "—", SAME = 5e-5;
  const $ = (id) => document.getElementById(id);
  const queries = data.queries, compared = data.names[1] !== null;
  const position = new Map(queries.map((query, index) => [query[ID], index]));
  let measure = 0, order = [], page = 0, opened = null;
  let sort = { key: compared ? "delta" : "m0", up: true };

  // Elements and numbers ------------------------------------------------------------------------------------------
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name === "class") element.className = value;
      else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
    return element;
  }
  const isolated = (text) => make("bdi", null, text);
  const minus = (text) => text.replace("-", "−");
  function number(value) {
    if (value === null || value === undefined) return UNKNOWN;
    return minus(Math.abs(value) >= 100 ? value.toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 }) : value.toFixed(3));
  }
  function signed(value) {
    if (value === null) return UNKNOWN;
    if (value === 0) return "0.000";
    return (value > 0 ? "+" : "") + minus(value.toFixed(3));
  }
  function milliseconds(value) {
    if (value === null) return UNKNOWN;
    if (value > 0 && value < 0.005) return "< 0.01 ms";
    return (value >= 9.95 || value === 0 ? Math.round(value).toLocaleString("en") : value.toFixed(value >= 0.95 ? 1 : 2)) + " ms";
  }
  const direction = (m) => (data.lower[m] ? -1 : 1);
  function delta(query, m) {
    const before = query[BEFORE] ? query[BEFORE][m] : null, now = query[NOW][m];
    if (before === null || now === null) return null;
    const change = now - before;
    return Math.abs(change) < SAME ? 0 : change;
  }
  const tone = (change, m) => (!change ? "plain" : change * direction(m) > 0 ? "good" : "bad");
  function status(query) {
    if (query[ERROR] !== null) return ["bad", "✕", "failed"];
    if (compared) {
      const change = delta(query, measure);
      if (change === null) return ["plain", "—", "unknown"];
      if (change === 0) return ["plain", "=", "same"];
      return change * direction(measure) > 0 ? ["good", "▲", "better"] : ["bad", "▼", "worse"];
    }
    const value = query[NOW][measure];
    if (value === null) return ["plain", "—", "unknown"];
    return value === 0 && direction(measure) > 0 ? ["bad", "○", "none relevant found"] : ["plain", "●", "answered"];
  }
  const mark = ([name, glyph, word]) =>
    make("span", { class: `mark ${name}` }, make("span", { class: "glyph", "aria-hidden": "true" }, glyph), word);

  // Theme: the reader's choice wins over the preference of the system --------------------------------------------
  const theme = $("theme"), dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  function nameTheme() {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", `Switch to the ${isDark() ? "light" : "dark"} theme`);
  }
  try {
    const kept = localStorage.getItem("ringtrue-theme");
    if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
  } catch { /* some browsers refuse storage to files; the choice then lasts as long as the page */ }
  theme.addEventListener("click", () => {
    const chosen = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = chosen;
    try { localStorage.setItem("ringtrue-theme", chosen); } catch { /* as above */ }
    nameTheme();
  });
  dark.addEventListener("change", nameTheme);
  nameTheme();

  // The plot: one bar for each query ------------------------------------------------------------------------------
  const bars = $("bars"), tip = $("tip");
  let plotted = [], lit = -1;
  const plotValue = (query) => (compared ? delta(query, measure) : query[NOW][measure]);
  function sortBars() {
    plotted = queries.map((query, index) => [plotValue(query), index]).filter(([value]) => value !== null);
    plotted.sort((one, two) => (two[0] - one[0]) * direction(measure) || one[1] - two[1]);
  }
  function draw(tag, attributes, text) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }
  function ticks(low, high) {
    const least = (high - low) / 4, power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 2.5, 5, 10, 20, 25, 50].map((one) => one * power).find((one) => Math.floor(high / one + 1e-9) - Math.ceil(low / one - 1e-9) < 4);
    const found = [];
    for (let place = Math.ceil(low / step - 1e-9); place <= Math.floor(high / step + 1e-9); place++) found.push(Number((place * step).toPrecision(10)));
    return found;
  }
  function drawBars() {
    const height = 200, values = plotted.map(([value]) => value);
    const top = values.reduce((a, b) => Math.max(a, b), 0.05), least = values.reduce((a, b) => Math.min(a, b), 0);
    const bottom = least < 0 ? Math.min(least, -0.05) : 0, reach = (top - bottom) * 1.04;
    const down = (value) => ((top - value) / reach) * height;
    const gap = values.length > 400 ? 0 : 0.12, zero = down(0).toFixed(2), paths = { good: "", bad: "", plain: "" };
    values.forEach((value, place) => {
      if (value) paths[compared ? tone(value, measure) : "plain"] += `M${place + gap} ${zero}V${down(value).toFixed(2)}H${place + 1 - gap}V${zero}Z`;
    });
    const counts = { wins: 0, ties: 0, losses: 0 };
    for (const value of values) counts[!value ? "ties" : value * direction(measure) > 0 ? "wins" : "losses"]++;
    const name = data.measures[measure];
    const words = compared ? `${name} by query: ${counts.wins} better, ${counts.ties} equal, ${counts.losses} worse` : `${name} of ${values.length} queries, the best first`;
    const inner = draw("svg", { viewBox: `0 0 ${Math.max(1, values.length)} ${height}`, preserveAspectRatio: "none", width: "100%", height });
    for (const [kind, path] of Object.entries(paths)) if (path) inner.append(draw("path", { class: `bars ${kind}`, d: path }));
    const chart = draw("svg", { class: "chart plot", width: "100%", height, role: "img", "aria-label": words });
    for (const tick of ticks(bottom, top)) chart.append(draw("line", { class: tick ? "grid" : "zero", x1: 0, x2: "100%", y1: down(tick), y2: down(tick) }));
    chart.append(inner);
    for (const tick of ticks(bottom, top)) chart.append(draw("text", { class: "tick", x: -6, y: down(tick) + 4, "text-anchor": "end" }, (compared && tick > 0 ? "+" : "") + minus(String(tick))));
    chart.append(draw("rect", { class: "lit", y: 0, height, width: 0 }));
    bars.replaceChildren(chart);
    for (const [kind, count] of Object.entries(counts)) {
      const place = document.querySelector(`[data-count="${kind}"]`);
      if (place) place.textContent = count.toLocaleString("en");
    }
  }
  function light(place, x, y) {
    lit = place;
    const rect = bars.querySelector(".lit"), width = 100 / plotted.length;
    rect.setAttribute("x", `${place * width}%`);
    rect.setAttribute("width", `${Math.max(width, 0.25)}%`);
    const query = queries[plotted[place][1]], now = query[NOW][measure];
    const before = query[BEFORE] ? query[BEFORE][measure] : null;
    const told = compared ? `${data.measures[measure]} ${number(before)} → ${number(now)} (${signed(plotted[place][0])})` : `${data.measures[measure]} ${number(now)}`;
    tip.replaceChildren(make("b", null, isolated(query[ID])), make("div", null, isolated(query[TEXT].slice(0, 160))), make("div", null, told));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 12 : y + 18}px`;
  }
  function dim() {
    lit = -1;
    tip.hidden = true;
    const rect = bars.querySelector(".lit");
    if (rect) rect.setAttribute("width", 0);
  }
  const barAt = (event) => {
    const box = bars.firstElementChild.getBoundingClientRect();
    return Math.max(0, Math.min(plotted.length - 1, Math.floor(((event.clientX - box.left) / box.width) * plotted.length)));
  };
  bars.addEventListener("mousemove", (event) => plotted.length && light(barAt(event), event.clientX, event.clientY));
  bars.addEventListener("mouseleave", dim);
  bars.addEventListener("blur", dim);
  bars.addEventListener("click", (event) => plotted.length && open(queries[plotted[barAt(event)][1]][ID]));
  bars.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }[event.key];
    if (!plotted.length) return;
    if (step !== undefined) {
      event.preventDefault();
      const place = Math.max(0, Math.min(plotted.length - 1, lit + step));
      const box = bars.firstElementChild.getBoundingClientRect();
      light(place, box.left + ((place + 0.5) / plotted.length) * box.width, box.top + box.height / 2);
      const query = queries[plotted[place][1]];
      bars.setAttribute("aria-valuetext", `${query[ID]}${query[TEXT] ? `: ${query[TEXT]}` : ""}, ${compared ? signed(plotted[place][0]) : number(plotted[place][0])}`);
      bars.setAttribute("aria-valuenow", place + 1);
    } else if (event.key === "Enter" && lit >= 0) open(queries[plotted[lit][1]][ID]);
  });
  bars.classList.add("live");
  for (const [name, value] of [["tabindex", 0], ["role", "slider"], ["aria-label", "Queries by change; arrow keys move, Enter opens"], ["aria-valuemin", 1], ["aria-valuemax", Math.max(1, queries.length)], ["aria-valuenow", 1]]) bars.setAttribute(name, value);
  $("measure").addEventListener("change", (event) => {
    measure = Number(event.target.value);
    for (const place of document.querySelectorAll("[data-measure]")) place.textContent = data.measures[measure];
    dim();
    sortBars();
    drawBars();
    arrange();
  });

  // The table of queries --------------------------------------------------------------------------------------------
  const table = $("table"), body = $("rows"), search = $("search"), only = $("only");
  const columns = table.querySelectorAll('[data-sort^="m"]:not([data-sort="ms"])').length;
  const filters = [...document.querySelectorAll("#controls select[data-field]")];
  const STATES = ["failed", "worse", "none relevant found", "unknown", "same", "answered", "better"];
  let haystack = null;
  for (const select of filters) {
    const names = data.values[select.dataset.field].map((value, code) => [value, code]).sort((one, two) => one[0].localeCompare(two[0]));
    select.append(...names.map(([value, code]) => make("option", { value: code }, value)));
  }
  const keys = {
    id: (query) => query[ID],
    slice: (query) => data.values[0][query[SLICES][0]],
    delta: (query) => { const change = delta(query, measure); return change === null ? null : change * direction(measure); },
    ms: (query) => query[MS],
    status: (query) => STATES.indexOf(status(query)[2]),
  };
  for (let m = 0; m < columns; m++) keys[`m${m}`] = (query) => query[NOW][m];
  const natural = new Intl.Collator("en", { numeric: true }).compare;
  function arrange({ keep = false } = {}) {
    const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length && !haystack) haystack = queries.map((query) => `${query[ID]} ${query[TEXT]}`.toLowerCase());
    const wanted = filters.filter((select) => select.value !== "").map((select) => [Number(select.dataset.field), Number(select.value)]);
    const rows = [], value = keys[sort.key];
    for (let index = 0; index < queries.length; index++) {
      const query = queries[index];
      if (wanted.some(([field, code]) => query[SLICES][field] !== code)) continue;
      if (words.length && !words.every((word) => haystack[index].includes(word))) continue;
      if (only.checked && !["worse", "failed", "none relevant found"].includes(status(query)[2])) continue;
      rows.push([value(query), index]);
    }
    const compare = sort.key === "id" || sort.key === "slice" ? natural : (one, two) => one - two, turn = sort.up ? 1 : -1;
    // What has no value stands last, whichever way the column is sorted; a failed query is the first thing to look at.
    const first = (index) => (queries[index][ERROR] !== null && sort.up && (sort.key === "delta" || sort.key === "m0") ? 0 : 1);
    rows.sort((one, two) => first(one[1]) - first(two[1]) || (one[0] === null) - (two[0] === null) || (one[0] === null ? 0 : compare(one[0], two[0]) * turn) || one[1] - two[1]);
    order = rows.map(([, index]) => index);
    page = keep ? Math.min(page, Math.max(0, Math.ceil(order.length / PAGE) - 1)) : 0;
    show();
  }
  function row(query) {
    const cells = [make("th", { scope: "row" },
      make("a", { class: "query", href: `#q=${encodeURIComponent(query[ID])}` }, isolated(query[ID])), " ", query[TEXT] ? make("span", { class: "text" }, isolated(query[TEXT])) : null)];
    if (data.fields.length) cells.push(make("td", { class: "wide" }, isolated(data.values[0][query[SLICES][0]])));
    for (let m = 0; m < columns; m++) cells.push(make("td", { class: m ? "n wide" : "n" }, number(query[NOW][m])));
    if (compared) {
      const change = delta(query, measure);
      cells.push(make("td", { class: `n ${tone(change, measure)}` }, signed(change)));
    }
    cells.push(make("td", { class: "n wide" }, milliseconds(query[MS])), make("td", null, mark(status(query))));
    return make("tr", { "data-q": query[ID] }, ...cells);
  }
  function show() {
    const start = page * PAGE, end = Math.min(order.length, start + PAGE), all = queries.length;
    body.replaceChildren(...order.slice(start, end).map((index) => row(queries[index])));
    if (!order.length) body.append(make("tr", null, make("td", { class: "empty", colspan: 12 }, "No query fits. Clear the search or the filters to see all.")));
    $("shown").textContent = order.length === all ? `${all.toLocaleString("en")} queries` : `${order.length.toLocaleString("en")} of ${all.toLocaleString("en")} queries`;
    $("page").textContent = order.length ? `${(start + 1).toLocaleString("en")}–${end.toLocaleString("en")} of ${order.length.toLocaleString("en")}` : "";
    $("previous").disabled = page === 0;
    $("next").disabled = end >= order.length;
    for (const head of table.querySelectorAll("[data-sort]")) {
      if (head.dataset.sort === sort.key) head.setAttribute("aria-sort", sort.up ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
  }
  for (const head of table.querySelectorAll("[data-sort]")) {
    const button = make("button", { type: "button", onclick: () => {
      sort = { key: head.dataset.sort, up: sort.key === head.dataset.sort ? !sort.up : true };
      arrange();
    } }, ...head.childNodes);
    head.append(button);
  }
  const turn = (by) => { page += by; show(); table.scrollIntoView({ block: "start" }); };
  $("previous").addEventListener("click", () => turn(-1));
  $("next").addEventListener("click", () => turn(1));
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  let waiting = 0;
  search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(arrange, 60); });
  for (const control of [...filters, only]) control.addEventListener("change", () => arrange());
  body.addEventListener("click", (event) => {
    const line = event.target.closest("tr[data-q]");
    if (line && !event.target.closest("a") && !String(getSelection())) open(line.dataset.q);
  });
  table.classList.add("live");

  // One query: both rankings side by side -----------------------------------------------------------------------------
  const detail = $("detail");
  const hit = (packed) => (typeof packed === "number" ? [packed] : packed);
  function grade(given) {
    if (given === undefined) return make("span", { class: "grade none", title: "not judged" }, "·", make("span", { class: "hear" }, "not judged"));
    const level = given <= 0 ? 0 : Math.max(1, Math.min(3, Math.ceil((3 * given) / Math.max(1, data.top))));
    return make("span", { class: `grade g${level}`, title: `grade ${given}${given >= data.threshold ? ", relevant" : ""}` }, make("span", { class: "hear" }, "grade "), String(given));
  }
  function trail(pairs) {
    const parts = [];
    for (let place = 0; place + 1 < pairs.length; place += 2) parts.push(place ? " · " : "", data.steps[pairs[place]], " ", make("b", null, String(pairs[place + 1])));
    return parts.length ? make("span", { class: "trail" }, ...parts) : null;
  }
  function titled(doc, extra) {
    return make("span", { class: "title" }, data.titles[doc] ? isolated(data.titles[doc]) : null, make("span", { class: "id" }, isolated(data.docs[doc])), extra);
  }
  function movement(place, other, side, relevant) {
    if (!other) return null;
    const there = other.get(place.doc), by = there - place.rank;
    const said = (name, text, aloud) => make("span", { class: `moved ${name}`, title: aloud }, make("span", { "aria-hidden": "true" }, text), make("span", { class: "hear" }, aloud));
    // What moves matters where a relevant document moves; colour says so, the sign says it without colour.
    if (there === undefined) return side ? said(relevant ? "good" : "plain", "new", `was not among the first ${data.depth}`) : said(relevant ? "bad" : "plain", "gone", `no longer among the first ${data.depth}`);
    if (!by) return said("plain", "=", "same rank");
    if (!side) return said("plain", `→ ${there}`, `now at rank ${there}`);
    return said(relevant ? (by > 0 ? "good" : "bad") : "plain", by > 0 ? `▲ ${by}` : `▼ ${-by}`, by > 0 ? `up ${by}` : `down ${-by}`);
  }
  function ranking(name, hits, grades, other, side) {
    const list = hits.map((packed, index) => {
      const [doc, ...steps] = hit(packed);
      return make("li", { "data-doc": doc }, make("span", { class: "rank" }, String(index + 1)), grade(grades.get(doc)), titled(doc, trail(steps)), movement({ doc, rank: index + 1 }, other, side, grades.get(doc) >= data.threshold));
    });
    return make("div", null, make("h3", null, isolated(name)), list.length ? make("ol", { class: "hits" }, ...list) : make("p", { class: "soft" }, "Nothing was returned."));
  }
  function lost(query) {
    if (!query[MISSING].length) return null;
    const list = query[MISSING].map(([doc, given, stage, rank, ...steps]) => {
      const [word, means] = stage < 0 ? [rank ? `rank ${rank}` : "not among the hits", ""] : data.stages[stage];
      const place = stage >= 0 && rank ? `, final rank ${rank}` : "";
      const why = make("span", { class: "why-lost" }, word, make("span", null, `${means ? ": " + means : ""}${place}`));
      return make("li", { "data-doc": doc }, make("span", { class: "rank", "aria-hidden": "true" }, "✕"), grade(given), titled(doc, trail(steps)), why);
    });
    const more = query[LOST] - query[MISSING].length;
    return make("div", { class: "lost" }, make("h3", null, `Relevant, but lost at ${data.k}`), make("ul", { class: "hits" }, ...list), more > 0 ? make("p", { class: "soft" }, `and ${more} more`) : null);
  }
  function scores(query) {
    return make("dl", { class: "scores" }, ...data.measures.map((name, m) => {
      const change = delta(query, m);
      return make("div", null, make("dt", null, name), make("dd", null, number(query[NOW][m]), change === null ? null : make("span", { class: tone(change, m) }, ` ${signed(change)}`)));
    }), make("div", null, make("dt", null, "Latency"), make("dd", null, milliseconds(query[MS]), query[MS_BEFORE] === null ? null : make("span", { class: "soft" }, ` from ${milliseconds(query[MS_BEFORE])}`))));
  }
  function fill(query) {
    const grades = new Map();
    for (let place = 0; place < query[GRADES].length; place += 2) grades.set(query[GRADES][place], query[GRADES][place + 1]);
    const ranks = (hits) => {
      const found = new Map();
      hits.forEach((packed, index) => { const doc = hit(packed)[0]; if (!found.has(doc)) found.set(doc, index + 1); });
      return found;
    };
    const before = query[HITS_BEFORE], both = before !== null, failed = query[ERROR] !== null;
    const facts = data.fields.map((field, place) => `${field.replaceAll("_", " ")}: ${data.values[place][query[SLICES][place]]}`).join(" · ");
    const lists = [];
    if (both) lists.push(ranking(data.names[1], before, grades, failed ? null : ranks(query[HITS]), 0));
    lists.push(failed ? make("div", null, make("h3", null, isolated(data.names[0])), make("p", { class: "bad" }, "No answer: ", isolated(query[ERROR]))) : ranking(data.names[0], query[HITS], grades, both ? ranks(before) : null, 1));
    const place = order.indexOf(position.get(query[ID]));
    const walk = (by, name, glyph) => make("button", { type: "button", "aria-label": name, title: name, onclick: () => step(by), ...(order[place + by] === undefined || place < 0 ? { disabled: "" } : {}) }, glyph);
    detail.replaceChildren(
      make("div", { class: "detail-top" },
        make("div", null, make("p", null, query[TEXT] ? isolated(query[ID]) : null, " ", mark(status(query)), facts ? make("span", null, "  ", isolated(facts)) : null), make("h2", { id: "detail-title" }, isolated(query[TEXT] || query[ID]))),
        make("div", { class: "buttons" }, walk(-1, "Previous query in the table", "←"), walk(1, "Next query in the table", "→"), make("button", { type: "button", onclick: () => detail.close() }, "Close"))),
      make("div", { class: "detail-body", tabindex: 0, role: "region", "aria-label": "Rankings" }, scores(query), make("div", { class: both ? "rankings" : "rankings single" }, ...lists), lost(query),
        make("p", { class: "grades-key" }, `The first ${data.depth} hits at most. Grades from 0 to ${data.top}, relevant from ${data.threshold}; · is not judged.${both ? " Point at a document to find it on the other side." : ""}`)));
  }
  function open(id) {
    const index = position.get(id);
    if (index === undefined) return;
    opened = id;
    dim();
    fill(queries[index]);
    if (!detail.open) detail.showModal();
    detail.querySelector(".detail-body").focus();
    const hash = `#q=${encodeURIComponent(id)}`;
    if (location.hash !== hash) history.replaceState(null, "", hash);
  }
  function step(by) {
    const next = order[order.indexOf(position.get(opened)) + by];
    if (next !== undefined) open(queries[next][ID]);
  }
  detail.addEventListener("close", () => {
    if (detail.open) return; // the browser tells of a closing a moment later: another query may be open by then
    opened = null;
    if (location.hash.startsWith("#q=")) history.replaceState(null, "", location.pathname + location.search);
  });
  detail.addEventListener("click", (event) => event.target === detail && detail.close());
  detail.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
  detail.addEventListener("mouseover", (event) => {
    const doc = event.target.closest("[data-doc]")?.dataset.doc;
    for (const item of detail.querySelectorAll("[data-doc]")) item.classList.toggle("same-doc", doc !== undefined && item.dataset.doc === doc);
  });
  function follow() {
    if (!location.hash.startsWith("#q=")) return;
    let id = location.hash.slice(3);
    try { id = decodeURIComponent(id); } catch { /* a hand-written link with a bare % */ }
    open(id);
  }
  addEventListener("hashchange", follow);

  // Paper: folded parts open, and the query that is open goes along ---------------------------------------------------
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const part of folded) part.open = true;
    if (opened !== null) $("printed").replaceChildren(...[...detail.childNodes].map((node) => node.cloneNode(true)));
  });
  addEventListener("afterprint", () => {
    for (const part of folded) part.open = false;
    $("printed").replaceChildren();
  });

  for (const part of document.querySelectorAll(".needs-script")) part.hidden = false;
  sortBars();
  drawBars();
  arrange();
  follow();
})();
