/* Markdown as elements. Text stays text: no HTML is read, only http and https lead anywhere, nothing is fetched. */
const FENCE = /^ {0,3}(`{3,}|~{3,})/, HEADING = /^ {0,3}#{1,6}\s+(.*?)\s*#*$/, RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+•]|\d{1,4}[.)])\s+(\S.*)$/, QUOTED = /^ {0,3}>\s?(.*)$/, DASHES = /^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$/;
const LINK = /!?\[([^[\]\n]{1,300})\]\((\S{1,1000}?)(?:\s+"[^"\n]{0,200}")?\)/y, BARE = /https?:\/\/[^\s<>"`]{1,800}/y;
const MARKERS = { "***": ["strong", "em"], "**": ["strong"], "__": ["strong"], "~~": ["s"], "*": ["em"], "_": ["em"] };
const isWordPart = (text, at) => at >= 0 && at < text.length && /[\p{L}\p{N}]/u.test(text[at]);
const DEEPEST = 5;

/* What begins at this place, as its nodes and its length; null where nothing does. */
function codeAt(text, at) {
  const ticks = /`+/y;
  ticks.lastIndex = at;
  const [mark] = ticks.exec(text);
  let end = text.indexOf(mark, at + mark.length);
  while (end >= 0 && text[end + mark.length] === "`") end = text.indexOf(mark, end + mark.length + 1);
  return end > at + mark.length ? [[make("code", {}, text.slice(at + mark.length, end).trim())], end + mark.length - at] : null;
}

function linkAt(text, at, depth) {
  LINK.lastIndex = at;
  const hit = LINK.exec(text);
  if (!hit || !isWeb(hit[2])) return null;
  const made = link(hit[2], "");
  made.append(...(text[at] === "!" ? ["image: "] : []), ...inline(hit[1], depth + 1, false));
  made.title = hit[2];
  return [[made], hit[0].length];
}

function bareAt(text, at) {
  BARE.lastIndex = at;
  const hit = isWordPart(text, at - 1) ? null : BARE.exec(text);
  if (!hit) return null;
  const url = hit[0].replace(/[.,;:!?)\]}'*_~]+$/, "");
  return isWeb(url) ? [[link(url, url)], url.length] : null;
}

function emphasisAt(text, at, depth, links, absent) {
  const mark = ["***", "**", "__", "~~", "*", "_"].find((each) => text.startsWith(each, at));
  if (!mark || absent.has(mark) || /\s|^$/.test(text.charAt(at + mark.length))) return null;
  if (mark[0] === "_" && isWordPart(text, at - 1)) return null;
  for (let end = text.indexOf(mark, at + mark.length + 1); end >= 0; end = text.indexOf(mark, end + 1)) {
    if (/\s/.test(text[end - 1]) || (mark[0] === "_" && isWordPart(text, end + mark.length))) continue;
    if (mark.length === 1 && (text[end + 1] === mark || text[end - 1] === mark)) { end += 1; continue; }
    const inner = inline(text.slice(at + mark.length, end), depth + 1, links);
    const made = MARKERS[mark].reduceRight((nodes, tag) => [make(tag, {}, ...nodes)], inner);
    return [made, end + mark.length - at];
  }
  absent.add(mark);
  return null;
}

function inline(text, depth = 0, links = true) {
  if (depth > DEEPEST) return [text];
  const made = [], absent = new Set();
  let plain = "", at = 0;
  while (at < text.length) {
    const letter = text[at];
    let hit = null;
    if (letter === "`") hit = codeAt(text, at);
    else if (letter === "[" || (letter === "!" && text[at + 1] === "[")) hit = links && linkAt(text, at, depth);
    else if (letter === "*" || letter === "_" || letter === "~") hit = emphasisAt(text, at, depth, links, absent);
    else if (letter === "h") hit = links && bareAt(text, at);
    if (hit) {
      made.push(plain, ...hit[0]);
      plain = "";
      at += hit[1];
    } else if (letter === "\\" && /[!-/:-@[-`{-~]/.test(text[at + 1] || "")) {
      plain += text[at + 1];
      at += 2;
    } else {
      const run = /^(?:`+|.[^\\`[!*_~h]*)/su.exec(text.slice(at, at + 400))[0];
      plain += run;
      at += run.length;
    }
  }
  return [...made, plain].filter((each) => each !== "");
}

function table(lines) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => inline(cell.trim()));
  const row = (line, tag) => make("tr", {}, ...cells(line).map((cell) => make(tag, {}, ...cell)));
  const [first, , ...rest] = lines;
  return make("table", { class: "md-table" }, make("thead", {}, row(first, "th")), make("tbody", {}, ...rest.map((line) => row(line, "td"))));
}

/* The blocks of a text, each as an element; `whole` says that it is not cut into sentences. */
function blocks(text) {
  const lines = text.split("\n"), made = [];
  let gap = false;
  const put = (kind, element, rest) => { made.push({ kind, gap: gap && made.length > 0, element, ...rest }); gap = false; };
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at], fence = FENCE.exec(line);
    let hit;
    if (!line.trim()) gap = true;
    else if (fence) {
      const body = [];
      for (at += 1; at < lines.length && !lines[at].trim().startsWith(fence[1]); at += 1) body.push(lines[at]);
      put("code", make("pre", {}, body.join("\n")), { whole: true });
    } else if (RULE.test(line)) put("rule", make("div", {}, "―"), { whole: true });
    else if ((hit = HEADING.exec(line))) put("heading", make("div", {}, ...inline(hit[1])), { whole: true });
    else if ((hit = ITEM.exec(line))) put("item", make("div", {}, ...inline(hit[3])), { depth: Math.min(4, hit[1].length >> 1), marker: /\d/.test(hit[2]) ? hit[2] : "•" });
    else if ((hit = QUOTED.exec(line))) put("quote", make("div", {}, ...inline(hit[1])));
    else if (line.includes("|") && DASHES.test(lines[at + 1] || "") && lines[at + 1].includes("-")) {
      const from = at;
      while (at + 1 < lines.length && lines[at + 1].includes("|")) at += 1;
      put("table", table(lines.slice(from, at + 1)), { whole: true });
    } else put("line", make("div", {}, ...inline(line.trim())));
  }
  return made;
}
