/* One question: why, sources, answers, scores. */
function show() {
  const question = shown[chosen];
  detail.scrollTop = 0;
  if (!question) {
    detail.replaceChildren(el("p", { class: "dim" }, "No question matches; clear the filters to see all."));
    return;
  }
  detail.replaceChildren(...described(question));
  markHits(detail, searched());
  for (const box of detail.querySelectorAll(".answer")) {
    if (box.scrollHeight > box.clientHeight) filled(box, { tabindex: 0, role: "group", "aria-label": "Text, scrolls" }, []);
  }
}

function described(question) {
  const made = [];
  const top = el("p", { class: "small" }, badge(question.group), " ");
  const way = question.was && question.was !== question.now ? `${question.was} → ${question.now}` : "";
  top.append(el("span", { class: "dim" }, [way === GROUPS[question.group][0] ? "" : way, question.domain, question.difficulty, question.category].filter(Boolean).join(" · ")), " ");
  top.append(el("a", { href: `#q-${encodeURIComponent(question.id)}` }, foreign(`#${question.id}`)));
  made.push(top, ...turnsBefore(question), foreign(question.q, "h2"));
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
    made.append(el("p", { class: "what" }, causeWords(question.cause)));
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
