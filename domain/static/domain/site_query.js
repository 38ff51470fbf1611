// The query tool: any request, run, with completion, history, Domain transactions and what to paste into a shell.
"use strict";
(() => {
  const { $, t, el } = site;
  const HISTORY_MOST = 100, HISTORY_BODY_MOST = 20000;
  const COMMON_HEADERS = [
    "Prefer: odata.maxpagesize=50", "Prefer: return=representation", "Prefer: odata.track-changes", "Prefer: erpnet.trace-rules",
    "Accept: application/json;odata.metadata=full", "Accept: application/json;odata.metadata=none", "Accept: application/xml",
    'If-Match: W/"1"', "If-None-Match: *", "Content-Type: application/json", "Content-Type: text/plain", "OData-MaxVersion: 4.0",
  ];
  const historyName = `history.${site.data.login || "-"}`;
  const BODILESS = new Set(["GET", "HEAD", "DELETE", "OPTIONS"]);

  let model = null, running = null;

  // --- what is typed

  /** The headers' lines as {name: value}. Throws Error naming the line. */
  function headers() {
    const found = {};
    for (const [i, text] of $("headers").value.split("\n").entries()) {
      if (!text.trim()) continue;
      const line = /^\s*([!#$%&'*+.^_`|~\w-]+)\s*:\s*(.*?)\s*$/.exec(text);
      if (!line) throw new Error(t("headerLine", { line: i + 1 }));
      found[line[1]] = found[line[1]] === undefined ? line[2] : `${found[line[1]]}, ${line[2]}`;
    }
    const transaction = $("transaction").value.trim();
    if (transaction) found.TransactionId = transaction;
    return found;
  }

  const typed = () => ({ method: $("method").value, path: $("path").value, headers: $("headers").value, body: $("body").value, transaction: $("transaction").value });

  function fill(request) {
    $("method").value = request.method || "GET";
    set("path", request.path || "");
    $("headers").value = request.headers || "";
    set("body", request.body || "");
    if (request.transaction !== undefined) $("transaction").value = request.transaction;
    // Bodies, headers and transactions that are sent must be seen.
    $("headers-panel").open = $("headers-panel").open || Boolean(request.headers);
    $("transaction-panel").open = $("transaction-panel").open || Boolean(request.transaction);
    changed();
  }

  /** The editor over a field follows the field's event. */
  function set(id, text) {
    $(id).value = text;
    $(id).dispatchEvent(new Event("input", { bubbles: true }));
  }

  /** After any change: states of the panels, the body's problem, the draft that survives a sign-in. */
  function changed() {
    const request = typed();
    const takesBody = !BODILESS.has(request.method);
    if (takesBody && !$("body-panel").open && !changed.opened) { changed.opened = true; $("body-panel").open = true; }
    if (!takesBody) changed.opened = false;
    $("body-state").textContent = request.body.trim() ? (takesBody ? site.size(new TextEncoder().encode(request.body).length) : t("notSent", { method: request.method })) : "";
    const lines = request.headers.split("\n").filter((line) => line.trim()).length;
    $("headers-state").textContent = lines ? String(lines) : "";
    $("transaction-state").textContent = request.transaction.trim();
    checkBody();
    showCode();
    site.tab.set("draft", request);
  }

  /** The JSON problem of the body, or null; shown below it and at its place in the editor. */
  function checkBody() {
    const text = $("body").value;
    let problem = null;
    let named = "";
    try { named = Object.entries(headers()).find(([name]) => name.toLowerCase() === "content-type")?.[1] || ""; } catch { /* told at the headers */ }
    if (text.trim() && (!named || /json/.test(named))) problem = code.jsonProblem(text);
    $("body-problem").textContent = problem ? t("jsonProblem", problem) : "";
    $("body").toggleAttribute("aria-invalid", Boolean(problem));
    document.dispatchEvent(new CustomEvent("code:problems", { detail: { field: "body", problems: problem ? [problem] : [] } }));
    return problem;
  }

  /**
   * A body to begin with, for what the path leads to: an action's parameters, else the properties that an entity must
   * have. null where the model knows of nothing to send.
   */
  function template() {
    const [path] = site.halves($("path").value.trim());
    const steps = path.split("/");
    const last = steps.pop().replace(/\(\)$/, "");
    const { set } = site.resource(model, steps.length ? steps.join("/") : path);
    const operation = steps.length ? set && site.operationsOf(model, set).find((known) => known.name === last) : model.operationDetails.find((known) => known.name === last);
    if (operation) return Object.fromEntries(operation.parameters.map((p) => [p.name, example(p.type, null)]));
    const target = site.resource(model, path).set;
    if (!target) return null;
    // Booleans always have a value; a template that says false would change what is the default.
    const wanted = [...target.attributes, ...target.references].filter((member) => member.required && !member.readOnly && member.isDefault && member.type !== "Edm.Boolean");
    return Object.fromEntries(wanted.map((member) => [member.name, example(member.type, member)]));
  }

  function example(type, member) {
    if (member && member.entitySet) return { "@odata.id": `${member.entitySet}()` };
    if (member && member.members) return Object.keys(member.members)[0];
    const examples = {
      "Edm.String": "", "Edm.Boolean": false, "Edm.Int32": 0, "Edm.Decimal": 0, "Edm.Date": new Date().toISOString().slice(0, 10),
      "Edm.DateTimeOffset": new Date().toISOString().slice(0, 19) + "Z", "Erp.MultilanguageString": { [site.data.language.toUpperCase()]: "" },
      "Erp.Amount": { Value: 0, Currency: "" }, "Erp.Quantity": { Value: 0, Unit: "" },
    };
    return type in examples ? examples[type] : type && type.startsWith("Collection(") ? [] : "";
  }

  function fillTemplate() {
    const made = model && template();
    if (!made) { site.announce(t("noTemplate"), true); return; }
    // What is written already is never lost: the template gives only what is missing.
    let written = {};
    try { written = $("body").value.trim() ? site.json.parse($("body").value) : {}; } catch { $("body-panel").scrollIntoView(); return; }
    set("body", site.json.format({ ...made, ...written }));
  }

  // --- running

  async function run(path = null) {
    const follows = path !== null;
    if (follows) {
      // What is followed is read: the body belongs to the request before.
      $("method").value = "GET";
      set("path", readable(path));
    }
    const request = typed();
    const asked = { method: request.method, path: follows ? path : site.encoded(request.path), typed: request.path };
    const section = $("answer");
    let sent;
    try { sent = content(request); $("headers-problem").textContent = ""; } catch (problem) {
      $("headers-panel").open = true;
      $("headers-problem").textContent = problem.message;
      $("headers").focus();
      return;
    }
    if (sent.body !== null && checkBody()) {
      $("body-panel").open = true;
      document.dispatchEvent(new CustomEvent("code:goto", { detail: { field: "body", ...checkBody() } }));
      site.announce($("body-problem").textContent);
      return;
    }
    if (running) running.abort();
    running = new AbortController();
    section.setAttribute("aria-busy", "true");
    $("run").disabled = true;
    $("cancel").hidden = false;
    try {
      const answer = await site.send({ ...asked, ...sent, signal: running.signal });
      site.answer.show(section, answer, asked, run, site.saved.chart(request.path) ? "chart" : site.tab.get("view", "json"));
      remember({ ...request, status: answer.status, milliseconds: answer.milliseconds });
    } catch (failure) {
      if (failure.name === "AbortError") { section.removeAttribute("aria-busy"); site.announce(t("cancelled"), true); }
      else { site.answer.showFailure(section, failure, asked); if (!failure.error) remember({ ...request, status: 0, milliseconds: 0 }); }
    } finally {
      running = null;
      $("run").disabled = false;
      $("cancel").hidden = true;
    }
  }

  /** A followed path as people type it; what only encoding keeps in one piece stays encoded. */
  function readable(path) {
    return path.replace(/%(?:[0-7][0-9a-f])/gi, (found) => {
      const letter = decodeURIComponent(found);
      return /[ '"()$,:;=@[\]{}|<>^`\\]/.test(letter) ? letter : found;
    });
  }

  // --- history

  function remember(entry) {
    const kept = { ...entry, body: entry.body.length > HISTORY_BODY_MOST ? "" : entry.body, transaction: "", at: Date.now() };
    const same = (other) => ["method", "path", "headers", "body"].every((name) => other[name] === kept[name]);
    const all = [kept, ...site.local.get(historyName, []).filter((other) => !same(other))].slice(0, HISTORY_MOST);
    site.local.set(historyName, all);
    showHistory();
  }

  function showHistory() {
    const wanted = $("history-search").value.toLowerCase();
    const all = site.local.get(historyName, []).filter((entry) => `${entry.method} ${entry.path}`.toLowerCase().includes(wanted));
    const time = new Intl.DateTimeFormat(site.data.language, { dateStyle: "short", timeStyle: "medium" });
    $("history").replaceChildren(...all.map((entry) => el("li", {},
      el("button", { type: "button", class: "entry", title: `${entry.method} ${entry.path}`, onclick: () => { fill(entry); $("path").focus(); } },
        el("span", { class: `method ${entry.method.toLowerCase()}` }, entry.method), " ", el("span", { class: "entry-path" }, entry.path || "/"),
        el("span", { class: "quiet" }, `${entry.status || "–"} · ${t("milliseconds", { number: site.number.format(entry.milliseconds) })} · ${time.format(new Date(entry.at))}`)))));
    if (!all.length) $("history").append(el("li", { class: "quiet" }, t("historyEmpty")));
  }

  // --- for programs

  const publicUrl = () => site.data.publicRoot + site.encoded($("path").value);

  /** The headers and the body that are sent: {headers: {name: value}, body: text or null}. Throws Error naming a line. */
  function content({ method, body }) {
    const sent = headers();
    const withBody = !BODILESS.has(method) && body.trim() !== "";
    if (withBody && !Object.keys(sent).some((name) => name.toLowerCase() === "content-type")) sent["Content-Type"] = "application/json";
    return { headers: sent, body: withBody ? body : null };
  }

  function showCode() {
    if (!$("code-panel").open) return;
    const request = typed();
    let sent;
    try { sent = content(request); } catch (problem) { $("snippet").textContent = problem.message; return; }
    $("snippet").textContent = site.snippets[$("language").value]({ method: request.method, url: publicUrl(), headers: Object.entries(sent.headers), body: sent.body });
  }

  // --- Domain transactions

  async function transaction(path, body) {
    const id = $("transaction").value.trim();
    const sent = { "Content-Type": "application/json", Accept: "*/*", ...(path === "EndTransaction" ? { TransactionId: id } : {}) };
    const asked = { method: "POST", path };
    try {
      const answer = await site.send({ ...asked, headers: sent, body: JSON.stringify(body) });
      if (answer.status < 300) {
        $("transaction").value = path === "BeginTransaction" ? answer.text : "";
        changed();
        site.announce(path === "BeginTransaction" ? t("transactionBegun") : t("transactionEnded"), true);
      } else site.answer.show($("answer"), answer, asked, run);
    } catch (failure) { site.answer.showFailure($("answer"), failure, asked); }
  }

  function fromAddress() {
    const methods = "(GET|POST|PATCH|PUT|DELETE|HEAD|OPTIONS)";
    let found = new RegExp(`^#${methods}(?:%20| )(.*)$`).exec(location.hash);
    // "Try it yourself" links of the reference platform: ?GET+~/Crm_Sales_Customers?$top=10, where + is a space.
    if (!found && (found = new RegExp(`^\\?${methods}(?:\\+|%20)(.*)$`, "i").exec(location.search))) found = [found[0], found[1].toUpperCase(), found[2].replace(/\+/g, "%20").replace(/^(~|%7E)?\//i, "")];
    if (!found) return false;
    let path = found[2];
    try { path = decodeURIComponent(path); } catch { /* typed by hand: taken as it is */ }
    fill({ method: found[1], path: readable(path) });
    return true;
  }

  document.addEventListener("DOMContentLoaded", () => {
    code.address($("path"), { complete: (text) => (model ? site.completion(model, text) : { length: 0, items: [] }), enter: () => run() });
    site.model().then((found) => { model = model || found; document.documentElement.dataset.model = "ready"; });
    // Once a session is open anyway, completion knows custom properties and leaves out what may not be read.
    document.addEventListener("site:called", () => site.ownModel().then((found) => { model = found; document.documentElement.dataset.model = "own"; }, () => {}), { once: true });

    $("request").addEventListener("submit", (event) => { event.preventDefault(); run(); });
    // The editor has not read a key yet when the browser's own event passes; its field's event follows.
    $("request").addEventListener("input", (event) => { if (!event.target.matches(".code-editor")) changed(); });
    $("method").addEventListener("change", changed);
    // Before the editor of the body sees it, which would begin a new line.
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.defaultPrevented) return;
      event.preventDefault();
      event.stopPropagation();
      run();
    }, true);
    $("cancel").addEventListener("click", () => running && running.abort());
    $("language").append(...Object.keys(site.snippets).map((name) => el("option", {}, name)));
    $("language").addEventListener("change", showCode);
    $("code-panel").addEventListener("toggle", showCode);
    $("copy-code").addEventListener("click", () => site.copy($("snippet").textContent));
    $("copy-url").addEventListener("click", () => site.copy(publicUrl()));
    $("body-format").addEventListener("click", () => { if ($("body").value.trim() && !checkBody()) set("body", site.json.format(site.json.parse($("body").value))); });
    $("body-template").addEventListener("click", fillTemplate);
    for (const line of COMMON_HEADERS) $("headers-more").append(el("option", {}, line));
    $("headers-more").addEventListener("change", () => {
      const chosen = $("headers-more").value;
      if (chosen) $("headers").value = `${$("headers").value.trimEnd()}\n${chosen}`.trimStart();
      $("headers-more").value = "";
      changed();
    });
    $("history-search").addEventListener("input", showHistory);
    $("history-clear").addEventListener("click", () => { site.local.drop(historyName); showHistory(); });
    $("transaction-begin").addEventListener("click", () => transaction("BeginTransaction", { model: $("transaction-model").value, trackChanges: true }));
    $("transaction-commit").addEventListener("click", () => transaction("EndTransaction", { commit: true }));
    $("transaction-discard").addEventListener("click", () => transaction("EndTransaction", { commit: false }));
    window.addEventListener("hashchange", fromAddress);

    if (!fromAddress()) fill(site.tab.get("draft", { method: "GET", path: "" }));
    showHistory();
    $("path").focus();
  });
})();
