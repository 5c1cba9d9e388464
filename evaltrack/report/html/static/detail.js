/* One question: why, what was expected and answered, judges, scores, sources. */
function show() {
  const question = shown[chosen];
  if (!question) {
    detail.replaceChildren(el("p", { class: "dim" }, "No question matches; clear the filters to see all."));
    return;
  }
  detail.replaceChildren(...described(question));
  markHits(detail, searched());
}

function described(question) {
  const made = [];
  const top = el("p", { class: "small" }, badge(question.group), " ");
  const way = question.was && question.was !== question.now ? `${question.was} → ${question.now}` : "";
  top.append(el("span", { class: "dim" }, [way === GROUPS[question.group][0] ? "" : way, question.domain, question.difficulty, question.category].filter(Boolean).join(" · ")), " ");
  top.append(el("a", { href: `#q-${encodeURIComponent(question.id)}` }, foreign(`#${question.id}`)));
  made.push(top, ...turnsBefore(question), foreign(question.q, "h2", question.q.length > 160 ? "lengthy" : ""));
  const why = reason(question);
  if (why) made.push(why);
  const sides = question.sides || [];
  made.push(...answers(question, sides), ...judgePanel(sides));
  if (sides.some((side) => side.sources !== null || side.expects)) made.push(sourceLists(sides));
  if (question.texts) made.push(el("h3", {}, "The text of the source"), difference(question.texts));
  made.push(...scoreTable(question));
  made.push(el("div", { class: "sides" }, ...sides.map((side, place) => facts(side, place, sides))));
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

function reason(question) {
  const made = el("div", { class: "why" }), cause = question.culprit || causeWords(question.cause), todo = data.todos && data.todos[question.culprit];
  const detail = question.detail && !cause.includes(question.detail) ? ticked(question.detail, "span") : "";
  if (cause || detail) made.append(el("p", {}, cause && el("b", { class: question.group === "flip" ? "bad-text" : "" }, "Cause: "), cause && foreign(cause), cause && detail && ": ", detail, ". ", todo && el("b", {}, "Next: "), todo && ticked(todo, "span"), todo && "."));
  for (const other of question.also || []) made.append(ticked(`Also: ${other}`, "p", "small"));
  if (question.link) made.append(el("p", {}, link(question.link, foreign(question.link))));
  if (question.note) made.append(foreign(question.note, "p"));
  return made.childNodes.length ? made : null;
}

/* Names in our own sentences stand between backticks. */
function ticked(text, tag, kind) {
  const made = foreign("", tag, kind);
  made.append(...text.split(/`([^`\n]+)`/).map((part, at) => (at % 2 ? el("code", {}, part) : part)));
  return made;
}

function label(place, sides) {
  if (sides.length > 1) return data.labels[place];
  return data.compared ? data.alike : "";
}

function difference(pieces) {
  const made = el("div", { class: "answer", dir: "auto" });
  for (const [kind, text] of pieces) {
    made.append(kind === "same" ? text : el(kind === "added" ? "ins" : "del", {}, text));
  }
  return made;
}

/* Names and values; of two sides before, now, and the change. */
function scoreTable(question) {
  if (!question.scores) return [];
  const two = question.scores[0].length > 2, name = "Scores";
  const number = (text, kind = "") => el("td", { class: `num ${kind}`.trim() }, text || "–");
  const heads = ["Score", ...(two ? [...data.labels, "Change"] : ["Value"])];
  const rows = question.scores.map(([title, was, now, change, tone]) => el("tr", {}, foreign(title, "th"),
    ...(two ? [number(was), number(now), el("td", { class: `num ${tone ? `${tone}-text` : "dim"}` }, change ? `${tone === "good" ? "▲" : "▼"} ${change}` : was && now ? "=" : "–")] : [number(was)])));
  for (const row of rows) row.firstChild.setAttribute("scope", "row");
  const table = el("table", { class: "grid scores" }, el("thead", {}, el("tr", {}, ...heads.map((head, at) => el("th", { scope: "col", class: at ? "num" : null }, head)))), el("tbody", {}, ...rows));
  return [el("h3", {}, name), table];
}

function facts(side, place, sides) {
  const trace = side.trace && data.traces[data.compared && sides.length < 2 ? 1 : place];
  if (!trace && !side.tools) return "";
  return el("div", { class: "side" }, el("h3", {}, label(place, sides)),
    side.tools && el("p", {}, "Tools called: ", foreign(side.tools.join(", "))), trace && el("p", {}, link(trace + side.trace, "Trace in MLflow")));
}
