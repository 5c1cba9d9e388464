"use strict";
(() => {
  document.documentElement.classList.add("scripted");
  const data = JSON.parse(document.getElementById("data").textContent);
  const ROW = 62, OVERSCAN = 8, PRINTED = 200;
  const GROUPS = data.groups;
  const order = Object.keys(GROUPS);
  const $ = (id) => document.getElementById(id);
  const list = $("list"), spacer = $("spacer"), detail = $("detail"), found = $("found");
  const filters = { group: $("f-group"), domain: $("f-domain"), difficulty: $("f-difficulty"), cause: $("f-cause") };
  const search = $("search"), sort = $("sort");
  /* Filters without a control of their own, which links of the page set: outcome=pass-fail, moved=overall_score.down */
  const linked = { outcome: "", moved: "" };
  let shown = data.questions, chosen = -1, frame = 0;

  /* Text goes into the page by textContent alone. */
  function el(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === undefined || value === null || value === false) continue;
      if (name === "class") made.className = value;
      else made.setAttribute(name, value === true ? "" : value);
    }
    for (const child of children) {
      if (child !== undefined && child !== null && child !== false && child !== "") made.append(child);
    }
    return made;
  }
  const foreign = (text, tag = "span", kind = "") => el(tag, { class: `foreign ${kind}`.trim(), dir: "auto" }, text);
  const link = (url, text) =>
    url && /^https?:\/\//i.test(url) ? el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, text) : text;
  const badge = (group) => el("span", { class: `badge ${GROUPS[group][1]}` }, GROUPS[group][0]);

  /* ---- the list ---- */
  function haystack(question) {
    if (question.hay === undefined) {
      const parts = [question.id, question.q, question.detail, question.cause, question.category];
      for (const side of question.sides || []) {
        parts.push(side.answer, side.error);
        for (const source of side.sources || []) parts.push(source.name, source.title);
      }
      question.hay = parts.filter(Boolean).join("\n").toLowerCase();
    }
    return question.hay;
  }

  function isLinked(question) {
    if (linked.outcome && `${question.was || question.now}-${question.now}` !== linked.outcome) return false;
    const [name, way] = linked.moved.split(".");
    return !name || (question[way] || []).includes(name);
  }

  const collator = new Intl.Collator(undefined, { numeric: true });
  function sorted(questions) {
    if (sort.value === "id") return questions.slice().sort((a, b) => collator.compare(a.id, b.id));
    if (sort.value === "domain") return questions.slice().sort((a, b) => collator.compare(a.domain || "", b.domain || ""));
    return questions;
  }

  function refresh(keep) {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = Object.entries(filters).filter(([, select]) => select && select.value);
    const matching = data.questions.filter((question) =>
      wanted.every(([name, select]) =>
        name === "group" && select.value === "worse" ? ["flip", "lost", "drop"].includes(question.group)
          : (question[name] || "") === select.value) && isLinked(question) &&
      words.every((word) => haystack(question).includes(word)));
    const held = keep || shown[chosen];
    shown = sorted(matching);
    const total = data.questions.length.toLocaleString("en");
    found.textContent = `${shown.length.toLocaleString("en")} of ${total} questions`;
    spacer.style.height = `${shown.length * ROW}px`;
    chosen = shown.indexOf(held);
    if (chosen < 0 && shown.length) chosen = 0;
    if (chosen === 0) list.scrollTop = 0;
    draw();
    reveal();
    show();
  }

  function item(question, place) {
    const made = el("div", { class: "item", role: "option", id: `o-${place}`, "aria-setsize": shown.length,
      "aria-posinset": place + 1, "aria-selected": place === chosen ? "true" : "false" });
    made.style.top = `${place * ROW}px`;
    const about = el("div", { class: "about" }, badge(question.group));
    about.append(el("span", {}, [question.id, question.again, question.cause, question.domain, question.difficulty].filter(Boolean).join(" · ")));
    made.append(foreign(question.q, "div", "line"), about);
    made.addEventListener("click", () => choose(place, true));
    return made;
  }

  function draw() {
    frame = 0;
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - OVERSCAN);
    const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + OVERSCAN);
    const rows = [];
    for (let place = first; place < last; place += 1) rows.push(item(shown[place], place));
    spacer.replaceChildren(...rows);
    if (chosen >= first && chosen < last) list.setAttribute("aria-activedescendant", `o-${chosen}`);
    else list.removeAttribute("aria-activedescendant");
  }

  function reveal() {
    if (chosen < 0) return;
    const top = chosen * ROW, view = list.clientHeight;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + ROW > list.scrollTop + view) list.scrollTop = top + ROW - view;
  }

  const narrow = () => window.matchMedia("(max-width: 860px)").matches;
  function choose(place, byHand) {
    if (!shown.length) return;
    chosen = Math.max(0, Math.min(shown.length - 1, place));
    reveal();
    draw();
    show();
    remember();
    if (byHand && narrow()) detail.scrollIntoView({ block: "start" });
  }

  /* ---- one question ---- */
  function show() {
    const question = shown[chosen];
    detail.scrollTop = 0;
    if (!question) {
      detail.replaceChildren(el("p", { class: "dim" }, "No question matches; clear the filters to see all."));
      return;
    }
    detail.replaceChildren(...described(question));
  }

  function described(question) {
    const made = [];
    const head = el("p", { class: "small" }, badge(question.group), " ");
    const way = question.was && question.was !== question.now ? `${question.was} → ${question.now}` : "";
    head.append(el("span", { class: "dim" }, [way === GROUPS[question.group][0] ? "" : way, question.domain, question.difficulty, question.category].filter(Boolean).join(" · ")), " ");
    head.append(el("a", { href: `#q-${encodeURIComponent(question.id)}` }, foreign(`#${question.id}`)));
    made.push(head, ...turnsBefore(question), foreign(question.q, "h2"));
    const why = reason(question);
    if (why) made.push(why);
    const sides = question.sides || [];
    if (question.texts) made.push(el("h3", {}, "The text of the source"), difference(question.texts));
    if (sides.some((side) => side.sources !== null)) made.push(sourceLists(sides));
    made.push(...answers(question, sides));
    const rest = sides.map((side, place) => facts(side, place, sides));
    if (rest.some((each) => each.childNodes.length > 1)) made.push(el("div", { class: sides.length > 1 ? "sides" : "" }, ...rest));
    if (!sides.length && data.compared) made.push(el("p", { class: "dim" }, "The rows of this question are not in this page; both runs hold them in per_question.parquet."));
    return made;
  }

  function turnsBefore(question) {
    if (!question.turns) return [];
    const box = el("div", { class: "answer turns" });
    if (question.turns_left_out) box.append(el("p", { class: "dim" }, `${question.turns_left_out} earlier turns are not shown`));
    for (const [role, text] of question.turns) box.append(el("p", {}, el("b", {}, `${role}: `), foreign(text)));
    return [el("h3", {}, "Before the question"), box];
  }

  function wordingList(wordings) {
    const made = el("dl", { class: "facts" });
    for (const [outcome, tone, text, isShown] of wordings) {
      made.append(el("dt", { class: `${tone}-text` }, outcome), el("dd", {}, foreign(text), isShown && el("span", { class: "dim" }, " (its answer is shown)")));
    }
    return made;
  }

  function reason(question) {
    if (!question.detail && !question.lower && !question.note) return null;
    const made = el("div", { class: `why${question.excused || ["fix", "gain", "new"].includes(question.group) ? " good" : question.group === "other" ? " neutral" : ""}` });
    if (question.cause) {
      made.append(el("p", { class: "what" }, `${question.cause}: ${data.causes[question.cause] || ""}`));
    }
    if (question.detail) made.append(foreign(question.detail, "p"));
    if (question.lower) made.append(el("p", { class: "small" }, question.lower));
    for (const other of question.also || []) made.append(foreign(`also ${other}`, "p", "small"));
    if (question.link) made.append(el("p", { class: "small" }, link(question.link, foreign(question.link))));
    if (question.note) made.append(foreign(question.note, "p", "small"));
    return made;
  }

  function label(place, sides) {
    if (sides.length > 1) return data.labels[place];
    return data.compared ? data.alike : "";
  }

  function sourceLists(sides) {
    const made = el("div", { class: sides.length > 1 ? "sides" : "" });
    sides.forEach((side, place) => {
      const title = ["Sources", label(place, sides).toLowerCase()].filter(Boolean).join(", ");
      const box = el("div", { class: "side" }, el("h3", {}, title));
      if (!side.sources) box.append(el("p", { class: "dim" }, "The target reports none."));
      else if (!side.sources.length) box.append(el("p", { class: "dim" }, "None were returned."));
      else box.append(el("ol", { class: "ranked" }, ...side.sources.map((source) => sourceLine(source, place, sides.length > 1))));
      if (side.missing && side.missing.length) {
        box.append(el("p", { class: "small" }, el("b", { class: "bad-text" }, "Expected, not returned: "), foreign(side.missing.join(", "))));
      }
      made.append(box);
    });
    return made;
  }

  function sourceLine(source, place, two) {
    const kind = [source.expected && "expected", source.rank > data.k && "beyond", source.rank === data.k + 1 && "cut"];
    const name = foreign("", "div");
    name.append(link(source.url, foreign(source.name)));
    if (source.title) name.append(el("span", { class: "small" }, " ", foreign(source.title)));
    if (source.expected) name.append(" ", el("span", { class: "badge" }, "expected"));
    if (source.changed) name.append(" ", el("span", { class: "badge warn" }, "text changed"));
    const line = el("li", { class: kind.filter(Boolean).join(" ") },
      el("span", { class: "rank" }, `${source.rank}`), name, el("span", { class: "move" }, two ? moved(source, place) : source.score === undefined ? "" : `${source.score}`));
    if (source.text) line.append(el("details", {}, el("summary", {}, "text"), foreign(source.text, "div", "answer")));
    return line;
  }

  function moved(source, place) {
    if (!source.moved) return source.moved === 0 ? (place ? "new" : "gone") : "";
    const by = place ? source.moved - source.rank : source.rank - source.moved;
    if (by === 0) return "=";
    if (place) return by > 0 ? `▲ ${by}` : `▼ ${-by}`;
    return `→ ${source.moved}`;
  }

  function difference(pieces) {
    const made = el("div", { class: "answer", dir: "auto" });
    for (const [kind, text] of pieces) {
      made.append(kind === "same" ? text : el(kind === "added" ? "ins" : "del", {}, text));
    }
    return made;
  }

  function answers(question, sides) {
    const given = sides.map((side) => side.answer || side.error || (side.declined ? "(declined)" : ""));
    if (!given.some(Boolean)) return [];
    if (question.diff && question.apart) return [bothAnswers(given, sides), el("details", {}, el("summary", {}, "Word by word"), difference(question.diff))];
    if (question.diff) {
      const both = el("details", {}, el("summary", {}, "Both answers in full"), bothAnswers(given, sides));
      return [el("h3", {}, "Answer, before and after"), difference(question.diff), both];
    }
    if (given.length > 1 && given[0] === given[1]) return [el("h3", {}, "Answer, the same on both sides"), foreign(given[0], "div", "answer")];
    return [bothAnswers(given, sides)];
  }

  function bothAnswers(given, sides) {
    return el("div", { class: given.length > 1 ? "sides" : "" }, ...given.map((text, place) =>
      el("div", { class: "side" }, el("h3", {}, sides[place].error && !sides[place].answer ? "Error" : ["Answer", label(place, sides).toLowerCase()].filter(Boolean).join(", ")),
        foreign(text || "–", "div", "answer"))));
  }

  function facts(side, place, sides) {
    const made = el("div", { class: "side" }, el("h3", {}, data.compared ? label(place, sides) : "Scores"));
    const terms = el("dl", { class: "facts" });
    for (const [name, value] of side.scores || []) terms.append(el("dt", {}, name), el("dd", {}, value));
    if (side.wanted) terms.append(el("dt", {}, "Expected answer"), foreign(side.wanted, "dd"));
    if (side.tools && side.tools.length) terms.append(el("dt", {}, "Tools called"), foreign(side.tools.join(", "), "dd"));
    for (const [judge, said] of side.verdicts || []) terms.append(el("dt", {}, foreign(judge)), foreign(said || "–", "dd"));
    if (terms.childNodes.length) made.append(terms);
    if (side.wordings) made.append(el("h3", {}, "Wordings"), wordingList(side.wordings));
    const trace = side.trace && data.traces[data.compared && sides.length < 2 ? 1 : place];
    if (trace) made.append(el("p", { class: "small" }, link(trace + side.trace, "Trace in MLflow")));
    return made;
  }

  /* ---- the address: #q-ID?group=flip&domain=travel&search=... ---- */
  function remember() {
    const options = new URLSearchParams();
    for (const [name, select] of Object.entries(filters)) if (select && select.value) options.set(name, select.value);
    for (const [name, value] of Object.entries(linked)) if (value) options.set(name, value);
    if (search.value) options.set("search", search.value);
    if (sort.value) options.set("sort", sort.value);
    const question = shown[chosen], rest = options.toString();
    const hash = `#${question ? `q-${encodeURIComponent(question.id)}` : ""}${rest ? `?${rest}` : ""}`;
    try { history.replaceState(null, "", hash); } catch { /* a page inside another may not */ }
  }

  function recall() {
    const [place, rest] = location.hash.slice(1).split(/\?(.*)/s);
    const options = new URLSearchParams(rest || "");
    for (const [name, select] of Object.entries(filters)) if (select) select.value = options.get(name) || "";
    for (const select of Object.values(filters)) if (select && select.selectedIndex < 0) select.value = "";
    for (const name of Object.keys(linked)) linked[name] = /^[\w.-]{1,60}$/.test(options.get(name) || "") ? options.get(name) : "";
    search.value = options.get("search") || "";
    sort.value = options.get("sort") || "";
    let wanted;
    if (place.startsWith("q-")) {
      let id = place.slice(2);
      try { id = decodeURIComponent(id); } catch { /* taken as it stands */ }
      wanted = data.questions.find((question) => question.id === id);
    }
    refresh(wanted);
    if (wanted || rest) document.getElementById("questions").scrollIntoView();
  }

  /* ---- set up ---- */
  function unlink() { for (const name of Object.keys(linked)) linked[name] = ""; }

  function fill(select, name, values) {
    if (!select) return;
    const counts = new Map();
    for (const question of data.questions) counts.set(question[name] || "", (counts.get(question[name] || "") || 0) + 1);
    counts.delete("");
    select.append(el("option", { value: "" }, "all"));
    if (name === "group" && data.compared) select.append(el("option", { value: "worse" }, "all that got worse"));
    const keys = values ? values.filter((key) => counts.has(key)) : [...counts.keys()].sort(collator.compare);
    for (const key of keys) {
      select.append(el("option", { value: key }, `${name === "group" ? GROUPS[key][0] : key} (${counts.get(key).toLocaleString("en")})`));
    }
    if (!keys.length) select.closest("label").hidden = true;
  }
  fill(filters.group, "group", order);
  for (const name of ["domain", "difficulty", "cause"]) fill(filters[name], name);
  for (const control of [...Object.values(filters), sort]) if (control) control.addEventListener("change", () => { refresh(); remember(); });
  let typing = 0;
  search.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => { refresh(); remember(); }, 120); });
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("reset").addEventListener("click", () => { for (const control of [...Object.values(filters), sort, search]) if (control) control.value = ""; unlink(); refresh(); remember(); });
  list.addEventListener("scroll", () => { if (!frame) frame = requestAnimationFrame(draw); });
  list.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(list.clientHeight / ROW) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) { event.preventDefault(); choose(steps[event.key] === Infinity ? shown.length - 1 : steps[event.key] === -Infinity ? 0 : chosen + steps[event.key]); }
    if (event.key === "Enter") { event.preventDefault(); detail.focus(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.closest("input, select, textarea") && !event.ctrlKey && !event.metaKey) { event.preventDefault(); search.focus(); }
  });
  window.addEventListener("resize", () => { if (!frame) frame = requestAnimationFrame(draw); });
  window.addEventListener("hashchange", recall);
  /* MLflow shows a report in a frame that may open nothing: there a link's address is shown, to be copied. */
  if (window.self !== window.top && window.origin === "null") {
    const told = el("input", { class: "wide", readonly: true, "aria-label": "Address of the link" });
    const box = el("p", { class: "small no-print copy", role: "status" }, "Links do not open in this preview. Copy the address: ", told);
    document.addEventListener("click", (event) => {
      const to = event.target.closest('a[target="_blank"]');
      if (!to) return;
      event.preventDefault();
      told.value = to.href;
      (to.closest("p, li, th, td, nav") || to).append(box);
      told.select();
    });
  }
  document.addEventListener("click", (event) => {
    const to = event.target.closest('a[href^="#q-"]');
    if (!to || event.defaultPrevented) return;
    event.preventDefault();
    try { history.pushState(null, "", to.getAttribute("href")); } catch { /* a page inside another may not */ }
    const id = decodeURIComponent(to.getAttribute("href").slice(3));
    const wanted = data.questions.find((question) => question.id === id);
    if (wanted && shown.indexOf(wanted) < 0) for (const control of [...Object.values(filters), search]) if (control) control.value = "";
    if (wanted && shown.indexOf(wanted) < 0) unlink();
    refresh(wanted);
    remember();
    if (!to.closest("#detail")) document.getElementById("questions").scrollIntoView();
  });
  window.addEventListener("beforeprint", () => {
    const first = shown.filter((question) => !["same", "pass"].includes(question.group)).slice(0, PRINTED);
    const held = chosen;
    $("print").replaceChildren(...first.map((question) => { chosen = shown.indexOf(question); return el("article", {}, ...described(question)); }));
    chosen = held;
  });
  recall();
})();
