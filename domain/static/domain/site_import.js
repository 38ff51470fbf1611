// The import page (spec 03, 3.4): a file is read and checked here, sent with progress, and answered object by object.
//
// "each object by itself" is sent in requests of CHUNK objects and more: progress is real, and stopping leaves whole objects.
// "all objects or none" must be one request; its progress is that of the upload, then of the wait.
"use strict";
(() => {
  const { $, t, el } = site;
  // A file of many objects goes in a hundred steps. A larger one than MAX_FILE_BYTES would fill the tab's memory.
  const CHUNK = 50, CHUNK_MOST = 1000, STEPS = 100, FINDINGS_SHOWN = 20, ROWS_SHOWN = 200, MAX_FILE_BYTES = 64 * 1024 * 1024;
  const PATIENCE = 5; // times that a busy service is asked again
  const TYPES = { "Edm.String": ["string"], "Edm.Int32": ["number"], "Edm.Decimal": ["number", "string"], "Edm.Boolean": ["literal"], "Edm.Date": ["string"], "Edm.DateTimeOffset": ["string"], "Edm.Guid": ["string"] };
  const COMMANDS = new Set(["create", "update", "delete", "find", "findornull", "findorcreate", "findsingle", "findsingleornull", "merge"]);

  const STATES = { Added: t("resultAdded"), Modified: t("resultModified"), Deleted: t("resultDeleted"), Unchanged: t("resultUnchanged") };

  let model = null;
  let objects = []; // {text, type}: what is sent, as it was written
  let results = []; // {index, type, answer}
  let stopped = false, transport = null, shown = 0, name = "";

  // --- reading and checking

  const plain = (node) => (node.kind === "string" ? node.value : undefined);
  const typeOf = (node) => { const found = site.json.member(node, "@odata.type") || site.json.member(node, "@type"); return found && plain(found) !== undefined ? plain(found).replace(/^#/, "") : ""; };
  /** The set of a type's name, in any case; a former name has the namespace that the set's former name has. */
  function setOf(type) {
    if (!setOf.known) {
      setOf.known = new Map();
      for (const set of model.sets.values()) {
        const last = set.entityType.split("_").pop();
        for (const old of set.oldNames) setOf.known.set([...old.split("_").slice(0, -1), last].join("_").toLowerCase(), set);
      }
      for (const [name, set] of model.byType) setOf.known.set(name.replace(/^Erp\./, "").toLowerCase(), set);
    }
    return setOf.known.get(type.replace(/^Erp\./, "").toLowerCase());
  }

  /** What is wrong with an object, as far as the model tells: [message]. The service has the last word. */
  function problems(node) {
    if (node.kind !== "object") return [t("notAnObject")];
    const type = typeOf(node);
    if (!type) return [t("noType")];
    const set = setOf(type);
    return set ? memberProblems(node, set, "") : [t("unknownType", { type })];
  }

  function memberProblems(node, set, prefix) {
    const found = [];
    const command = site.json.member(node, "@erpnet.action");
    if (command && !COMMANDS.has(String(plain(command)).toLowerCase())) found.push(t("unknownAction", { name: prefix + plain(command) }));
    for (const [label, value] of node.members) {
      const bare = label.replace(/@(?:odata\.)?bind$/, "");
      if (label.startsWith("@") || bare.includes("@")) continue;
      const member = site.completion.find(set, bare);
      const isNull = value.kind === "literal" && value.raw === "null";
      if (!member) { if (!bare.startsWith("CustomProperty_")) found.push(t("unknownMember", { name: prefix + bare, set: set.name })); continue; }
      if (member.kind === "property" && member.attribute && !isNull) {
        const allowed = TYPES[member.attribute.type];
        if (member.attribute.members) { if (value.kind === "string" && !(value.value.split("'").join("").split(".").pop() in member.attribute.members)) found.push(t("unknownValue", { name: prefix + bare, value: value.value })); }
        else if (allowed && !allowed.includes(value.kind)) found.push(t("wrongKind", { name: prefix + bare, type: member.attribute.type }));
        else if (value.kind === "string" && member.attribute.maxLength && value.value.length > member.attribute.maxLength) found.push(t("tooLong", { name: prefix + bare, most: member.attribute.maxLength }));
      } else if (member.target && value.kind === "object") {
        const inner = typeOf(value) ? setOf(typeOf(value)) : model.sets.get(member.target);
        if (inner && !inner.isAbstract) found.push(...memberProblems(value, inner, `${prefix}${bare}/`));
      } else if (member.kind === "collection" && value.kind === "array") {
        const inner = model.sets.get(member.target);
        for (const [i, item] of value.items.entries()) if (item.kind === "object" && inner && !inner.isAbstract) found.push(...memberProblems(item, inner, `${prefix}${bare}[${i}]/`));
      }
    }
    return found;
  }

  function tell(...content) { $("findings").replaceChildren(...content.flat()); }

  async function read(file) {
    objects = [];
    $("run").disabled = true;
    $("results").hidden = $("progress-panel").hidden = true;
    if (!file) { tell(); return; }
    name = file.name;
    if (file.size > MAX_FILE_BYTES) { tell(el("p", { class: "problem" }, t("fileTooLarge", { size: site.size(file.size), most: site.size(MAX_FILE_BYTES) }))); return; }
    tell(el("p", {}, t("reading", { name: file.name, size: site.size(file.size) })));
    model = model || await site.model();
    const text = await file.text();
    let root;
    try { root = site.json.parse(text); } catch (problem) {
      const at = site.json.place(text, problem.position);
      const line = text.split("\n")[at.line - 1] || "";
      const from = Math.max(0, at.column - 41);
      tell(el("p", { class: "problem" }, t("jsonProblem", { ...at, message: problem.message })), el("pre", { class: "caret" }, line.slice(from, from + 100), "\n", " ".repeat(at.column - 1 - from), el("strong", {}, "^")));
      return;
    }
    const list = root.kind === "array" ? root : site.json.member(root, "objects");
    if (!list || list.kind !== "array") { tell(el("p", { class: "problem" }, t("noObjects"))); return; }
    takeOptions(root);
    check(list.items);
  }

  /** A whole body of Import brings its own options. */
  function takeOptions(root) {
    for (const [key, id] of [["transaction", "transaction"], ["model", "import-model"], ["loggingLevel", "logging"]]) {
      const value = site.json.member(root, key);
      if (!value) continue;
      const wanted = value.kind === "string" ? (value.value === "backend" ? "common" : value.value) : value.raw;
      if ([...$(id).options].some((option) => option.value === wanted)) $(id).value = wanted;
    }
  }

  function check(items) {
    const found = [];
    let faulty = 0;
    objects = items.map((node, index) => {
      const wrong = problems(node);
      if (wrong.length) { faulty++; if (found.length < FINDINGS_SHOWN) found.push(...wrong.map((message) => [index + 1, message])); }
      return { text: site.json.format(node), type: typeOf(node).replace(/^Erp\./, "") };
    });
    const types = new Map();
    for (const { type } of objects) types.set(type || "?", (types.get(type || "?") || 0) + 1);
    const counted = [...types].map(([type, count]) => `${type} × ${site.number.format(count)}`).join(", ");
    tell(
      el("p", { class: faulty ? "notice" : "good" }, faulty ? t("checkedFaulty", { count: site.number.format(objects.length), faulty: site.number.format(faulty) }) : t("checkedGood", { count: site.number.format(objects.length) }), " ", counted),
      found.length ? el("ul", { class: "plain problem" }, found.slice(0, FINDINGS_SHOWN).map(([index, message]) => el("li", {}, t("objectNumber", { index }), ": ", message))) : [],
    );
    $("run").disabled = !objects.length;
    $("run").textContent = faulty ? t("importAnyway") : t("importNow");
  }

  // --- sending

  const options = () => ({ transaction: $("transaction").value, model: $("import-model").value, loggingLevel: Number($("logging").value) });
  const bodyOf = (part) => `${JSON.stringify(options()).slice(0, -1)},"objects":[${part.map(({ text }) => text).join(",")}]}`;

  function progress(done, all, text) {
    $("progress-panel").hidden = false;
    if (all) { $("progress").max = all; $("progress").value = done; } else $("progress").removeAttribute("value");
    $("progress-text").textContent = text;
  }

  function take(answers, from) {
    for (const [i, answer] of answers.entries()) results.push({ index: from + i + 1, type: objects[from + i].type, object: objects[from + i].text, answer });
    summarise();
  }

  function failed(from, part, error) { take(part.map(() => ({ "@erpnet.result": "fail", "@erpnet.error": error })), from); }

  async function eachByItself() {
    const chunk = Math.min(CHUNK_MOST, Math.max(CHUNK, Math.ceil(objects.length / STEPS)));
    for (let from = 0; from < objects.length && !stopped; from += chunk) {
      const part = objects.slice(from, from + chunk);
      const answer = await patiently({ method: "POST", path: "Import", headers: { "Content-Type": "application/json" }, body: bodyOf(part) });
      if (!answer) return;
      let body = null;
      try { body = JSON.parse(answer.text); } catch { /* told below */ }
      if (answer.status >= 400 || !body) {
        const error = (body && body.error) || { message: `${answer.status} ${answer.statusText}` };
        failed(from, part, error);
        // Without access nothing that follows can succeed either.
        if ([401, 403, 429, 503].includes(answer.status)) throw new site.Refused(error);
      } else take(body.objects, from);
      const done = Math.min(from + chunk, objects.length);
      progress(done, objects.length, t("progressObjects", { done: site.number.format(done), all: site.number.format(objects.length) }));
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
  async function allOrNone() {
    const token = await site.token();
    const body = bodyOf(objects);
    const text = await new Promise((resolve, reject) => {
      transport = new XMLHttpRequest();
      transport.open("POST", `${site.data.root}Import`);
      transport.setRequestHeader("Authorization", `Bearer ${token}`);
      transport.setRequestHeader("Content-Type", "application/json");
      transport.setRequestHeader("Accept-Language", site.data.language);
      transport.upload.onprogress = (event) => progress(event.loaded, event.total, t("progressUpload", { done: site.size(event.loaded), all: site.size(event.total) }));
      transport.upload.onload = () => progress(0, 0, t("progressWait", { count: site.number.format(objects.length) }));
      transport.onload = () => resolve(transport.responseText);
      transport.onerror = () => reject(new Error(t("noAnswer")));
      transport.onabort = () => resolve("");
      transport.send(body);
    });
    if (!text) return;
    const answer = JSON.parse(text);
    if (answer.error) { failed(0, objects, answer.error); return; }
    // In this mode the answers end with the object that failed; those behind it were never looked at.
    const unseen = { "@erpnet.result": "fail", "@erpnet.message": t("notReached") };
    take(objects.map((_, i) => answer.objects[i] || unseen), 0);
  }

  // --- results

  const isFailure = ({ answer }) => answer["@erpnet.result"] !== "success";

  function summarise() {
    const bad = results.filter(isFailure).length;
    $("summary").textContent = t("summary", { good: site.number.format(results.length - bad), bad: site.number.format(bad), all: site.number.format(objects.length) });
    $("download").hidden = !bad;
    $("results").hidden = false;
    const wanted = $("only-failures").checked ? results.filter(isFailure) : results;
    if (shown < ROWS_SHOWN) more(wanted);
    else showMoreButton(wanted);
  }

  function showMoreButton(wanted) {
    $("more").hidden = shown >= wanted.length;
    $("more").textContent = t("showMore", { count: site.number.format(wanted.length - shown) });
  }

  function more(wanted, most = ROWS_SHOWN) {
    const until = Math.min(wanted.length, most);
    for (; shown < until; shown++) $("rows").append(row(wanted[shown]));
    showMoreButton(wanted);
  }

  function row({ index, type, answer }) {
    const bad = isFailure({ answer });
    const error = answer["@erpnet.error"];
    const id = answer["@odata.id"];
    const told = error ? [el("span", {}, error.message), error.target ? [" ", el("code", {}, error.target)] : "", el("span", { class: "quiet" }, ` ${[error.code, error.type].filter(Boolean).join(" · ")}`)].flat() : [answer["@erpnet.message"] || ""];
    return el("tr", { class: bad ? "bad" : "good" }, el("td", {}, String(index)), el("td", {}, type), el("td", { class: bad ? "problem" : "good" }, bad ? t("resultFail") : STATES[answer["@erpnet.state"]] || STATES.Unchanged),
      el("td", {}, id ? el("a", { href: `${site.data.query}#GET%20${encodeURIComponent(id)}` }, id) : ""), el("td", {}, told));
  }

  async function run() {
    results = [];
    shown = 0;
    stopped = false;
    $("rows").replaceChildren();
    $("run").disabled = $("file").disabled = true;
    $("cancel").hidden = false;
    progress(0, objects.length, t("progressObjects", { done: 0, all: site.number.format(objects.length) }));
    try {
      await ($("transaction").value === "all-objects" ? allOrNone() : eachByItself());
      $("progress-text").textContent = stopped ? t("stopped") : t("finished");
      if (!stopped) { $("progress").max = 1; $("progress").value = 1; }
    } catch (failure) {
      const error = failure.error || { message: failure.name === "TypeError" ? t("noAnswer") : failure.message };
      $("progress-text").textContent = error.message;
      if (error.signIn) tell(el("p", { class: "problem" }, error.message, " ", el("a", { class: "button", href: site.logInUrl() }, t("signIn"))));
    } finally {
      $("run").disabled = $("file").disabled = false;
      $("cancel").hidden = true;
      transport = null;
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    $("file").addEventListener("change", () => read($("file").files[0]));
    $("import").addEventListener("submit", (event) => { event.preventDefault(); if (objects.length) run(); });
    $("cancel").addEventListener("click", () => { stopped = true; if (transport) transport.abort(); });
    $("only-failures").addEventListener("change", () => { shown = 0; $("rows").replaceChildren(); summarise(); });
    $("more").addEventListener("click", () => { const wanted = $("only-failures").checked ? results.filter(isFailure) : results; more(wanted, shown + ROWS_SHOWN); });
    $("download").addEventListener("click", () => {
      const bad = results.filter(isFailure);
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
