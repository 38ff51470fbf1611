// The import page (spec 03, 3.4; 11, 11.2): a file of objects is read here, a spreadsheet by the service, which draws its mapping as a form.
// Both are sent with progress, and answered object by object by the service, which checks them.
//
// "each object by itself" is sent in requests of some objects each: progress is real, and stopping leaves whole objects.
// "all objects or none" must be one request; its progress is that of the upload, then of the wait.
"use strict";
(() => {
  const { $, t, el } = site;
  // A file of many objects goes in a hundred steps, a spreadsheet, which is sent again with each, in ten. A larger one than
  // MAX_FILE_BYTES would fill the tab's memory.
  const CHUNK = 50, CHUNK_MOST = 1000, STEPS = 100, ROWS = 500, SHEET_STEPS = 10, MAX_FILE_BYTES = 64 * 1024 * 1024;
  const PATIENCE = 5; // times that a busy service is asked again

  const STATES = { Added: t("resultAdded"), Modified: t("resultModified"), Deleted: t("resultDeleted"), Unchanged: t("resultUnchanged") };

  let objects = []; // {text, type}: what is sent, as it was written; of a spreadsheet a row each
  let isSheet = false, isTried = false; // of a spreadsheet; a preview, of which nothing remains
  let results = []; // rows of the grid
  let stopped = false, transport = null, grid = null, name = "", form = null;

  const base = () => name.replace(/\.[^.]*$/, "");
  function ready(isReady) { $("run").disabled = $("try").disabled = !isReady; }

  // --- reading

  const typeOf = (object) => { const type = object["@odata.type"] ?? object["@type"]; return typeof type === "string" ? type.replace(/^#/, "") : ""; };
  function tell(...content) { $("findings").replaceChildren(...content.flat()); }
  const problem = (...content) => el("p", { class: "problem" }, ...content);

  async function read(file) {
    objects = [];
    ready(false);
    form.forget();
    $("parts").replaceChildren();
    $("results").hidden = $("progress-panel").hidden = true;
    if (!file) { tell(); return; }
    name = file.name;
    isSheet = /\.(csv|xlsx)$/i.test(name);
    if (file.size > MAX_FILE_BYTES) { tell(problem(t("fileTooLarge", { size: site.size(file.size), most: site.size(MAX_FILE_BYTES) }))); return; }
    tell(el("p", {}, t("reading", { name: file.name, size: site.size(file.size) })));
    if (isSheet) { form.draw(); return; }
    const text = await file.text();
    let root;
    try { root = site.json.parse(text.replace(/^\ufeff/, "")); } catch {
      const at = code.jsonProblem(text);
      const line = text.split("\n")[at.line - 1] || "";
      const from = Math.max(0, at.column - 41);
      tell(problem(t("jsonProblem", at)), el("pre", { class: "caret", tabindex: "0" }, line.slice(from, from + 100), "\n", " ".repeat(at.column - 1 - from), el("strong", {}, "^")));
      return;
    }
    const items = Array.isArray(root) ? root : site.json.isObject(root) && root.objects;
    if (!Array.isArray(items)) { tell(problem(t("noObjects"))); return; }
    takeOptions(root);
    list(items);
  }

  /** A whole body of Import brings its own options. */
  function takeOptions(root) {
    for (const option of ["transaction", "model", "loggingLevel"]) {
      const field = $("import").elements[option], wanted = root[option] === "backend" ? "common" : String(root[option]);
      if ([...field.options].some(({ value }) => value === wanted)) field.value = wanted;
    }
  }

  function list(items) {
    objects = items.map((node) => ({ text: site.json.format(node), type: site.json.isObject(node) ? typeOf(node).replace(/^Erp\./, "") : "" }));
    const types = new Map();
    for (const { type } of objects) types.set(type || "?", (types.get(type || "?") || 0) + 1);
    const counted = [...types].map(([type, count]) => `${type} × ${site.number.format(count)}`).join(", ");
    tell(el("p", { class: "good" }, t("objectsRead", { count: site.number.format(objects.length) }), " ", counted));
    ready(objects.length > 0);
  }

  // --- spreadsheets: a form, domain.api_site.import_page

  /** After the form has been drawn, or refused. */
  function shown(actions, failure) {
    objects = [];
    if (failure && former !== null) $("mapping-json").value = former;
    former = null;
    if (failure) {
      const { type, message, parameters, signIn } = failure.error || { message: t("noAnswer") };
      // Of "The body cannot be used: sheet …, row …", what people sent is no body.
      tell(problem(type === "InvalidBody" ? parameters[0] : message, " ", signIn ? el("a", { class: "button", href: site.logInUrl() }, t("signIn")) : ""));
      ready(false);
      return;
    }
    const told = $("told");
    if ("ready" in told.dataset) objects = Array.from({ length: Number(told.dataset.rows) }, () => ({ text: "", type: "" }));
    if (told.dataset.told) site.announce(told.dataset.told, true);
    tell(...told.childNodes);
    ready(objects.length > 0);
  }

  let former = null; // the mapping before one was loaded

  async function load(file) {
    former = $("mapping-json").value;
    $("mapping-json").value = await file.text();
    form.draw();
  }

  function change({ target }) {
    if (target.id === "file") read(target.files[0]);
    else if (target.id === "mapping-load") { if (target.files[0]) load(target.files[0]); }
    else if (target.name === "model" ? isSheet && name : $("parts").contains(target) && !["saved-name", "saved-shared"].includes(target.name)) form.draw(target.name);
  }

  async function press({ target }) {
    if (target.id === "mapping-save") { $("mapping-name").required = true; if ($("mapping-name").reportValidity()) form.draw("save"); $("mapping-name").required = false; }
    else if (target.matches("#parts button[value]")) form.draw(target.value);
    else if (target.id === "mapping-download") site.download(`${base()}-mapping.json`, JSON.stringify(JSON.parse($("mapping-json").value), null, 2));
    else if (/^template-/.test(target.id)) downloadTemplate(target.id.split("-")[1]);
  }

  async function downloadTemplate(kind) {
    const field = $("template-set"), isKnown = [...$("set-names").options].some(({ value }) => value === field.value.trim());
    field.setCustomValidity(isKnown ? "" : t("noSuchSet"));
    if (!field.reportValidity()) return;
    try { await site.downloadFrom(`${site.data.exports}${field.value.trim()}.${kind}?template`); } catch (failure) { site.announce(failure.name === "TypeError" ? t("noAnswer") : failure.message, true); }
  }

  /** The refused rows as they were, with the error in a column of its own: a file for each sheet. */
  function downloadRefused(answers) {
    const cell = (text) => `"${site.neutral(text).replace(/"/g, '""')}"`, sheets = new Map();
    for (const { "@erpnet.source": source, "@erpnet.error": error, "@erpnet.message": message } of answers) {
      if (!source) continue;
      if (!sheets.has(source.sheet)) sheets.set(source.sheet, [[...Object.keys(source.cells), "Error"]]);
      sheets.get(source.sheet).push([...Object.values(source.cells), error ? error.message : message || ""]);
    }
    for (const [sheet, rows] of sheets) site.download(`${[base(), sheet].filter(Boolean).join("-")}-failures.csv`, `\ufeff${rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("")}`, "text/csv");
  }

  // --- sending

  const options = () => ({ transaction: $("transaction").value, model: $("import-model").value, loggingLevel: Number($("logging").value) });

  /** Body and headers of an import of `count` objects from the one at `from` on. */
  function content(from, count) {
    if (!isSheet) return { headers: { "Content-Type": "application/json" }, body: `${JSON.stringify(options()).slice(0, -1)},"objects":[${objects.slice(from, from + count).map(({ text }) => text).join(",")}]}` };
    const body = new FormData($("import"));
    body.set("file", $("file").files[0]); // the field is disabled meanwhile
    body.set("offset", from);
    body.set("limit", count);
    return { headers: {}, body };
  }

  function progress(done, all, text) {
    $("progress-panel").hidden = false;
    if (all) { $("progress").max = all; $("progress").value = done; } else $("progress").removeAttribute("value");
    $("progress-text").textContent = text;
  }

  async function take(answers, from) {
    const rows = answers.map((answer, i) => result(from + i + 1, objects[from + i], answer));
    results.push(...rows);
    summarise();
    await (await grid).addData(rows);
  }

  function failed(from, count, error) { return take(Array.from({ length: count }, () => ({ "@erpnet.result": "fail", "@erpnet.error": error })), from); }

  async function eachByItself() {
    const chunk = isSheet ? Math.max(ROWS, Math.ceil(objects.length / SHEET_STEPS)) : Math.min(CHUNK_MOST, Math.max(CHUNK, Math.ceil(objects.length / STEPS)));
    for (let from = 0; from < objects.length && !stopped; from += chunk) {
      const count = Math.min(chunk, objects.length - from);
      const answer = await patiently({ method: "POST", path: "Import", ...content(from, count) });
      if (!answer) return;
      let body = null;
      try { body = JSON.parse(answer.text); } catch { /* told below */ }
      if (answer.status >= 400 || !body) {
        const error = (body && body.error) || { message: `${answer.status} ${answer.statusText}` };
        await failed(from, count, error);
        // Without access nothing that follows can succeed either.
        if ([401, 403, 429, 503].includes(answer.status)) throw new site.Refused(error);
      } else await take(body.objects, from);
      progress(from + count, objects.length, t("progressObjects", { done: site.number.format(from + count), all: site.number.format(objects.length) }));
    }
  }

  /** Send; where the service is busy and says until when, wait and ask again. null when stopped meanwhile. */
  async function patiently(request) {
    for (let attempt = 1; ; attempt++) {
      const answer = await site.send(request);
      const after = answer.headers.find(([header]) => header.toLowerCase() === "retry-after");
      if (!(answer.status === 429 || answer.status === 503) || !after || attempt > PATIENCE) return answer;
      $("progress-text").textContent = t("waiting", { seconds: after[1] });
      const until = Date.now() + Number(after[1]) * 1000;
      while (Date.now() < until && !stopped) await new Promise((resolve) => setTimeout(resolve, Math.min(500, until - Date.now())));
      if (stopped) return null;
    }
  }

  /** XMLHttpRequest, because fetch tells nothing of how far an upload is. */
  async function atOnce() {
    const token = await site.token();
    const { headers, body } = content(0, objects.length);
    const text = await new Promise((resolve, reject) => {
      transport = new XMLHttpRequest();
      transport.open("POST", `${site.data.root}Import`);
      const sent = { ...headers, Authorization: `Bearer ${token}`, "Accept-Language": site.data.language, ...(isTried ? { Prefer: "erpnet.dry-run" } : {}) };
      for (const [header, value] of Object.entries(sent)) transport.setRequestHeader(header, value);
      transport.upload.onprogress = (event) => progress(event.loaded, event.total, t("progressUpload", { done: site.size(event.loaded), all: site.size(event.total) }));
      transport.upload.onload = () => progress(0, 0, isTried ? t("progressTry", { count: site.number.format(objects.length) }) : t("progressWait", { count: site.number.format(objects.length) }));
      transport.onload = () => resolve(transport.responseText);
      transport.onerror = () => reject(new Error(t("noAnswer")));
      transport.onabort = () => resolve("");
      transport.send(body);
    });
    if (!text) return "";
    const answer = JSON.parse(text);
    if (answer.error) { await failed(0, objects.length, answer.error); return ""; }
    await take(answer.objects, 0);
    return isTried ? t("tried") : "";
  }

  // --- results

  /** The row of an object: {index, type, object, answer, isFailure, state, id, message}; of a spreadsheet, index is its row. */
  function result(index, { type, text }, answer) {
    const isFailure = answer["@erpnet.result"] !== "success", error = answer["@erpnet.error"];
    const message = error ? [error.message, error.target, [error.code, error.type].filter(Boolean).join(" · ")].filter(Boolean).join(" – ") : answer["@erpnet.message"] || "";
    const path = answer["@odata.id"] || "", change = answer["@erpnet.state"];
    return {
      index: isSheet ? answer["@erpnet.source"]?.row : index, type: type || path.split("(")[0], object: text, answer, isFailure,
      state: isFailure ? t("resultFail") : STATES[change] || STATES.Unchanged, id: isTried && change === "Added" ? "" : path, message,
    };
  }

  const state = (cell) => el("span", { class: cell.getData().isFailure ? "problem" : "good" }, cell.getValue());
  const link = (cell) => cell.getValue() && el("a", { href: `${site.data.query}#GET%20${encodeURIComponent(cell.getValue())}` }, cell.getValue());
  const emptyGrid = () => site.grid($("rows"), t("results"), { data: [], columns: [
    { title: isSheet ? t("row") : "#", field: "index", hozAlign: "right" }, { title: t("result"), field: "state", formatter: state, width: 110 }, { title: t("type"), field: "type", width: 220 },
    { title: t("object"), field: "id", formatter: link, width: 260 }, { title: t("message"), field: "message", formatter: "textarea", minWidth: 240 },
  ] });

  function summarise() {
    const bad = results.filter(({ isFailure }) => isFailure).length;
    const counts = { good: site.number.format(results.length - bad), bad: site.number.format(bad), all: site.number.format(objects.length) };
    $("summary").textContent = isTried ? t("triedSummary", counts) : t("summary", counts);
    $("download").hidden = !bad;
  }

  /** Import; or try it, in one request. */
  async function run(tried) {
    isTried = tried;
    results = [];
    stopped = false;
    $("results").hidden = false;
    $("only-failures").checked = false;
    summarise();
    if (grid) (await grid).destroy();
    grid = emptyGrid();
    ready(false);
    $("file").disabled = true;
    $("cancel").hidden = false;
    progress(0, objects.length, t("progressObjects", { done: 0, all: site.number.format(objects.length) }));
    try {
      const told = await (isTried || $("transaction").value === "all-objects" ? atOnce() : eachByItself());
      $("progress-text").textContent = stopped ? t("stopped") : told || t("finished");
      if (!stopped) { $("progress").max = 1; $("progress").value = 1; }
    } catch (failure) {
      const error = failure.error || { message: failure.name === "TypeError" ? t("noAnswer") : failure.message };
      $("progress-text").textContent = error.message;
      if (error.signIn) tell(el("p", { class: "problem" }, error.message, " ", el("a", { class: "button", href: site.logInUrl() }, t("signIn"))));
    } finally {
      ready(true);
      $("file").disabled = false;
      $("cancel").hidden = true;
      transport = null;
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    const send = (fields) => { ready(false); return site.part(site.data.sheets, fields, true); }; // what is shown is not what is written
    form = site.drawnForm($("import"), $("parts"), send, shown);
    $("import").addEventListener("change", change);
    $("import").addEventListener("click", press);
    $("template-set").addEventListener("input", () => $("template-set").setCustomValidity(""));
    $("import").addEventListener("submit", (event) => { event.preventDefault(); if (objects.length) run(false); });
    $("try").addEventListener("click", () => { if (objects.length) run(true); });
    $("cancel").addEventListener("click", () => { stopped = true; if (transport) transport.abort(); });
    $("only-failures").addEventListener("change", async () => { if ($("only-failures").checked) (await grid).setFilter("isFailure", "=", true); else (await grid).clearFilter(); });
    $("download").addEventListener("click", () => {
      const bad = results.filter(({ isFailure }) => isFailure);
      if (isSheet) { downloadRefused(bad.map(({ answer }) => answer)); return; }
      const errors = bad.map(({ index, answer }) => ({ object: index, error: answer["@erpnet.error"] || { message: answer["@erpnet.message"] } }));
      // What was sent, as it was written, so that it can be mended and imported again; the errors beside it.
      site.download(name.replace(/(\.json)?$/i, "-failures.json"), `{"objects":[\n${bad.map(({ object }) => object).join(",\n")}\n],\n"@failures":${JSON.stringify(errors, null, 1)}}\n`);
    });
    const drop = $("drop");
    drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
    drop.addEventListener("dragleave", () => drop.classList.remove("over"));
    drop.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("over"); $("file").files = event.dataTransfer.files; read(event.dataTransfer.files[0]); });
  });
})();
