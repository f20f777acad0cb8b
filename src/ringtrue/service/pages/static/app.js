// What every page can do: theme, keys, copying, jobs that move, and error messages. Pages work without it.
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
    for (const box of all("[data-events]", within)) if (!box.dataset.followed) { box.dataset.followed = "yes"; follow(box); }
  };

  addEventListener("keydown", press);
  addEventListener("click", click);
  addEventListener("storage", (event) => { if (event.key === "ringtrue-theme") choose(store.get()); });
  document.addEventListener("htmx:configRequest", (event) => {
    event.detail.headers["X-CSRF-Token"] = document.querySelector('meta[name="csrf-token"]').content;
  });
  document.addEventListener("htmx:responseError", (event) => toast(said(event.detail.xhr)));
  document.addEventListener("htmx:sendError", () => toast("The server cannot be reached. Is it still running?"));
  document.addEventListener("htmx:timeout", () => toast("The server took too long to answer. Try again."));
  document.addEventListener("htmx:load", (event) => enliven(event.detail.elt.parentNode || document));
  choose(store.get());
  addEventListener("DOMContentLoaded", () => enliven(document));
  window.ringtrue = { toast };
})();
