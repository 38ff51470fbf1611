// An answer of the API: status and time, JSON to read or as a grid, headers, the way to the next page, errors told well.
"use strict";
site.answer = (() => {
  const { el, t } = site;
  const COLUMNS_MOST = 200;

  /** What the service says of a failure, for people. `asked` is the encoded path of the request. */
  function errorPanel(error, asked, correlation) {
    const panel = el("div", { class: "error", role: "alert" }, el("p", { class: "message" }, error.message || t("noMessage")));
    const facts = el("dl", {});
    const fact = (name, value) => { if (value !== undefined && value !== null && value !== "") facts.append(el("dt", {}, name), el("dd", {}, value)); };
    fact(t("errorCode"), [error.code, error.type].filter((part) => part !== undefined).join(" · "));
    fact(t("errorTarget"), error.target && el("code", {}, error.target));
    if (error.info && !error.info.startsWith("correlation id")) fact(t("errorInfo"), el("span", { class: "info" }, error.info));
    fact(t("errorCorrelation"), correlation && requestLink(correlation));
    const caret = place(error, asked);
    if (caret) panel.append(caret);
    if (error.details && error.details.length) panel.append(el("ul", {}, error.details.map((detail) => el("li", {}, detail.target ? el("code", {}, detail.target) : "", " ", detail.message || ""))));
    if (error.signIn) panel.append(el("p", {}, el("a", { class: "button", href: site.logInUrl() }, t("signIn"))));
    panel.append(facts);
    return panel;
  }

  /** The id of the request; for administrators a link to what the instance has recorded of it. */
  function requestLink(id) {
    const code = el("code", {}, id);
    return site.data.requests ? el("a", { href: site.data.requests + encodeURIComponent(id) }, code) : code;
  }

  /** The text that the error is about, with a mark under the position that it names; null where it names none. */
  function place(error, asked) {
    const [path, query] = site.halves(asked || "");
    let position = null, text = null;
    if (error.type === "BadUrl") { position = Number(error.parameters[0]); text = decode(path); }
    else if (error.type === "BadQueryOption" || error.type === "TypeMismatch") {
      const found = error.type === "TypeMismatch" ? [0, error.parameters[0]] : /\(\D*(\d+)[^()']*'/.exec(error.parameters[1] || "");
      position = found ? Number(found[1]) : null;
      // A type error does not say whose expression it is: only where there is one candidate is that plain.
      const candidates = site.options(query || "").map((option) => option.split("=")).filter(([name]) => {
        const plain = decode(name).toLowerCase().replace(/^\$?/, "$");
        return error.target ? plain === error.target : ["$filter", "$orderby", "$compute", "$apply"].includes(plain);
      });
      if (candidates.length !== 1) return null;
      text = decode(candidates[0].slice(1).join("="));
    }
    if (text === null || position === null || Number.isNaN(position) || position > text.length) return null;
    const from = Math.max(0, position - 60);
    return el("pre", { class: "caret", tabindex: "0" }, (from ? "…" : "") + text.slice(from, position + 60), "\n", " ".repeat(position - from + (from ? 1 : 0)), el("strong", {}, "^"));
  }
  const decode = (text) => { try { return decodeURIComponent(text); } catch { return text; } };

  // --- rows as a grid

  function cellText(value) {
    if (Array.isArray(value)) return `[${value.length}]`;
    if (!site.json.isObject(value)) return site.json.text(value);
    const measure = value.Currency || value.Unit, name = value.DisplayText || value.Name || value.Code;
    if (value.Value !== undefined && measure) return `${cellText(value.Value)} ${cellText(measure)}`;
    if (name) return cellText(name);
    const members = Object.entries(value).filter(([key]) => !key.includes("@"));
    if (members.length && members.every(([key, text]) => /^[A-Z]{2}$/.test(key) && typeof text === "string")) return value[site.data.language.toUpperCase()] ?? members[0][1];
    return members.map(([, inner]) => cellText(inner)).filter(Boolean).join(" · ");
  }

  /** The number of a cell, an amount or a quantity; null for any other value. */
  function number(value) {
    if (typeof value === "number") return value;
    if (typeof value !== "object" || value === null) return null;
    return "rawJSON" in value ? Number(value.rawJSON) : number(value.Value);
  }
  const isNumber = (value) => number(value) !== null;
  const order = (a, b) => (isNumber(a) && isNumber(b) ? number(a) - number(b) : cellText(a).localeCompare(cellText(b), site.data.language, { numeric: true }));

  /** A key is long, and its end tells more than its beginning. */
  const brief = (path) => path.replace(/^.*\([^()]*?([^()]{1,12})\)$/, "…$1");

  /** The text of a cell; with the address of an entity it is a link. */
  function cell(name, value, follow) {
    const address = name === "@odata.id" ? value : site.json.isObject(value) && value["@odata.id"];
    const path = address && site.belowRoot(address);
    if (!path) return document.createTextNode(cellText(value));
    const anchor = el("a", { title: path, href: queryUrl(path) }, name !== "@odata.id" && cellText(value) || brief(path));
    anchor.addEventListener("click", (event) => { if (!event.ctrlKey && !event.metaKey) { event.preventDefault(); follow(path); } });
    return anchor;
  }
  const queryUrl = (path) => `${site.data.query}#GET%20${encodeURIComponent(path)}`;

  /** [{…}] as a grid in `host`, to download as CSV. */
  function grid(host, rows, follow) {
    const place = el("div");
    const names = [...new Set(rows.flatMap(Object.keys))].filter((name) => !/^@odata\.(etag|context)|@odata\.type$/.test(name)).slice(0, COLUMNS_MOST);
    const download = async () => (await built).download("csv", "answer.csv", { bom: true });
    const forFile = (value) => (typeof value === "number" || value && value.rawJSON ? cellText(value) : site.neutral(cellText(value)));
    host.replaceChildren(el("p", { class: "tools" }, el("button", { type: "button", class: "secondary small", onclick: download }, t("downloadCsv"))), place);
    const built = site.grid(place, t("rows"), {
      data: rows, renderHorizontal: "virtual", rowHeader: { formatter: "rownum", headerSort: false, resizable: false, hozAlign: "right", title: "#" },
      columnDefaults: { maxInitialWidth: 380, sorter: order, accessorDownload: forFile, accessorClipboard: cellText, formatter: (shown) => cell(shown.getField(), shown.getValue(), follow) },
      columns: names.map((name) => ({ title: name, titleDownload: site.neutral(name), field: name, hozAlign: rows.some((row) => isNumber(row[name])) ? "right" : "left" })),
    });
  }

  // --- all rows as a file that Import takes

  /** Buttons for the rows of a set as its query chooses them, not only those of this page; none for other answers. */
  function exports({ method, path }) {
    const [set, query] = site.halves(path);
    if (method !== "GET" || !/^\w+$/.test(set) || site.options(query || "").some((option) => /^(\$|%24)?apply=/i.test(option))) return [];
    const button = (kind, label) => el("button", { type: "button", class: "secondary", "data-export": kind, onclick: async (event) => {
      event.target.disabled = true;
      try { await site.downloadFrom(`${site.data.exports}${set}.${kind}?${query || ""}`); } catch (failure) { site.announce(failure.name === "TypeError" ? t("noAnswer") : failure.message, true); }
      event.target.disabled = false;
    } }, label);
    return el("span", { class: "exports", role: "group", "aria-label": t("exportAll") }, el("span", {}, t("exportAll")), button("csv", "CSV"), button("xlsx", "Excel"), button("json", "JSON"));
  }

  // --- the whole answer

  /** Tabs by the ARIA pattern: one tab stop, arrow keys choose. `panels` is [[name, label, (host) => …]], which fill the host. */
  function tabs(panels, chosen, onChoose) {
    const host = el("div", { class: "tab-panel", role: "tabpanel", id: "answer-panel" });
    const bar = el("div", { role: "tablist", class: "tabs", "aria-label": t("views") });
    function choose(name, focus = false) {
      for (const button of bar.children) {
        const is = button.dataset.name === name;
        button.setAttribute("aria-selected", String(is));
        button.tabIndex = is ? 0 : -1;
        if (is) { host.setAttribute("aria-labelledby", button.id); if (focus) button.focus(); }
      }
      host.replaceChildren();
      panels.find(([known]) => known === name)[2](host);
      onChoose(name);
    }
    for (const [name, label] of panels) bar.append(el("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "answer-panel", "data-name": name, onclick: () => choose(name) }, label));
    bar.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const names = panels.map(([name]) => name);
      const at = names.indexOf(event.target.dataset.name);
      event.preventDefault();
      choose(names[(at + step + names.length) % names.length], true);
    });
    return { parts: [bar, host], begin: () => choose(panels.some(([name]) => name === chosen) ? chosen : panels[0][0]) };
  }

  const header = (answer, name) => (answer.headers.find(([known]) => known.toLowerCase() === name) || [])[1] || "";

  /**
   * Show the answer to `asked` {method, path, typed}. `follow(path)` runs a GET of a link. `chosen` is the tab to begin with.
   * Pages with site_chart.js name the path as it was `typed`, which charts are saved for.
   */
  function show(section, answer, asked, follow, chosen = "json") {
    let root = null;
    if (/json/.test(header(answer, "content-type"))) { try { root = site.json.parse(answer.text); } catch { /* shown as it is */ } }
    const { value: rows, error, "@odata.count": count } = site.json.isObject(root) ? root : {};
    const next = root && (root["@odata.nextLink"] || root["@nextLink"]);
    const group = answer.status < 300 ? "good" : answer.status < 400 ? "other" : "bad";
    const line = el("p", { class: "status", role: "status" },
      el("strong", { class: group }, `${answer.status} ${answer.statusText}`.trim()), " ",
      el("span", {}, t("milliseconds", { number: site.number.format(answer.milliseconds) })), " ", el("span", {}, site.size(answer.bytes)),
      Array.isArray(rows) ? [" ", el("span", {}, count !== undefined ? t("rowsOf", { count: site.number.format(rows.length), all: site.number.format(count) }) : t("rowCount", { count: site.number.format(rows.length) }))] : "");
    const actions = el("p", { class: "tools" });
    const text = root === null ? answer.text : site.json.format(root);
    if (next) actions.append(el("button", { type: "button", id: "next-page", onclick: () => follow(site.belowRoot(next)) }, t("nextPage")));
    const location = header(answer, "location");
    if (location) actions.append(el("button", { type: "button", class: "secondary", onclick: () => follow(site.belowRoot(location)) }, t("open", { name: site.belowRoot(location) })));
    if (answer.text) actions.append(
      el("button", { type: "button", class: "secondary", onclick: () => site.copy(text) }, t("copyAnswer")),
      el("button", { type: "button", class: "secondary", onclick: () => site.download("answer.json", answer.text) }, t("downloadAnswer")));
    if (Array.isArray(rows) && answer.status === 200) actions.append(...[exports(asked)].flat());
    const warnings = header(answer, "x-warnings");
    const parts = [line, actions];
    if (warnings) parts.push(el("p", { class: "notice" }, decodeURIComponent(warnings)));
    if (error) parts.push(errorPanel(error, asked.path, header(answer, "x-request-id")));
    const panels = [];
    const objects = Array.isArray(rows) ? rows.filter(site.json.isObject) : [];
    const heads = t("headersOf", { count: answer.headers.length });
    const linked = (url) => { const path = site.belowRoot(url); return path === null ? null : queryUrl(path); };
    if (root !== null) panels.push(["json", "JSON", (host) => code.reading(host, text, "JSON", linked, (url) => follow(site.belowRoot(url)))]);
    if (objects.length) panels.push(["table", t("table"), (host) => grid(host, objects, follow)]);
    if (asked.typed !== undefined && site.chart.fits(objects)) panels.push(["chart", t("chart"), (host) => site.chart.show(host, objects, asked.typed)]);
    if (answer.text) panels.push(["raw", t("raw"), (host) => host.append(el("pre", { class: "raw", tabindex: "0" }, answer.text))]);
    panels.push(["headers", heads, (host) => host.append(el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": heads }, el("table", { class: "headers" }, el("tbody", {}, answer.headers.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, value)))))))]);
    const bar = tabs(panels, chosen, (name) => site.tab.set("view", name));
    parts.push(...bar.parts);
    section.replaceChildren(...parts);
    section.hidden = false;
    bar.begin();
    section.dataset.status = String(answer.status);
    section.removeAttribute("aria-busy");
  }

  /** Show that there was no answer. */
  function showFailure(section, failure, asked) {
    const message = failure.name === "TypeError" ? t("noAnswer") : failure.message;
    section.replaceChildren(errorPanel(failure.error || { message }, asked.path, ""));
    section.hidden = false;
    section.dataset.status = "0";
    section.removeAttribute("aria-busy");
  }

  return { number, show, showFailure, text: cellText };
})();
