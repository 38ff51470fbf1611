// An answer of the API: status and time, JSON as a tree or a table, headers, the way to the next page, errors told well.
"use strict";
site.answer = (() => {
  const { el, t } = site;
  const TABLE_COLUMNS = 60, TABLE_ROWS = 200; // a thousand rows of thirty columns take a browser a second or two

  /** What the service says of a failure, for people. `asked` is the encoded path of the request. */
  function errorPanel(error, asked, correlation) {
    const panel = el("div", { class: "error", role: "alert" }, el("p", { class: "message" }, error.message || t("noMessage")));
    const facts = el("dl", {});
    const fact = (name, value) => { if (value !== undefined && value !== null && value !== "") facts.append(el("dt", {}, name), el("dd", {}, value)); };
    fact(t("errorCode"), [error.code, error.type].filter((part) => part !== undefined).join(" · "));
    fact(t("errorTarget"), error.target && el("code", {}, error.target));
    if (error.info && !error.info.startsWith("correlation id")) fact(t("errorInfo"), el("span", { class: "info" }, error.info));
    fact(t("errorCorrelation"), correlation && el("code", {}, correlation));
    const caret = place(error, asked);
    if (caret) panel.append(caret);
    if (error.details && error.details.length) panel.append(el("ul", {}, error.details.map((detail) => el("li", {}, detail.target ? el("code", {}, detail.target) : "", " ", detail.message || ""))));
    if (error.signIn) panel.append(el("p", {}, el("a", { class: "button", href: site.logInUrl() }, t("signIn"))));
    panel.append(facts);
    return panel;
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
    return el("pre", { class: "caret" }, (from ? "…" : "") + text.slice(from, position + 60), "\n", " ".repeat(position - from + (from ? 1 : 0)), el("strong", {}, "^"));
  }
  const decode = (text) => { try { return decodeURIComponent(text); } catch { return text; } };

  // --- the table

  const cellText = (node) => {
    if (node.kind === "string") return node.value;
    if (node.kind === "number") return node.raw;
    if (node.kind === "literal") return node.raw === "null" ? "" : node.raw;
    if (node.kind === "array") return `[${node.items.length}]`;
    const value = site.json.member(node, "Value");
    const unit = site.json.member(node, "Currency") || site.json.member(node, "Unit");
    if (value && unit) return `${cellText(value)} ${cellText(unit)}`;
    const name = ["DisplayText", "Name", "Code"].map((key) => site.json.member(node, key)).find(Boolean);
    if (name) return cellText(name);
    if (node.members.length && node.members.every(([key, inner]) => /^[A-Z]{2}$/.test(key) && inner.kind === "string")) return cellText((node.members.find(([key]) => key === site.data.language.toUpperCase()) || node.members[0])[1]);
    return node.members.filter(([key]) => !key.includes("@")).map(([, inner]) => cellText(inner)).filter(Boolean).join(" · ");
  };

  /** A key is long, and its end tells more than its beginning. */
  const brief = (path) => path.replace(/^.*\([^()]*?([^()]{1,12})\)$/, "…$1");

  /** The rows of {"value": [{…}]} as a table, or null where there are none. */
  function table(root, follow) {
    const value = site.json.member(root, "value");
    const rows = value && value.kind === "array" ? value.items.filter((row) => row.kind === "object") : [];
    if (!rows.length) return null;
    const columns = [...new Set(rows.flatMap((row) => row.members.map(([name]) => name)))].filter((name) => !name.startsWith("@odata.etag") && name !== "@odata.context").slice(0, TABLE_COLUMNS);
    const body = el("tbody", {});
    const cell = (row, name) => {
      const node = site.json.member(row, name);
      if (!node) return el("td", {});
      const reference = name === "@odata.id" ? node : site.json.member(node, "@odata.id");
      const path = reference && reference.kind === "string" ? site.belowRoot(reference.value) : null;
      if (!path) return el("td", { class: node.kind }, cellText(node));
      const named = node.kind === "object" && node.members.some(([key]) => !key.includes("@")) ? cellText(node) : brief(path);
      const anchor = el("a", { title: path, href: `${site.data.query}#GET%20${encodeURIComponent(path)}` }, named);
      anchor.addEventListener("click", (event) => { if (!event.ctrlKey && !event.metaKey && follow) { event.preventDefault(); follow(path); } });
      return el("td", {}, anchor);
    };
    const more = el("button", { type: "button", class: "secondary small", onclick: () => add() });
    function add() {
      const from = body.childElementCount;
      body.append(...rows.slice(from, from + TABLE_ROWS).map((row) => el("tr", {}, columns.map((name) => cell(row, name)))));
      more.hidden = body.childElementCount >= rows.length;
      more.textContent = t("showMore", { count: site.number.format(rows.length - body.childElementCount) });
    }
    add();
    return el("div", {}, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("rows") },
      el("table", {}, el("thead", {}, el("tr", {}, columns.map((name) => el("th", { scope: "col" }, name)))), body)), more);
  }

  // --- the whole answer

  /** Tabs by the ARIA pattern: one tab stop, arrow keys choose. `panels` is [[name, label, () => element]]. */
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
      host.replaceChildren(panels.find(([known]) => known === name)[2]());
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
    choose(panels.some(([name]) => name === chosen) ? chosen : panels[0][0]);
    return [bar, host];
  }

  const header = (answer, name) => (answer.headers.find(([known]) => known.toLowerCase() === name) || [])[1] || "";

  /**
   * Show the answer to `asked` {method, path}. `follow(path)` runs a GET of a link. `chosen` is the tab to begin with.
   */
  function show(section, answer, asked, follow, chosen = "json") {
    let root = null;
    if (/json/.test(header(answer, "content-type"))) { try { root = site.json.parse(answer.text); } catch { root = null; } }
    const next = root && (site.json.member(root, "@odata.nextLink") || site.json.member(root, "@nextLink"));
    const group = answer.status < 300 ? "good" : answer.status < 400 ? "other" : "bad";
    const count = root && site.json.member(root, "@odata.count");
    const rows = root && site.json.member(root, "value");
    const line = el("p", { class: "status", role: "status" },
      el("strong", { class: group }, `${answer.status} ${answer.statusText}`.trim()), " ",
      el("span", {}, t("milliseconds", { number: site.number.format(answer.milliseconds) })), " ", el("span", {}, site.size(answer.bytes)),
      rows && rows.kind === "array" ? [" ", el("span", {}, count ? t("rowsOf", { count: site.number.format(rows.items.length), all: site.number.format(Number(count.raw)) }) : t("rowCount", { count: site.number.format(rows.items.length) }))] : "");
    const actions = el("p", { class: "tools" });
    if (next) actions.append(el("button", { type: "button", id: "next-page", onclick: () => follow(site.belowRoot(next.value)) }, t("nextPage")));
    const location = header(answer, "location");
    if (location) actions.append(el("button", { type: "button", class: "secondary", onclick: () => follow(site.belowRoot(location)) }, t("open", { name: site.belowRoot(location) })));
    if (answer.text) actions.append(
      el("button", { type: "button", class: "secondary", onclick: () => site.copy(root ? site.json.format(root) : answer.text) }, t("copyAnswer")),
      el("button", { type: "button", class: "secondary", onclick: () => site.download("answer.json", answer.text) }, t("downloadAnswer")));
    const error = root && site.json.member(root, "error");
    const failed = error ? JSON.parse(answer.text).error : null;
    const warnings = header(answer, "x-warnings");
    const parts = [line, actions];
    if (warnings) parts.push(el("p", { class: "notice" }, warnings));
    if (failed) parts.push(errorPanel(failed, asked.path, header(answer, "x-request-id")));
    const panels = [];
    if (root) panels.push(["json", "JSON", () => site.json.tree(root, follow)]);
    if (rows && rows.kind === "array" && rows.items.some((row) => row.kind === "object")) panels.push(["table", t("table"), () => table(root, follow)]);
    if (answer.text) panels.push(["raw", t("raw"), () => el("pre", { class: "raw", tabindex: "0" }, answer.text)]);
    panels.push(["headers", t("headersOf", { count: answer.headers.length }), () => el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("headersOf", { count: answer.headers.length }) }, el("table", { class: "headers" }, el("tbody", {}, answer.headers.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, value))))))]);
    parts.push(...tabs(panels, chosen, (name) => site.tab.set("view", name)));
    section.replaceChildren(...parts);
    section.hidden = false;
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

  return { show, showFailure, errorPanel, table };
})();
