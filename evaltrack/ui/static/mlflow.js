/* MLflow's REST API, asked with the credentials of the reader: MLflow decides what they see. */

const API = "../ajax-api/2.0/mlflow/";

async function ask(path, options) {
  const got = await fetch(path, options).catch(() => { throw new Error("The server does not answer."); });
  if (got.ok) return got;
  const told = await got.text();
  const refused = got.status === 401 || got.status === 403;
  const words = refused ? "MLflow refuses this: you have no permission." : parsed(told)?.message || `MLflow answers with status ${got.status}.`;
  throw Object.assign(new Error(words), { refused });
}

const post = async (path, body) => (await ask(API + path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })).json();

export async function artifact(run, path) {
  return (await ask(`../get-artifact?${new URLSearchParams({ run_uuid: run, path })}`)).text();
}

/* An object in a text that anybody may have written. */
export function parsed(text) {
  try {
    const value = JSON.parse(text);
    return value && typeof value === "object" ? value : null;
  } catch { return null; }
}

const byName = (pairs) => Object.fromEntries((pairs || []).map((each) => [each.key, each.value]));
const SET = "evaltrack.golden_set.", BASELINE = "evaltrack.baseline.";
/* As `tag_part` writes it: characters that no tag can have by their code. */
const baselineTag = (golden) => BASELINE + golden.replace(/[^\p{L}\p{N}_. /-]/gu, (sign) => `:${sign.codePointAt(0).toString(16)}:`);

export async function experiments() {
  const found = [];
  let token;
  do {
    const page = await post("experiments/search", { max_results: 1000, view_type: "ACTIVE_ONLY", page_token: token });
    found.push(...(page.experiments || []));
    token = page.next_page_token;
  } while (token);
  return found.map((each) => {
    const tags = byName(each.tags), names = Object.keys(tags);
    const baselines = names.filter((name) => name.startsWith(BASELINE)).map((name) => [name, parsed(tags[name])]);
    return {
      id: each.experiment_id, name: each.name,
      sets: names.filter((name) => name.startsWith(SET)).map((name) => tags[name]),
      baselines: new Map(baselines.filter(([name, held]) => held && name === baselineTag(String(held.golden))).map(([, held]) => [held.golden, held])),
    };
  });
}

const tag = (name) => `tags.\`${name}\``;
function quoted(text) {
  if (text.includes("'")) throw new Error("MLflow cannot search for a name with a single quote; rename the golden set.");
  return `'${text}'`;
}
export const ofGolden = (golden) => `${tag("evaltrack.golden")} = ${quoted(golden)}`;
export const ofParent = (run) => `${tag("mlflow.parentRunId")} = ${quoted(run)}`;
export const ANY = `${tag("evaltrack.golden")} LIKE '%'`;
export const PARENTS = `${tag("evaltrack.kind")} LIKE '%'`;

/* At most so many runs, those that started last first, and whether there are more. */
export async function search(experimentIds, filter, most) {
  const body = { experiment_ids: experimentIds, filter, max_results: most, order_by: ["attributes.start_time DESC"] };
  const page = await post("runs/search", body);
  return { runs: (page.runs || []).map(runOf), more: Boolean(page.next_page_token) };
}

/* The finished runs that started last, as `evaltrack compare` finds the newest one: none of a sweep, none of the future. */
export function newest(experimentIds, filter, most) {
  const single = `${tag("evaltrack.sweep.configuration")} IS NULL`, now = Date.now() + 300_000;
  const past = `attributes.end_time <= ${now} AND attributes.start_time <= ${now}`;
  return search(experimentIds, `${filter} AND ${single} AND attributes.status = 'FINISHED' AND ${past}`, most);
}

const LAST_MOMENT = 253402214400000; /* of the year 9999 */

function runOf({ info, data }) {
  const tags = byName(data.tags), commit = tags["mlflow.source.git.commit"] || "";
  return {
    id: info.run_id, experiment: info.experiment_id, name: info.run_name || info.run_id, status: info.status,
    started: Math.min(Math.max(Number(info.start_time) || 0, 0), LAST_MOMENT), tags, params: byName(data.params), metrics: byName(data.metrics),
    golden: tags["evaltrack.golden"], kind: tags["evaltrack.kind"], parent: tags["mlflow.parentRunId"],
    inSweep: "evaltrack.sweep.configuration" in tags, signature: parsed(tags["evaltrack.signature"]) || {},
    compared: { ...parsed(tags["evaltrack.compare.result"]), verdict: tags["evaltrack.compare.verdict"] },
    commit: /^[0-9a-f]{40,64}$/.test(commit) ? commit : "", dirty: tags["mlflow.source.git.dirty"] === "true",
  };
}

const VERDICTS = { regression: ["regression", "bad", 0], unknown: ["unknown", "warn", 1], ok: ["no regression", "ok", 4] };

/* The verdict on a run against the current baseline of its golden set: words, tone, and its place in a list. */
export function standing(run, baseline) {
  if (!run) return ["no finished run", "muted", 3];
  if (!baseline) return ["no baseline", "muted", 3];
  if (baseline.run_id === run.id) return ["baseline", "ok", 5];
  const recorded = run.compared.baseline === baseline.run_id && Object.hasOwn(VERDICTS, run.compared.verdict);
  return recorded ? VERDICTS[run.compared.verdict] : ["not compared yet", "warn", 2];
}

const PASSING = ["k", "judge", "judge_prompt", "rubric", "pass_threshold", "metrics_version", "target"];

/* What keeps the outcomes of two runs apart; empty where the same questions pass by the same rules. */
export function apart(one, other) {
  const names = one.signature.rubric === "reasoning" ? [...PASSING, "weights"] : PASSING;
  return names.filter((name) => one.signature[name] !== other.signature[name]).map((name) => `another ${name.replaceAll("_", " ")}`);
}

/* What a run was made with, by name; of two runs those that differ are named. */
function settings(run) {
  const states = parsed(run.tags["evaltrack.system"])?.states, packages = run.tags["evaltrack.packages"];
  const golden = { "golden set": run.signature.golden_digest };
  return { ...run.params, ...Object(states), packages, ...golden, commit: run.commit.slice(0, 7) + (run.dirty ? " with changes" : "") };
}
export function differences(run, before) {
  const now = settings(run), was = settings(before);
  const names = [...new Set([...Object.keys(now), ...Object.keys(was)])].filter((name) => name !== "golden" && now[name] !== was[name]);
  return names.map((name) => ({ name, was: was[name], now: now[name] }));
}

/* Sets the baseline as `evaltrack baseline set` does: by one tag of the experiment. */
export async function promote(run, reason) {
  const user = await ask(`${API}users/current`).then((got) => got.json()).catch(() => null);
  const by = user?.user?.username || "evaltrack ui", at = `${new Date().toISOString().slice(0, 19)}+00:00`;
  const value = JSON.stringify({ golden: run.golden, run_id: run.id, by, at, reason });
  await post("experiments/set-experiment-tag", { experiment_id: run.experiment, key: baselineTag(run.golden), value });
}
