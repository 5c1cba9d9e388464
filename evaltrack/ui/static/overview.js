/* One line for each golden set, the worst first; sweeps and golden sets that were evaluated together, each in a line that unfolds. */
import { age, badge, cell, change, count, draw, figure, foreign, isNumber, lead, link, make, number, table } from "./dom.js";
import { apart, experiments, NEWEST, ofGolden, ofParent, PARENTS, search, standing } from "./mlflow.js";

const TREND = 10, TOGETHER = 20;

export async function overview() {
  const all = (await experiments()).filter((each) => each.sets.length);
  if (!all.length) return { title: "Golden sets", body: nothing() };
  const lines = await Promise.all(all.flatMap((experiment) => experiment.sets.map((set) => line(experiment, set))));
  lines.sort((one, other) => one.state[2] - other.state[2] || other.started - one.started);
  const parents = await search(all.map((each) => each.id), PARENTS, TOGETHER);
  const heads = ["Verdict", "Golden set", { words: "Pass rate", kind: "num" }, { words: "Broke · fixed", kind: "num" }, "Cause", "Trend", "Newest run"];
  const several = all.length > 1;
  const body = [make("h1", {}, "Golden sets"), make("section", { class: "card" }, table("Golden sets", heads, lines.map((each) => row(each, several))))];
  if (parents.runs.length) body.push(make("h2", {}, "Sweeps and golden sets that were evaluated together"), make("section", { class: "card" }, parents.runs.map(together)));
  return { title: "Golden sets", body };
}

function nothing() {
  const words = "MLflow shows you no golden set: nothing was evaluated yet, or you have no permission to see it.";
  return [make("h1", {}, "Golden sets"), make("p", {}, words), make("p", {}, "Evaluate one: ", make("code", {}, "evaltrack run GOLDEN"))];
}

async function line(experiment, set) {
  const baseline = experiment.baselines.get(set);
  try {
    const { runs } = await search([experiment.id], ofGolden(set) + NEWEST, TREND);
    return { experiment, set, runs, state: standing(runs[0], baseline), started: runs[0]?.started || 0 };
  } catch (error) {
    return { experiment, set, runs: [], state: ["cannot be read", "warn", 1], started: 0, problem: error.message };
  }
}

function row({ experiment, set, runs, state, problem }, several) {
  const [run] = runs, [words, tone, place] = state, compared = run && (place < 2 || place === 4) ? run.compared : {};
  const page = isNumber(compared.broke) || compared.verdict ? link(["page", experiment.id, set, run.id, "comparison.html"], words) : words;
  const fewer = (value, kind) => make("span", { class: value ? kind : "dim" }, String(value));
  return make("tr", {},
    cell(badge(page, tone)),
    lead(link(["golden", experiment.id, set], foreign(set)), several && make("div", { class: "dim small foreign" }, experiment.name)),
    figure(number("pass_rate", run?.metrics.pass_rate), " ", change("pass_rate", compared.change)),
    figure(...(isNumber(compared.broke) && isNumber(compared.fixed) ? [fewer(compared.broke, "bad-text"), " · ", fewer(compared.fixed, "good-text")] : ["–"])),
    make("td", { class: "cause" }, (compared.cause || problem) && foreign(compared.cause || problem, 300)),
    cell(spark(runs)),
    cell(...(run ? [age(run.started), " ", make("code", { class: "dim" }, run.commit.slice(0, 7))] : [])));
}

function spark(runs) {
  const values = runs.filter((each) => !apart(each, runs[0]).length && isNumber(each.metrics.pass_rate)).map((each) => each.metrics.pass_rate).reverse();
  if (values.length < 2) return "";
  const low = Math.min(...values), span = Math.max(...values) - low || 1;
  const points = values.map((value, place) => `${(2 + 86 * place / (values.length - 1)).toFixed(1)},${(19 - 16 * (value - low) / span).toFixed(1)}`);
  return draw("svg", { class: "spark", width: 90, height: 22, role: "img", "aria-label": `Pass rate of ${count(values.length, "run")}: from ${number("pass_rate", values[0])} to ${number("pass_rate", values.at(-1))}` }, draw("polyline", { points: points.join(" ") }));
}

function together(parent) {
  const list = make("div", {}), isSweep = parent.kind === "sweep";
  async function fill(event) {
    if (!event.target.open || list.childElementCount) return;
    list.replaceChildren(make("p", { class: "dim" }, "Reading…"));
    const found = await search([parent.experiment], ofParent(parent.id), 200).catch((error) => ({ problem: error.message }));
    const rows = (found.runs || []).map((run) => make("tr", {}, lead(link(["page", run.experiment, run.golden || "", run.id, "report.html"], foreign(run.name))),
      cell(foreign(run.golden)), figure(number("pass_rate", run.metrics.pass_rate)), cell(run.status === "FINISHED" ? age(run.started) : badge(run.status.toLowerCase(), "warn"))));
    list.replaceChildren(found.problem ? make("p", { class: "bad-text" }, found.problem) : table(`Runs of ${parent.name}`, ["Run", "Golden set", { words: "Pass rate", kind: "num" }, "Started"], rows));
    if (isSweep && found.runs?.length) list.prepend(make("p", {}, link(["page", parent.experiment, found.runs[0].golden || "", parent.id, "leaderboard.html"], "The sweep's leaderboard")));
  }
  return make("details", { toggle: fill }, make("summary", {}, badge(isSweep ? "sweep" : "golden sets", "muted"), " ", foreign(parent.name), " ", age(parent.started)), list);
}
