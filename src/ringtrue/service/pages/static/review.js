// Judging by keys. What is pressed shows at once and is sent behind it; what cannot be sent is kept in this browser until it can.
(() => {
  "use strict";
  const QUIET_MS = 250; // a pair that just appeared cannot be judged yet: a key pressed twice is one judgment
  const KEPT_PAIRS = 10;
  const byId = (id) => document.getElementById(id);
  const typing = (target) => target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
  const plainKey = (event) => !event.defaultPrevented && !event.ctrlKey && !event.metaKey && !event.altKey && !event.repeat;
  const open = () => document.querySelector("dialog[open], #nav:popover-open");

  // --- disputes: one page each, the keys press its buttons, once
  const announced = byId("announced");
  if (announced?.dataset.say) setTimeout(() => { announced.textContent = announced.dataset.say; }, 100);
  const keyed = document.querySelector("form[data-keyed]");
  const unsettle = byId("unsettle");
  if (keyed || unsettle) {
    let sent = false;
    const since = performance.now();
    for (const form of [keyed, unsettle]) form?.addEventListener("submit", (event) => { if (sent) event.preventDefault(); sent = true; });
    addEventListener("pageshow", () => { sent = false; });
    addEventListener("keydown", (event) => {
      if (!plainKey(event) || typing(event.target) || open() || event.timeStamp - since < QUIET_MS) return;
      const button = event.key === "u" ? unsettle?.querySelector("button") : keyed?.querySelector(`[data-grade="${CSS.escape(event.key)}"]`);
      if (button) { event.preventDefault(); button.click(); }
    });
    document.querySelector("[data-pane]")?.focus({ preventScroll: true });
  }

  const desk = byId("desk");
  if (!desk || "closed" in desk.dataset) return;
  const [lies, over, lost, told, kept] = ["lies", "over", "lost", "told", "kept"].map(byId);
  const verdict = byId("verdict");
  const csrf = document.querySelector('meta[name="csrf-token"]').content;
  const say = (text) => { told.textContent = text; };

  // --- what waits to be sent, kept in the browser under the reviewer's name
  const PLACE = `ringtrue-review:${desk.dataset.who}`;
  let memory = [];
  const outbox = {
    all() { try { return JSON.parse(localStorage.getItem(PLACE)) || []; } catch { return memory; } },
    keep(entries) { memory = entries; try { if (entries.length) localStorage.setItem(PLACE, JSON.stringify(entries)); else localStorage.removeItem(PLACE); } catch { /* kept in memory */ } },
    add(entry) { this.keep([...this.all(), entry]); },
    drop(id) { this.keep(this.all().filter((one) => one.id !== id)); },
    tried(id) { this.keep(this.all().map((one) => (one.id === id ? { ...one, tried: true } : one))); },
  };

  let current = null; // the pair on the desk
  let following = null; // the one that is kept for us, ready to be shown
  let passing = desk.dataset.passing ? desk.dataset.passing.split(",") : [];
  const shown = []; // pairs of this sitting, so that an undo shows at once
  let since = 0;
  let down = new Set();
  let sending = false;
  let wait = 0;

  // --- the desk
  const first = lies.querySelector(".pair");
  if (first) current = { key: first.dataset.key, html: first.outerHTML, until: first.dataset.until, query: byId("asked").textContent, title: byId("document-title").textContent };

  const point = (pair) => {
    for (const name of ["judge", "skip", "reject"]) byId(name).action = `/review/${encodeURIComponent(pair.key)}/${name}`;
  };
  const until = () => {
    if (!current?.until) { kept.textContent = ""; return; }
    const end = new Date(current.until);
    kept.textContent = end > new Date() ? `Kept for you until ${end.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: "UTC" }) + " UTC"}.` : "No longer kept for you: your grade counts if nobody else has taken the pair.";
  };
  const pressed = (grade) => { for (const button of verdict.querySelectorAll("[data-grade]")) if (button.dataset.grade === String(grade)) button.setAttribute("aria-pressed", "true"); else button.removeAttribute("aria-pressed"); };
  const show = (pair, words) => {
    lies.querySelector(".pair")?.remove();
    current = pair;
    since = performance.now();
    byId("note").value = "";
    byId("note-box").open = false;
    pressed("");
    verdict.hidden = !pair;
    over.hidden = Boolean(pair);
    lies.setAttribute("aria-busy", "false");
    desk.dataset.state = pair ? "new" : "over";
    if (location.pathname !== "/review") history.replaceState(null, "", "/review");
    if (!pair) return;
    over.insertAdjacentHTML("beforebegin", pair.html);
    point(pair);
    until();
    lies.querySelector("[data-pane]").focus({ preventScroll: true });
    say(`${words} Question: ${pair.query}. Document: ${pair.title}.`);
    setTimeout(() => { if (current === pair) desk.dataset.state = "ready"; }, QUIET_MS);
  };
  const nothing = (progress) => {
    show(null, "");
    const skipped = passing.length;
    const [title, text] = progress.total === 0 ? ["The queue is empty", "Put pairs into it: documents that your searches found and nobody judged, or questions from the log."]
      : progress.left === 0 ? ["You have judged everything", "Every pair that waits has your grade. Thank you."]
        : skipped && progress.left > progress.elsewhere ? ["Only pairs that you skipped are left", `You skipped ${skipped}. Go through them again, or leave them to others.`]
          : ["Others have the rest", `${progress.elsewhere} reserved by other reviewers. Unjudged pairs return to the queue.`];
    byId("over-title").textContent = title;
    byId("over-text").textContent = text;
    byId("over-title").focus();
    say(`${title}. ${text}`);
  };
  const loading = () => {
    lies.querySelector(".pair")?.classList.add("gone");
    lies.setAttribute("aria-busy", "true");
    current = null;
    desk.dataset.state = "waiting";
  };
  const forward = (words) => {
    if (current) { shown.push(current); if (shown.length > KEPT_PAIRS) shown.shift(); }
    const pair = following;
    following = null;
    if (pair) show(pair, words); else { loading(); say(`${words} Getting the next pair.`); }
  };

  // --- numbers
  const field = (name) => document.querySelector(`#strip [data-field="${name}"]`);
  const number = (value) => value.toLocaleString("en");
  const count = (progress) => {
    for (const name of ["today", "left", "done", "total"]) field(name).textContent = number(progress[name]);
    field("bar").max = progress.total || 1;
    field("bar").value = progress.done;
  };

  // --- sending
  class Gone extends Error {}
  const post = async (address, fields) => {
    let answer;
    try {
      answer = await fetch(address, { method: "POST", headers: { Accept: "application/json", "X-CSRF-Token": csrf }, body: new URLSearchParams(fields), signal: AbortSignal.timeout(20000) });
    } catch {
      throw new Gone("The server cannot be reached.");
    }
    if (answer.redirected || answer.status === 401) throw new Gone("You are signed out. Sign in again in another tab, then load this page again.");
    if (!(answer.headers.get("content-type") || "").startsWith("application/json")) {
      if (answer.status === 403) throw new Gone("This page is out of date. Load it again.");
      throw new Gone(answer.status === 429 ? "The server is asked too much." : `The server answered with error ${answer.status}.`);
    }
    return answer.json();
  };
  const passed = () => [...passing, current?.key, following?.key].filter(Boolean).join(",");
  const trouble = (problem) => {
    const waiting = outbox.all().length;
    const safe = waiting ? `${waiting === 1 ? "1 judgment is" : `${waiting} judgments are`} kept in this browser and sent when the server answers.` : "Nothing is lost.";
    lost.textContent = `${problem.message} ${safe} Trying again…`;
    lost.hidden = false;
    wait = Math.min(15000, (wait || 500) * 2);
    setTimeout(work, wait);
  };
  const well = () => { if (!lost.hidden) { lost.hidden = true; say("The connection is back. Everything was sent."); } wait = 0; };
  const taken = (entry, error) => {
    const pair = [...shown].reverse().find((one) => one.key === entry.key);
    window.ringtrue.toast(`Not counted${pair ? ` for “${pair.query}”` : ""}: ${error.message}.`);
  };
  const arrived = (answer, wantsBack) => {
    count(answer.progress);
    byId("recent").innerHTML = answer.recent;
    if (wantsBack && answer.back && answer.back.key !== current?.key) {
      if (current) following = current;
      show(answer.back, "Taken back.");
    }
    if (wantsBack && !answer.back) { window.ringtrue.toast("There is nothing to take back."); }
    const pair = answer.next;
    if (pair && pair.key !== current?.key && !passing.includes(pair.key) && pair.key !== following?.key) {
      if (!current) show(pair, "Next pair."); else if (!following) following = pair;
    } else if (!pair && !current && !following && !outbox.all().length) {
      nothing(answer.progress);
    }
    if (!current && following) { const ready = following; following = null; show(ready, "Next pair."); }
  };
  // One thing at a time, in the order of the keys: an undo means the judgment before it.
  const work = async () => {
    if (sending) return;
    sending = true;
    try {
      do {
        const entry = outbox.all()[0];
        if (entry) {
          outbox.tried(entry.id);
          const answer = await post(entry.address, { ...entry.fields, pass: passed() });
          outbox.drop(entry.id);
          if (answer.error) taken(entry, answer.error);
          arrived(answer, entry.what === "undo");
        } else if (verdict && !following) {
          arrived(await post("/review/next", { pass: passed() }), false);
        }
        well();
      } while (outbox.all().length);
    } catch (problem) {
      if (!(problem instanceof Gone)) throw problem;
      trouble(problem);
    } finally {
      sending = false;
    }
    desk.dataset.sent = String(outbox.all().length === 0);
  };
  const send = (what, address, fields, extra = {}) => {
    desk.dataset.sent = "false";
    outbox.add({ id: `${Date.now()}-${Math.random()}`, what, address, fields, ...extra });
    work();
  };

  // --- what keys and buttons do
  // For a key it counts when it was pressed: a busy page comes to it later.
  const settled = (at = performance.now()) => current && at - since >= QUIET_MS;
  const address = (what) => `/review/${encodeURIComponent(current.key)}/${what}`;
  const judge = (grade, at) => {
    if (!settled(at)) return;
    const fields = { grade, note: byId("note").value.trim() };
    const [to, key] = [address("judge"), current.key];
    forward(`Graded ${grade}.`);
    send("judge", to, fields, { key });
  };
  const skip = (at) => {
    if (!settled(at)) return;
    const [to, key] = [address("skip"), current.key];
    passing = [...passing.filter((one) => one !== key), key].slice(-200);
    forward("Skipped.");
    send("skip", to, {}, { key });
  };
  const reject = (why) => {
    if (!current || !why) return;
    const [to, key] = [address("reject"), current.key];
    forward("Rejected.");
    send("reject", to, { why }, { key });
  };
  const undo = () => {
    const waiting = outbox.all();
    const last = waiting.at(-1);
    const pair = last && ["judge", "reject"].includes(last.what) && !last.tried && shown.find((one) => one.key === last.key);
    if (pair) {
      // Never left this browser: taken back here.
      outbox.drop(last.id);
      if (current) following = current;
      shown.splice(shown.indexOf(pair), 1);
      show(pair, "Taken back.");
      return;
    }
    send("undo", "/review/undo", {});
  };
  const why = () => byId("reject").elements.why.focus(); // not Close, which the first space would press
  const note = () => { byId("note-box").open = true; byId("note").focus(); };
  const guidelines = byId("guidelines");
  const GUIDE = "ringtrue-review-guidelines";
  try { if (localStorage.getItem(GUIDE) === "closed") guidelines.open = false; } catch { /* stays open */ }
  guidelines?.addEventListener("toggle", () => { try { localStorage.setItem(GUIDE, guidelines.open ? "open" : "closed"); } catch { /* not remembered */ } });

  const scroll = (event) => {
    const pane = lies.querySelector("[data-pane]");
    if (!pane || pane === document.activeElement || event.target.closest("button, a, summary")) return false;
    const step = { ArrowDown: 60, ArrowUp: -60, " ": pane.clientHeight * 0.85, PageDown: pane.clientHeight * 0.85, PageUp: -pane.clientHeight * 0.85 }[event.key];
    if (!step) return false;
    pane.scrollBy({ top: step });
    return true;
  };
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && event.target === byId("note")) { lies.querySelector("[data-pane]")?.focus(); return; }
    if (!plainKey(event) || typing(event.target) || open() || !verdict) return;
    if (down.has(event.key) && "0123".includes(event.key)) return;
    down.add(event.key);
    const act = { s: skip, u: undo, n: note, h: () => { guidelines.open = !guidelines.open; }, x: (at) => { if (settled(at)) { byId("reject-dialog").showModal(); why(); } } }[event.key];
    if (["0", "1", "2", "3"].includes(event.key)) { event.preventDefault(); judge(event.key, event.timeStamp); }
    else if (act) { event.preventDefault(); act(event.timeStamp); }
    else if (scroll(event)) event.preventDefault();
  });
  addEventListener("keyup", (event) => down.delete(event.key));
  addEventListener("blur", () => { down = new Set(); });
  addEventListener("click", (event) => { if (event.target.closest("[data-open='reject-dialog']")) why(); });
  if (verdict) {
    byId("judge").addEventListener("submit", (event) => { event.preventDefault(); if (event.submitter?.dataset.grade) judge(event.submitter.dataset.grade); });
    byId("skip").addEventListener("submit", (event) => { event.preventDefault(); skip(); });
    byId("undo").addEventListener("submit", (event) => { event.preventDefault(); undo(); });
    byId("reject").addEventListener("submit", (event) => {
      event.preventDefault();
      const field = byId("reject").elements.why;
      const why = field.value.trim();
      if (!why) { field.focus(); return; }
      byId("reject-dialog").close();
      field.value = "";
      reject(why);
    });
  }
  addEventListener("online", work);
  setInterval(until, 20000);

  if (current) {
    since = performance.now();
    until();
    lies.querySelector("[data-pane]").focus({ preventScroll: true });
    const laid = current;
    setTimeout(() => { if (current === laid) desk.dataset.state = "ready"; }, QUIET_MS);
  }
  if (verdict || outbox.all().length) work();
})();
