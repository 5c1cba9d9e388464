/* A question over the runs, and how any two of them answered it. */
import { common } from "./common.js";
import { badge, cell, clean, date, figure, foreign, lead, link, make, number, table } from "./dom.js";
import { history, leftOut, outcomes, strip } from "./golden.js";
import { artifact, parsed } from "./mlflow.js";

const TONES = { pass: "ok", fail: "bad", error: "bad", "not measured": "muted", "": "muted" };
const WORDS = 1500;

export async function question(experimentId, set, id, last) {
  const { past } = await history(experimentId, set, last);
  const { columns, left } = await outcomes(past);
  if (!columns.length || !columns.at(-1).places.has(id)) throw new Error("The newest run that can be read does not hold this question.");
  const cells = strip(columns, id), newest = columns.length - 1;
  const names = Object.keys(columns.at(-1).scores);
  const rows = columns.map(({ run, places, scores }, at) => make("tr", {},
    cell(badge(cells[at] || "another question", TONES[cells[at]])),
    lead(link(["page", run.experiment, set, run.id, "report.html"], foreign(run.name))),
    cell(date(run.started)), cell(make("code", {}, run.commit.slice(0, 7))),
    names.map((name) => figure(number(name, scores[name]?.[places.get(id)]))))).reverse();
  const titled = (name) => ({ words: `${name[0].toUpperCase()}${name.slice(1).replaceAll("_", " ")}`, kind: "num" });
  const heads = ["Outcome", "Run", "Started (UTC)", "Commit", ...names.map(titled)];
  const before = cells.findLastIndex((outcome, at) => at < newest && outcome && outcome !== cells[newest]);
  const title = make("h1", { class: "foreign" }, `Question ${clean(id, 80)}`);
  const chosen = [before < 0 ? Math.max(0, newest - 1) : before, newest];
  const whole = make("section", { class: "card" }, make("h2", {}, "Over the runs"), table("Runs", heads, rows), leftOut(left, set));
  return { title: id, body: [title, pair(columns, id, chosen, title), whole] };
}

/* Two runs to choose, and what they said. */
function pair(columns, id, chosen, title) {
  const said = make("div", {}), rows = new Map();
  const read = (at) => {
    if (!rows.has(at)) rows.set(at, artifact(columns[at].run.id, "per_question.json").then((text) => rowOf(parsed(text), id)));
    return rows.get(at);
  };
  async function show() {
    const [was, now] = chosen;
    try {
      const both = await Promise.all([read(was), read(now)]);
      if (was === chosen[0] && now === chosen[1]) said.replaceChildren(...compared(both, title));
    } catch (error) {
      const words = "The answers of these runs cannot be read: a run of more than 5,000 questions has no per_question.json.";
      said.replaceChildren(make("p", { class: "bad-text" }, error.refused ? error.message : words));
    }
  }
  const select = (side, label) => {
    const option = ({ run }, at) => make("option", { value: at, selected: at === chosen[side] }, `${date(run.started)} · ${clean(run.name, 60)}`);
    const change = (event) => { chosen[side] = Number(event.target.value); show(); };
    return make("label", { class: "wide" }, label, make("select", { change }, columns.map(option).reverse()));
  };
  show();
  return make("section", { class: "card" }, make("div", { class: "controls" }, select(0, "Before"), select(1, "Now")), said);
}

function rowOf(found, id) {
  const place = found?.columns?.indexOf("id"), values = found?.data?.find((each) => String(each[place]) === id);
  return values ? Object.fromEntries(found.columns.map((name, at) => [name, values[at]])) : null;
}

function compared([was, now], title) {
  title.textContent = clean((now || was)?.question ?? title.textContent, 1000);
  const one = (now || was)?.expected, expected = one ? make("p", { class: "small" }, make("b", {}, "Expected: "), foreign(one, 2000)) : "";
  const [removed, added] = difference(was?.answer, now?.answer);
  const missing = make("p", { class: "dim" }, "Not asked in this run.");
  const side = (name, row, answer) => make("article", {}, make("h3", {}, name), row ? sideParts(row, answer) : missing.cloneNode(true));
  return [expected, make("div", { class: "pair" }, side("Before", was, removed), side("Now", now, added))];
}

function sideParts(row, answer) {
  const line = (label, text) => text && make("p", { class: "small foreign" }, make("b", {}, `${label}: `), clean(text, 4000));
  const said = make("p", { class: "answer foreign" }, answer.length ? answer : make("span", { class: "dim" }, "No answer."));
  return [badge(row.result, TONES[row.result] || "muted"), said, line("Error", row.error), line("Retrieved", row.retrieved), line("Judge", row.reasoning)];
}

/* Both answers with the words that the other lacks marked; of very long ones none. */
function difference(was, now) {
  const [one, other] = [was, now].map((text) => clean(text, 20000).match(/\s*\S+/g) || []);
  if (one.length > WORDS || other.length > WORDS) return [one, other];
  const kept = common(one, other, (a, b) => a.trim() === b.trim());
  const marked = (words, side, tag) => words.map((word, at) => (kept[side].has(at) ? word : make(tag, {}, word)));
  return [marked(one, 0, "del"), marked(other, 1, "ins")];
}
