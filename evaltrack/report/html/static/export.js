/* The questions that are shown, in their order, as CSV: made here, sent nowhere. */
const SIDES = data.compared ? ["baseline", "candidate"] : [""];
const named = (name, side) => (side ? `${name}_${side}` : name);

/* One flat object a question; what a page does not hold of it is empty. */
function exported(question) {
  const change = GROUPS[question.group][0], about = data.compared ? { change, from: question.was, to: question.now, cause: question.cause } : { result: change };
  const made = { id: question.id, question: question.q, ...about, domain: question.domain, difficulty: question.difficulty, category: question.category };
  Object.assign(made, { detail: question.detail, note: question.note, expected_answer: question.wanted });
  SIDES.forEach((side, at) => {
    const sides = question.sides || [], held = sides[sides.length > 1 ? at : 0] || {}, place = data.compared ? at : 1;
    made[named("score", side)] = question.score?.[place];
    made[named("rank", side)] = question.ranks?.[place];
    made[named("answer", side)] = held.answer;
    made[named("error", side)] = held.error;
    made[named("judges", side)] = (held.verdicts || []).map((verdict) => `${verdict.judge}: ${verdict.said || ""}`).join("\n");
    made[named("sources", side)] = (held.sources || []).map((source) => `${source.rank}. ${source.name}${source.expected ? " (expected)" : ""}`).join("\n");
  });
  return made;
}

/* In a spreadsheet a cell that begins like a formula would be one: an apostrophe before it makes it text. */
function csvCell(value) {
  if (typeof value !== "string") return `${value ?? ""}`;
  const text = /^[\s]*[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

function csvOf(questions) {
  const rows = questions.map(exported), heads = Object.keys(rows[0]);
  return `\ufeff${[heads, ...rows.map(Object.values)].map((cells) => cells.map(csvCell).join(",")).join("\r\n")}\r\n`;
}

/* A frame that may save nothing shows the text instead. */
function save(text) {
  const count = `${shown.length.toLocaleString("en")} question${shown.length === 1 ? "" : "s"}`;
  if (isFramed()) { offer(text, `${count}, CSV: copy it from here`); return; }
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const anchor = make("a", { href: url, download: "questions.csv" });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
  notice(`${count} saved as questions.csv`);
}
