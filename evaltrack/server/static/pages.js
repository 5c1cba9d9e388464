"use strict";
document.documentElement.classList.add("scripted");

// Tables: heads that sort, a field that filters rows by their words.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0];
  const value = (row, place) => {
    const cell = row.cells[place];
    const key = cell ? cell.dataset.sort ?? cell.textContent.trim() : "";
    return key !== "" && !Number.isNaN(Number(key)) ? Number(key) : key.toLowerCase();
  };
  const order = (one, other) => {
    if (one === "" || other === "") return one === other ? 0 : one === "" ? 2 : -2;
    return typeof one === typeof other ? (one < other ? -1 : one > other ? 1 : 0) : typeof one === "number" ? -1 : 1;
  };
  for (const head of table.tHead.rows[0].cells) {
    if (head.dataset.sorts === undefined) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent.trim();
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending" && (head.getAttribute("aria-sort") !== null || head.classList.contains("num"));
      for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].map((row) => [value(row, head.cellIndex), row]);
      rows.sort(([one], [other]) => { const way = order(one, other); return Math.abs(way) === 2 ? Math.sign(way) : down ? -way : way; });
      body.append(...rows.map(([, row]) => row));
    });
  }
}
for (const field of document.querySelectorAll("input[data-filters]")) {
  const table = document.getElementById(field.dataset.filters);
  const told = document.getElementById(`${field.dataset.filters}-shown`);
  const apply = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = (row.dataset.words ?? row.textContent).toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    told.textContent = words.length ? `${shown} of ${table.tBodies[0].rows.length} shown` : "";
    history.replaceState(null, "", words.length ? `#${field.dataset.filters}=${encodeURIComponent(field.value)}` : location.pathname + location.search);
  };
  const [name, start] = location.hash.slice(1).split("=");
  if (name === field.dataset.filters && start) { try { field.value = decodeURIComponent(start); apply(); } catch { field.value = ""; } }
  field.addEventListener("input", apply);
}

// Ticks: the button says how many are chosen, and works from two on.
for (const form of document.querySelectorAll("form[data-ticks]")) {
  const ticks = [...document.querySelectorAll(`input[type=checkbox][form="${form.id}"]`)];
  const button = form.querySelector("button");
  const count = () => {
    const chosen = ticks.filter((tick) => tick.checked).length;
    button.disabled = chosen < 2;
    button.textContent = chosen < 2 ? "Compare (tick two or more)" : `Compare ${chosen}`;
  };
  for (const tick of ticks) tick.addEventListener("change", count);
  addEventListener("pageshow", count);
  count();
}

// Menus open below their button.
for (const menu of document.querySelectorAll(".menu[popover]")) {
  const button = document.querySelector(`[popovertarget="${menu.id}"]`);
  menu.addEventListener("toggle", (event) => {
    if (event.newState !== "open") return;
    const at = button.getBoundingClientRect();
    menu.style.margin = "0";
    menu.style.left = `${Math.max(8, Math.min(at.right - menu.offsetWidth, innerWidth - menu.offsetWidth - 8))}px`;
    menu.style.top = `${at.bottom + 4 + menu.offsetHeight > innerHeight ? Math.max(8, at.top - menu.offsetHeight - 4) : at.bottom + 4}px`;
    menu.querySelector("a, input, button")?.focus();
  });
}

// Trends: dragging over a stretch of runs shows these alone; the selects above the runs do the same with the keyboard.
for (const area of document.querySelectorAll("[data-drags]")) {
  let drag = null, dragged = false;
  const along = (event) => { const box = drag.plot.getBoundingClientRect(); return ((event.clientX - box.left) / box.width) * drag.plot.viewBox.baseVal.width; };
  const span = (event) => { const now = along(event); return [Math.min(drag.start, now), Math.max(drag.start, now)]; };
  const end = () => { drag?.mark?.remove(); drag = null; };
  area.addEventListener("dragstart", (event) => { if (event.target.closest?.(".trend")) event.preventDefault(); });
  area.addEventListener("pointerdown", (event) => {
    const plot = event.target.closest(".trend");
    dragged = false;
    if (!plot || event.button !== 0) return;
    drag = { plot, mark: null, at: event.clientX };
    drag.start = along(event);
  });
  addEventListener("pointermove", (event) => {
    if (!drag || (!drag.mark && Math.abs(event.clientX - drag.at) < 6)) return;
    drag.mark ??= drag.plot.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "rect"));
    const [from, to] = span(event);
    for (const [name, value] of Object.entries({ class: "chosen", x: from, y: 0, width: to - from, height: drag.plot.viewBox.baseVal.height })) drag.mark.setAttribute(name, value);
  });
  addEventListener("pointerup", (event) => {
    if (!drag?.mark) { drag = null; return; }
    const [from, to] = span(event);
    dragged = true;
    const inside = [...drag.plot.querySelectorAll("[data-at]")].filter((point) => { const x = Number(point.querySelector("circle").getAttribute("cx")); return from <= x && x <= to; });
    const moments = inside.map((point) => Number(point.dataset.at));
    end();
    if (moments.length < 2) return;
    const there = new URL(location.href);
    there.searchParams.delete("before");
    there.searchParams.set("from", Math.min(...moments));
    there.searchParams.set("to", Math.max(...moments));
    there.hash = "";
    location.href = there.href;
  });
  addEventListener("pointercancel", end);
  addEventListener("keydown", (event) => { if (event.key === "Escape") end(); });
  area.addEventListener("click", (event) => { if (dragged) event.preventDefault(); dragged = false; }, true);
}

// What is under way comes anew; nothing else of the page changes.
const RENEWED = 10_000;
async function renew() {
  const under = document.querySelectorAll(".live");
  if (under.length && !document.hidden) {
    try {
      const answer = await fetch(location.pathname + location.search);
      const there = answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
      for (const each of there ? under : []) {
        const now = there.getElementById(each.id);
        if (now) { each.replaceChildren(...now.childNodes); continue; }
        const link = Object.assign(document.createElement("a"), { href: location.pathname + location.search, textContent: "ended: show the result" });
        each.replaceChildren(link);
        each.classList.remove("live");
      }
    } catch { /* the server is away; it is asked again */ }
  }
  if (document.querySelector(".live")) setTimeout(renew, RENEWED);
}
if (document.querySelector(".live")) setTimeout(renew, RENEWED);
