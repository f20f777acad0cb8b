// What every page can do: theme, keys, copying, charts, jobs that move, and errors that are said. Pages work without it.
(() => {
  "use strict";
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (name, attributes = {}, ...inside) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...inside);
    return made;
  };
  const store = {
    get: () => { try { return localStorage.getItem("ringtrue-theme") || "system"; } catch { return "system"; } },
    set: (theme) => { try { localStorage.setItem("ringtrue-theme", theme); } catch { /* it holds for this page */ } },
  };

  // --- theme
  const choose = (theme) => {
    if (theme === "system") delete root.dataset.theme; else root.dataset.theme = theme;
    for (const button of all("[data-theme-choice]")) button.setAttribute("aria-pressed", String(button.dataset.themeChoice === theme));
    redraw();
  };

  // --- messages
  const toast = (text) => {
    const close = make("button", { type: "button", class: "quiet", "aria-label": "Close the message" }, "✕");
    const box = make("div", { class: "toast" }, make("p", {}, text), close);
    close.addEventListener("click", () => box.remove());
    document.getElementById("toasts").append(box);
    setTimeout(() => box.remove(), 12000);
  };
  const said = (request) => {
    try {
      const message = JSON.parse(request.responseText).error.message;
      if (message) return message;
    } catch { /* no JSON: a page or nothing */ }
    const found = new DOMParser().parseFromString(request.responseText || "", "text/html").querySelector("[data-problem]");
    return found ? found.dataset.problem : `The server answered with error ${request.status}. Load the page again.`;
  };

  // --- keys
  const typing = (target) => target.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
  let going = 0;
  const press = (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const open = document.querySelector("dialog[open]");
    if (event.key === "?" && (!open || open.id === "keys")) {
      event.preventDefault();
      if (open) open.close(); else document.getElementById("keys").showModal();
      return;
    }
    if (open && open.id !== "keys") return;
    if (event.key === "/") {
      const field = document.querySelector("[data-search]");
      if (field) { event.preventDefault(); field.focus(); field.select(); }
    } else if (event.timeStamp < going) { // when it was pressed: a busy page comes to it later
      going = 0;
      const link = all("[data-jump]").find((one) => one.dataset.jump === event.key);
      if (link) { event.preventDefault(); location.assign(link.href); }
    } else if (event.key === "g") {
      going = event.timeStamp + 1500;
    } else if (event.key.startsWith("Arrow")) {
      rove(event);
    }
  };
  // The links of a picture are one stop for the Tab key; arrows walk among them.
  const rove = (event) => {
    const group = event.target.closest("[data-rove]");
    if (!group) return;
    event.preventDefault();
    const links = all("a", group);
    const next = links.indexOf(event.target) + (["ArrowRight", "ArrowDown"].includes(event.key) ? 1 : -1);
    if (links[next]) { event.target.setAttribute("tabindex", "-1"); links[next].setAttribute("tabindex", "0"); links[next].focus(); }
  };

  // --- clicks
  const copy = async (button) => {
    const text = button.dataset.copy;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Outside of https a browser gives no clipboard; the old way works on what is selected.
      const field = make("textarea", { class: "hear", "aria-hidden": "true" });
      field.value = text;
      document.body.append(field);
      field.select();
      const done = document.execCommand("copy");
      field.remove();
      if (!done) return toast("This browser did not let the page copy. Select the text and copy it yourself.");
    }
    button.classList.add("copied");
    setTimeout(() => button.classList.remove("copied"), 1800);
  };
  const click = (event) => {
    const button = event.target.closest("[data-copy], [data-open], [data-close], [data-theme-choice]");
    if (!button) {
      if (event.target.nodeName === "DIALOG") event.target.close(); // beside the box
      return;
    }
    if ("copy" in button.dataset) copy(button);
    else if ("open" in button.dataset) document.getElementById(button.dataset.open).showModal();
    else if ("close" in button.dataset) button.closest("dialog").close();
    else { store.set(button.dataset.themeChoice); choose(button.dataset.themeChoice); }
  };

  // --- charts
  const drawn = new Map();
  const colour = (name) => {
    const probe = make("span", { hidden: "" });
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const faded = (rgb, share) => rgb.replace(/rgba?\(([^)]+)\)/, (_, parts) => `rgba(${parts.split(",").slice(0, 3).join(",")}, ${share})`);
  const TONES = { good: "--good", bad: "--bad", unsure: "--unsure", plain: "--accent", soft: "--soft" };
  const ORDER = ["plain", "unsure", "good", "bad", "soft"];
  const options = (data, box, height) => {
    const [ink, line] = [colour("--soft"), colour("--line")];
    const font = `11px ${getComputedStyle(document.body).fontFamily}`;
    const shown = (value) => (value === null || value === undefined ? "—" : `${Number(value.toPrecision(4)).toLocaleString("en")}${data.unit ? ` ${data.unit}` : ""}`.replace("-", "−"));
    const axis = { stroke: ink, font, grid: { stroke: line, width: 1 }, ticks: { show: false }, gap: 6 };
    const day = (seconds, options) => new Date(seconds * 1000).toLocaleString("en-GB", { timeZone: "UTC", ...options });
    const moment = (_, x) => (x === null ? "—" : day(x, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }));
    // A tick at midnight is a day, one between days an hour.
    const named = (tick, step) => (tick % 86400 === 0 || step >= 86400 ? day(tick, { day: "numeric", month: "short" }) : day(tick, { hour: "2-digit", minute: "2-digit" }));
    const series = [{ label: data.axis || (data.time ? "Time (UTC)" : "x"), value: data.time ? moment : (_, x) => shown(x) }];
    const columns = [data.x];
    const bands = [];
    data.series.forEach((one, place) => {
      const main = colour(TONES[one.tone || ORDER[place % ORDER.length]]);
      if (one.low && one.high) {
        const edge = { stroke: "transparent", width: 0, points: { show: false }, class: "edge" };
        series.push({ ...edge, label: `${one.name}, high` }, { ...edge, label: `${one.name}, low` });
        columns.push(one.high, one.low);
        bands.push({ series: [columns.length - 2, columns.length - 1], fill: faded(main, 0.16) });
      }
      series.push({ label: one.name, stroke: main, width: 2, dash: place > 0 && !one.tone ? [6, 4] : undefined, points: { show: data.x.length < 40, size: 6, fill: colour("--card") }, spanGaps: false, value: (_, y, __, at) => (one.low && one.high && y !== null && at !== null ? `${shown(y)} (${shown(one.low[at])} to ${shown(one.high[at])})` : shown(y)) });
      columns.push(one.values);
    });
    const rules = (u) => {
      for (const rule of data.lines || []) {
        const y = Math.round(u.valToPos(rule.value, "y", true)) + 0.5;
        if (y < u.bbox.top || y > u.bbox.top + u.bbox.height) continue;
        const draw = u.ctx;
        draw.save();
        draw.strokeStyle = draw.fillStyle = colour(TONES[rule.tone || "unsure"]);
        draw.lineWidth = devicePixelRatio;
        draw.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
        draw.beginPath();
        draw.moveTo(u.bbox.left, y);
        draw.lineTo(u.bbox.left + u.bbox.width, y);
        draw.stroke();
        draw.font = `${11 * devicePixelRatio}px ${getComputedStyle(document.body).fontFamily}`;
        draw.textAlign = "right";
        draw.textBaseline = "bottom";
        draw.fillText(rule.name, u.bbox.left + u.bbox.width - 4, y - 2 * devicePixelRatio);
        draw.restore();
      }
    };
    const reach = (u, low, high) => {
      const values = [low, high, ...(data.lines || []).map((rule) => rule.value)].filter(Number.isFinite);
      const [least, most] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
      const air = (most - least || Math.abs(most) || 1) * 0.08;
      return [data.from === undefined ? least - air : Math.min(data.from, least), data.to === undefined ? most + air : Math.max(data.to, most)];
    };
    // Of a single moment uPlot would show years.
    const around = (u, low, high) => (data.time && data.x.length === 1 ? [data.x[0] - 7200, data.x[0] + 7200] : [low, high]);
    return [{
      width: Math.max(200, box.clientWidth), height, series, bands, legend: { live: true },
      cursor: { drag: { x: true, y: false }, points: { size: 7 } },
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
      scales: { x: { time: Boolean(data.time), ...(data.time && { range: around }) }, y: { range: reach } },
      axes: [{ ...axis, grid: { show: false }, space: 80, values: (_, ticks, __, ___, step) => ticks.map(data.time ? (tick) => named(tick, step) : shown) }, { ...axis, size: 58, values: (_, ticks) => ticks.map(shown) }],
      hooks: { draw: [rules] },
    }, columns];
  };
  const draw = (box) => {
    const data = JSON.parse(document.getElementById(box.dataset.chart).textContent);
    const before = drawn.get(box);
    if (before) before.destroy();
    if (!data.x.length) { box.replaceChildren(make("p", { class: "soft" }, "No data yet.")); return; }
    const [made, columns] = options(data, box, Number(box.dataset.height));
    drawn.set(box, new uPlot(made, columns, box));
  };
  const watched = window.ResizeObserver && new ResizeObserver((seen) => {
    for (const { target } of seen) {
      const chart = drawn.get(target);
      if (chart && Math.abs(chart.width - target.clientWidth) > 1) chart.setSize({ width: Math.max(200, target.clientWidth), height: chart.height });
    }
  });
  const redraw = () => { for (const box of drawn.keys()) if (box.isConnected) draw(box); else { drawn.get(box).destroy(); drawn.delete(box); } };

  // --- jobs
  const OVER = ["done", "failed", "cancelled", "interrupted"];
  const follow = (box) => {
    const source = new EventSource(box.dataset.events);
    const fields = (name) => all(`[data-field="${name}"]`, box);
    const grouped = (value) => (typeof value === "number" ? value.toLocaleString("en") : value ?? "");
    const tell = (event) => {
      const job = JSON.parse(event.data);
      if (!box.isConnected) return source.close();
      for (const name of ["done", "total", "says", "state"]) {
        if (name in job) for (const field of fields(name)) if (field.textContent !== grouped(job[name])) field.textContent = grouped(job[name]);
      }
      for (const of of all("[data-of]", box)) of.hidden = !job.total;
      for (const bar of fields("bar")) if (job.total) { bar.max = job.total; bar.value = job.done; } else bar.removeAttribute("value");
      const running = box.querySelector("template[data-running]");
      if (running && job.state === "running") { box.querySelector("[data-badge]").replaceChildren(running.content); running.remove(); }
      if (OVER.includes(job.state)) {
        source.close();
        // In the place of this page: whoever goes back from the result wants what was before the waiting.
        if (job.state === "done" && box.dataset.then) location.replace(box.dataset.then); else location.reload();
      }
    };
    for (const name of ["message", "progress", "end"]) source.addEventListener(name, (event) => { if (event.data) tell(event); });
    source.addEventListener("error", () => { if (source.readyState === EventSource.CLOSED) toast("The connection to the server was lost. Load the page again to see how far the job is."); });
    addEventListener("pagehide", () => source.close(), { once: true });
  };

  // Whatever comes into the page, at first or through htmx, is made alive once.
  const enliven = (within) => {
    for (const one of all(".needs-script", within)) one.hidden = false;
    for (const box of all("[data-chart]", within)) if (!drawn.has(box) && window.uPlot) { draw(box); watched?.observe(box); }
    for (const box of all("[data-events]", within)) if (!box.dataset.followed) { box.dataset.followed = "yes"; follow(box); }
  };

  addEventListener("keydown", press);
  addEventListener("click", click);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("storage", (event) => { if (event.key === "ringtrue-theme") choose(store.get()); });
  document.addEventListener("htmx:configRequest", (event) => {
    event.detail.headers["X-CSRF-Token"] = document.querySelector('meta[name="csrf-token"]').content;
  });
  document.addEventListener("htmx:responseError", (event) => toast(said(event.detail.xhr)));
  document.addEventListener("htmx:sendError", () => toast("The server cannot be reached. Is it still running?"));
  document.addEventListener("htmx:timeout", () => toast("The server took too long to answer. Try again."));
  document.addEventListener("htmx:load", (event) => enliven(event.detail.elt.parentNode || document));
  choose(store.get());
  // After every other script of the page: the one that draws charts is only where there are some.
  addEventListener("DOMContentLoaded", () => enliven(document));
  window.ringtrue = { toast };
})();
