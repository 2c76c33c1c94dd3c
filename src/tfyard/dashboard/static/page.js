"use strict";
// What a page does beyond what its HTML does: it stays up to date, follows logs, shows times in the reader's zone.
(() => {
  const byId = (id) => document.getElementById(id);
  const live = document.querySelector("[data-live]");
  const lines = byId("lines");
  const MOST_LINES = 2000, SILENCE = 6000, QUIET = 25000, POLL = 2000, HELD = 60000;

  // --- times, and light or dark
  const stored = (key) => { try { return localStorage.getItem("tfyard-" + key); } catch { return null; } };
  const store = (key, value) => { try { localStorage.setItem("tfyard-" + key, value); } catch { /* private window */ } };
  const pad = (number, width = 2) => String(number).padStart(width, "0");
  let zone = stored("zone") === "local" ? "local" : "utc";
  const nameOfZone = () => (zone === "utc" ? "UTC" : "local time");

  function showTime(element) {
    const at = new Date(element.getAttribute("datetime")), shows = element.dataset.shows;
    if (isNaN(at)) return;
    const get = (name) => at[(zone === "utc" ? "getUTC" : "get") + name]();
    const clock = `${pad(get("Hours"))}:${pad(get("Minutes"))}:${pad(get("Seconds"))}`;
    const day = `${get("FullYear")}-${pad(get("Month") + 1)}-${pad(get("Date"))}`;
    if (shows !== "words") element.textContent = shows === "short" ? clock : `${day} ${clock}`;
    element.title = `${day} ${clock} ${nameOfZone()}`;
  }
  function showTimes(where) {
    where.querySelectorAll("[datetime]").forEach(showTime);
    where.querySelectorAll("[data-zone]").forEach((each) => { each.textContent = nameOfZone(); });
  }

  const zoneButton = byId("zone");
  function useZone(name) {
    zone = name === "local" ? "local" : "utc";
    zoneButton.textContent = zone === "utc" ? "UTC" : "Local time";
    zoneButton.title = `Times are in ${nameOfZone()}; change`;
    zoneButton.setAttribute("aria-label", zoneButton.title);
    showTimes(document);
  }
  byId("utc").hidden = true;
  zoneButton.hidden = false;
  useZone(zone);
  zoneButton.addEventListener("click", () => {
    useZone(zone === "utc" ? "local" : "utc");
    store("zone", zone);
  });
  addEventListener("storage", (event) => { if (event.key === "tfyard-zone") useZone(event.newValue); });

  const themeButton = byId("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  function paint(theme) {
    if (theme) document.documentElement.dataset.theme = theme;
    const now = theme || (dark.matches ? "dark" : "light");
    themeButton.textContent = now === "dark" ? "Dark" : "Light";
  }
  themeButton.hidden = false;
  paint(stored("theme"));
  themeButton.addEventListener("click", () => {
    const now = document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");
    store("theme", now === "dark" ? "light" : "dark");
    paint(stored("theme") || (now === "dark" ? "light" : "dark"));
  });

  // --- keyboard: / searches, Escape leaves a field or a menu
  addEventListener("keydown", (event) => {
    const typing = event.target.closest("input:not([type=checkbox]), textarea, select");
    const menu = document.querySelector(".columns[open], .who[open]");
    if (event.key === "/" && !typing && byId("find")) {
      event.preventDefault();
      byId("find").focus();
    } else if (event.key === "Escape" && menu) {
      menu.open = false;
      menu.querySelector("summary").focus();
    } else if (event.key === "Escape" && typing) {
      typing.blur();
    }
  });

  // --- parts of the page; what somebody selects or presses stays until they let go of it
  const held = new Map();
  let pressed = null, since = 0;
  function isHeld(element) {
    if (!held.size) since = Date.now();
    const selection = getSelection(), isFresh = Date.now() - since < HELD;
    const isIn = element.contains(selection.anchorNode) || element.contains(selection.focusNode);
    return isFresh && (element.contains(pressed) || (!selection.isCollapsed && isIn));
  }
  function release() {
    const parts = [...held.values()];
    held.clear();
    parts.forEach(replacePart);
  }
  addEventListener("pointerdown", (event) => { pressed = event.target; });
  for (const name of ["pointerup", "pointercancel"]) {
    addEventListener(name, () => setTimeout(() => { pressed = null; release(); }));
  }
  document.addEventListener("selectionchange", release);

  function replacePart(part) {
    const element = byId(part.id);
    if (!element || element.dataset.version === part.version) return;
    if (isHeld(element)) return held.set(part.id, part);
    held.delete(part.id);
    const open = new Set([...element.querySelectorAll("details[id]")].filter((each) => each.open).map((each) => each.id));
    const closed = new Set([...element.querySelectorAll("details[id]")].filter((each) => !each.open).map((each) => each.id));
    const marked = new Set([...element.querySelectorAll("input:checked")].map((each) => each.value));
    const scrolled = [...element.querySelectorAll(".scroll")].map((each) => [each.scrollLeft, each.scrollTop]);
    const focused = element.contains(document.activeElement) ? way(document.activeElement, element) : null;
    element.innerHTML = part.html;
    element.dataset.version = part.version;
    element.querySelectorAll("details[id]").forEach((each) => {
      if (open.has(each.id)) each.open = true;
      if (closed.has(each.id)) each.open = false;
    });
    element.querySelectorAll("input[type=checkbox]").forEach((each) => { each.checked = marked.has(each.value); });
    element.querySelectorAll(".scroll").forEach((each, at) => {
      if (scrolled[at]) [each.scrollLeft, each.scrollTop] = scrolled[at];
    });
    if (focused) element.querySelector(focused)?.focus({ preventScroll: true });
    showTimes(element);
    if (part.id === "head") document.title = document.title.replace(/^[^:]*/, element.querySelector(".pill").textContent);
    countMarked();
  }
  function way(focused) {
    for (const name of ["href", "value", "action", "formaction", "id"]) {
      const value = focused.getAttribute(name);
      if (value) return `${focused.tagName}[${name}="${CSS.escape(value)}"]`;
    }
    return null;
  }

  // --- the log
  const box = byId("log-box"), pause = byId("pause"), skippedText = byId("skipped");
  let paused = false, waiting = [], skipped = 0, next = lines?.dataset.next || "";
  const isAtEnd = () => box.scrollHeight - box.scrollTop - box.clientHeight < 40;

  function addLines(log) {
    next = log.next;
    if (log.is_anew) {
      lines.replaceChildren();
      waiting = [];
    }
    skipped += log.skipped || 0;
    if (paused) {
      waiting.push(log.html);
      waiting = waiting.slice(-200);
      pause.textContent = "Go on (new lines wait)";
    } else {
      append(log.html);
    }
    if (skipped) {
      skippedText.hidden = false;
      skippedText.textContent = `${skipped.toLocaleString("en")} lines were skipped: more than a page can show; a download has all of them.`;
    }
    byId("log-end").textContent = log.end || "";
    pause.hidden = Boolean(log.end) && !paused;
  }
  function append(html) {
    const follows = isAtEnd();
    const template = document.createElement("template");
    template.innerHTML = html;
    showTimes(template.content);
    lines.append(template.content);
    while (lines.children.length > MOST_LINES) lines.firstElementChild.remove();
    if (follows) box.scrollTop = box.scrollHeight;
  }
  if (pause && lines?.dataset.next !== undefined) {
    pause.hidden = Boolean(byId("log-end").textContent);
    box.scrollTop = box.scrollHeight;
    pause.addEventListener("click", () => {
      paused = !paused;
      pause.setAttribute("aria-pressed", paused);
      pause.textContent = paused ? "Go on" : "Pause";
      if (!paused) {
        waiting.forEach(append);
        waiting = [];
        box.scrollTop = box.scrollHeight;
      }
    });
  }
  document.querySelector("#lines .marked")?.scrollIntoView({ block: "center" });

  // --- several jobs
  const bulk = byId("bulk");
  function countMarked() {
    if (!bulk) return;
    const count = document.querySelectorAll("input[name=job]:checked").length;
    bulk.classList.toggle("some", count > 0);
    bulk.querySelectorAll("button").forEach((each) => { each.disabled = !count; });
    bulk.querySelector("span").textContent = count ? `${count} marked:` : "With those that are marked:";
  }
  document.addEventListener("change", countMarked);
  countMarked();

  // --- one stream for everything; polls where a proxy holds streams back
  let stream = null, silence = null, polling = null, streams = true;
  const address = () => live.dataset.live + (live.dataset.live.includes("?") ? "&" : "?") + "after=" + next;
  function take(text) {
    const update = JSON.parse(text);
    (update.parts || []).forEach(replacePart);
    if (update.log && lines) addLines(update.log);
    byId("lost").hidden = true;
  }
  function connect() {
    if (stream || document.hidden) return;
    stream = new EventSource(address());
    silence = setTimeout(() => { streams = false; disconnect(); poll(); }, SILENCE);
    stream.onmessage = (event) => {
      clearTimeout(silence);
      silence = setTimeout(lose, QUIET);  // the server says something every ten seconds
      take(event.data);
    };
    stream.onerror = lose;
  }
  function lose() {
    byId("lost").hidden = false;
    disconnect();
    polling = setTimeout(byId("who") ? poll : begin, POLL);
  }
  function disconnect() {
    clearTimeout(silence);
    clearTimeout(polling);
    stream?.close();
    stream = null;
  }
  async function poll() {
    if (document.hidden) return;
    try {
      const answer = await fetch(address() + "&poll=1", { signal: AbortSignal.timeout(QUIET) });
      if (answer.status === 401 && byId("who")) return location.reload();  // signed out: the form says so
      if (!answer.ok) throw new Error(answer.statusText);
      take(await answer.text());
    } catch {
      byId("lost").hidden = false;
    }
    polling = setTimeout(begin, POLL);
  }
  const begin = () => (streams ? connect() : poll());
  if (live) {
    begin();
    document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : begin()));
    addEventListener("pagehide", disconnect);
    addEventListener("pageshow", (event) => { if (event.persisted) begin(); });
  }
})();
