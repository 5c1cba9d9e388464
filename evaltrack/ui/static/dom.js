/* Words and cells of the pages. */
import { filled, make, stack } from "./common.js";

export { make };
export const draw = (tag, props, ...children) => filled(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);

/* Without characters that are not seen or turn the order of others. */
export const clean = (text, limit = 200) => {
  const whole = String(text ?? "").replace(/[\0-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, "\ufffd");
  return whole.length > limit ? `${whole.slice(0, limit)}…` : whole;
};
export const foreign = (text, limit) => make("span", { class: "foreign" }, clean(text, limit));
export const badge = (words, tone) => make("span", { class: `badge ${tone}` }, words);
export const link = (parts, ...children) => make("a", { href: address(...parts) }, ...children);
export const address = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;
export const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
export const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
export const date = (time) => new Date(time).toISOString().slice(0, 16).replace("T", " ");

const SHARES = /rate|share/;
export function number(name, value) {
  if (!isNumber(value)) return "–";
  return SHARES.test(name) ? `${(100 * value).toFixed(1)} %` : value.toFixed(Math.abs(value) < 10 ? 3 : 1);
}

export function change(name, value) {
  if (!isNumber(value)) return "";
  const words = SHARES.test(name) ? (100 * value).toFixed(1) : value.toFixed(3);
  if (Number(words) === 0) return make("span", { class: "dim" }, "±0");
  return make("span", { class: value < 0 ? "bad-text" : "good-text" }, value < 0 ? words.replace("-", "−") : `+${words}`);
}

export function age(time) {
  const minutes = Math.max(0, (Date.now() - time) / 60000);
  const words = minutes < 60 ? `${Math.floor(minutes)} min` : minutes < 1440 ? `${Math.floor(minutes / 60)} h` : count(Math.floor(minutes / 1440), "day");
  return make("time", { datetime: new Date(time).toISOString(), title: `${date(time)} UTC` }, `${words} ago`);
}

export function table(label, heads, rows) {
  const head = heads.map((each) => make("th", { scope: "col", class: each.kind }, each.words ?? each));
  const body = make("table", { class: "grid" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows));
  const box = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, body);
  stack(box);
  return box;
}
export const cell = (...children) => make("td", {}, ...children);
export const figure = (...children) => make("td", { class: "num" }, ...children);
export const lead = (...children) => make("th", { scope: "row" }, ...children);
