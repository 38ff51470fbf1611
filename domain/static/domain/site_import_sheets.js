// Spreadsheets on the import page (spec 11, 11.2). The service reads them: it tells which attribute each column sets, and what each
// of the first rows would do. The mapping is what import_data takes as --mapping.
"use strict";
site.spreadsheets = (() => {
  const { $, t, el } = site;
  const PREVIEWED = 20, STEP = 500, STEPS = 10, COLUMNS_MOST = 50;
  const MEDIA = { csv: "text/csv", xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" };

  let book = null; // {file, media, mapping, sheets: name → sheet of a preview, rows}
  let grid = null, model = null, asked = 0, told = () => {};

  const ending = (name) => name.split(".").pop().toLowerCase();
  const base = (name) => name.replace(/\.[^.]*$/, "");
  const isSheet = (file) => ending(file.name) in MEDIA;

  /** The path of Import with options in the query string. */
  const path = (options) => `Import?${new URLSearchParams({ ...options, mapping: JSON.stringify(book.mapping) })}`;
  const request = (options) => ({ method: "POST", path: path(options), headers: { "Content-Type": book.media }, body: book.file });

  /** The part of the mapping that is about a sheet; that of a CSV file is the mapping itself. */
  function mapped(name) {
    if (!name) return book.mapping;
    book.mapping.sheets = book.mapping.sheets || {};
    return book.mapping.sheets[name] = book.mapping.sheets[name] || {};
  }

  /** Take a file. `tell(ready)` is called after each preview. */
  async function open(file, tell) {
    told = tell;
    model = await site.model();
    book = { file, media: MEDIA[ending(file.name)], mapping: {}, sheets: new Map(), rows: 0 };
    const wanted = base(file.name).replace(/ ?\(\d{1,4}\)$/, "").toLowerCase(); // a browser's second copy
    const named = [...model.sets.keys()].find((name) => name.toLowerCase() === wanted);
    if (book.media === MEDIA.csv && named) book.mapping.repository = named;
    $("sheets").replaceChildren();
    showSaved();
    await preview();
  }

  function close() { book = null; asked++; $("mapping").hidden = true; }

  async function preview() {
    const mine = ++asked;
    told(false, t("reading", { name: book.file.name, size: site.size(book.file.size) }));
    let body;
    try {
      const answer = await site.send(request({ preview: PREVIEWED, model: $("import-model").value }));
      body = JSON.parse(answer.text);
      if (answer.status >= 400) throw new site.Refused(body.error);
    } catch (failure) {
      const { type, message, parameters, signIn } = failure.error || {};
      // Of "The body cannot be used: sheet …, row …", what people sent is no body.
      if (mine === asked) told(false, (type === "InvalidBody" ? parameters[0] : message) || t("noAnswer"), true, signIn);
      return;
    }
    if (mine !== asked) return; // another preview is on its way
    book.rows = body.rows || 0;
    for (const sheet of body.sheets) book.sheets.set(sheet.name, sheet);
    const problems = body.sheets.flatMap((sheet) => [sheet.problem, ...sheet.columns.map(({ problem }) => problem)]).filter(Boolean);
    show();
    await showRows(body.objects);
    const isReady = !problems.length && book.rows > 0;
    told(isReady, isReady ? t("rowsRead", { count: site.number.format(book.rows) }) : problems.length ? problems.join("\n") : t("noRows"), !isReady);
  }

  // --- the mapping

  function show() {
    const focused = document.activeElement && document.activeElement.id;
    $("mapping").hidden = false;
    $("empty").value = book.mapping.empty || "keep";
    $("set-names").replaceChildren(...[...model.sets.keys()].map((name) => el("option", { value: name })));
    $("sheets").replaceChildren(...[...book.sheets.values()].map(sheetFields));
    if (focused && $(focused)) $(focused).focus();
  }

  function sheetFields(sheet, number) {
    const id = `sheet-${number}`;
    const isLeftOut = book.mapping.sheets && book.mapping.sheets[sheet.name] === null;
    const set = model.sets.get(sheet.repository);
    const names = site.members(set).filter(({ kind, attribute }) => kind !== "collection" && !(attribute && attribute.readOnly)).map(({ label }) => label);
    const repository = el("input", { id: `${id}-set`, list: "set-names", autocomplete: "off", onchange: (event) => choose(sheet, event.target.value.trim()) });
    repository.value = sheet.repository || "";
    const choice = el("input", { type: "checkbox", id: `${id}-in`, onchange: (event) => include(sheet, event.target.checked) });
    choice.checked = !isLeftOut;
    return el("fieldset", {},
      el("legend", {}, sheet.name || book.file.name),
      sheet.name ? el("p", {}, el("label", { class: "choice" }, choice, " ", t("importSheet"))) : [],
      isLeftOut ? [] : [
        el("div", { class: "fields" }, el("div", { class: "row" }, el("label", { for: `${id}-set` }, t("set")), repository)),
        el("datalist", { id: `${id}-names` }, names.map((name) => el("option", { value: name }))),
        sheet.repository ? el("div", { class: "fields" }, sheet.columns.map((column, place) => columnField(sheet, column, `${id}-${place}`, `${id}-names`))) : [],
      ]);
  }

  function columnField(sheet, column, id, list) {
    const part = sheet.name ? (book.mapping.sheets || {})[sheet.name] || {} : book.mapping;
    const known = (part.columns || {})[column.header];
    const input = el("input", { id, list, autocomplete: "off", placeholder: t("leftOut"), "aria-invalid": column.problem ? "true" : null, onchange: (event) => map(sheet, column.header, event.target.value.trim()) });
    input.value = column.attribute || (known === undefined || known === null ? "" : known);
    return el("div", { class: "row" }, el("label", { for: id }, column.header), input, 
      column.problem ? [el("p", { class: "problem" }, column.problem), el("button", { type: "button", class: "secondary", onclick: () => map(sheet, column.header, "") }, t("leaveOut"))] : []);
  }

  function choose(sheet, name) {
    const part = mapped(sheet.name);
    if (name) part.repository = name; else delete part.repository;
    delete part.columns;
    return preview();
  }

  function include(sheet, isIncluded) {
    book.mapping.sheets = book.mapping.sheets || {};
    if (isIncluded) delete book.mapping.sheets[sheet.name]; else book.mapping.sheets[sheet.name] = null;
    return preview();
  }

  function map(sheet, header, name) {
    const part = mapped(sheet.name);
    part.repository = part.repository || sheet.repository;
    part.columns = { ...part.columns, [header]: name || null };
    return preview();
  }

  async function load(file) {
    let mapping = null;
    try { mapping = JSON.parse(await file.text()); } catch { /* told below */ }
    if (!mapping || typeof mapping !== "object") { told(false, t("noMapping"), true); return; }
    await use(mapping);
  }

  function use(mapping) {
    book.mapping = structuredClone(mapping);
    book.sheets = new Map();
    return preview();
  }

  // --- saved mappings: one's own, and those that others share

  let saved = [];

  /** Only people who are signed in have mappings; a pasted token has none. */
  async function showSaved(chosen = "") {
    const response = await site.ask("GET", site.data.mappings);
    $("saved-mappings").hidden = !response.ok;
    if (!response.ok) return;
    saved = await response.json();
    $("mapping-choice").replaceChildren(el("option", { value: "" }, "–"), ...saved.map(({ id, name, owner, isShared }) => el("option", { value: id }, owner !== site.data.login ? `${name} (${owner})` : isShared ? `${name} (${t("shared")})` : name)));
    $("mapping-choice").value = chosen;
    showDelete();
  }

  const chosen = () => saved.find(({ id }) => id === $("mapping-choice").value);
  function showDelete() { $("mapping-delete").hidden = !chosen() || chosen().owner !== site.data.login; }

  async function choosing() {
    showDelete();
    if (!chosen()) return;
    $("mapping-name").value = chosen().owner === site.data.login ? chosen().name : "";
    $("mapping-shared").checked = chosen().owner === site.data.login && chosen().isShared;
    await use(chosen().mapping);
  }

  async function save() {
    if (!$("mapping-name").reportValidity()) return;
    const response = await site.ask("POST", site.data.mappings, { name: $("mapping-name").value, mapping: book.mapping, isShared: $("mapping-shared").checked });
    const body = await response.json();
    if (!response.ok) { site.announce(body.error.message, true); return; }
    await showSaved(body.id);
    site.announce(t("saved"), true);
  }

  async function remove() {
    await site.ask("DELETE", `${site.data.mappings}/${chosen().id}`);
    await showSaved();
    $("mapping-choice").focus();
    site.announce(t("deleted"), true);
  }

  // --- what each of the first rows would do

  async function showRows(answers) {
    if (grid) (await grid).destroy();
    grid = null;
    $("preview").hidden = !answers.length;
    if (!answers.length) return;
    const states = { Added: t("resultAdded"), Modified: t("resultModified"), Deleted: t("resultDeleted"), Unchanged: t("resultUnchanged") };
    const state = (cell) => el("span", { class: cell.getData().isFailure ? "problem" : "good" }, cell.getValue());
    const counts = new Map(), headers = [];
    for (const { "@erpnet.state": name, "@erpnet.error": error } of answers) counts.set(error ? t("resultFail") : states[name], (counts.get(error ? t("resultFail") : states[name]) || 0) + 1);
    $("preview-counts").textContent = [...counts].map(([name, count]) => `${site.number.format(count)} ${name}`).join(" · ");
    grid = site.grid($("preview-rows"), t("previewRows"), {
      data: answers.map((answer, index) => {
        const { sheet, row, cells } = answer["@erpnet.source"], error = answer["@erpnet.error"];
        for (const header of Object.keys(cells)) if (!headers.includes(header)) headers.push(header);
        const values = Object.fromEntries(headers.map((header, place) => [`cell${place}`, cells[header] || ""]));
        return { id: index, row: sheet ? `${sheet} ${row}` : String(row), isFailure: Boolean(error), state: error ? t("resultFail") : states[answer["@erpnet.state"]], message: error ? error.message : answer["@erpnet.message"] || "", ...values };
      }),
      columns: [{ title: "#", field: "row" }, { title: t("result"), field: "state", formatter: state }, { title: t("message"), field: "message", formatter: "textarea", visible: answers.some((answer) => answer["@erpnet.error"] || answer["@erpnet.message"]), maxInitialWidth: 360 },
        ...headers.slice(0, COLUMNS_MOST).map((header, place) => ({ title: header, field: `cell${place}`, maxInitialWidth: 240 }))],
    });
    await grid;
  }

  // --- files

  const cell = (text) => `"${site.neutral(text).replace(/"/g, '""')}"`;
  const csv = (rows) => `\ufeff${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;

  /** The refused rows as they were, with the error in a column of its own: a file for each sheet. */
  function downloadRefused(answers) {
    const bySheet = new Map();
    for (const answer of answers) {
      const source = answer["@erpnet.source"];
      if (!source) continue;
      if (!bySheet.has(source.sheet)) bySheet.set(source.sheet, [[...Object.keys(source.cells), "Error"]]);
      const error = answer["@erpnet.error"];
      bySheet.get(source.sheet).push([...Object.values(source.cells), error ? error.message : answer["@erpnet.message"] || ""]);
    }
    for (const [name, rows] of bySheet) site.download(`${[base(book.file.name), name].filter(Boolean).join("-")}-failures.csv`, csv(rows), "text/csv");
  }

  async function downloadTemplate(kind) {
    const set = (await site.model()).sets.get($("template-set").value.trim());
    $("template-set").setCustomValidity(set ? "" : t("noSuchSet"));
    if (!$("template-set").reportValidity()) return;
    try { await site.downloadFrom(`${site.data.exports}${set.name}.${kind}?template`); } catch (failure) { site.announce(failure.name === "TypeError" ? t("noAnswer") : failure.message, true); }
  }

  document.addEventListener("DOMContentLoaded", () => {
    $("mapping-choice").addEventListener("change", choosing);
    $("mapping-save").addEventListener("click", save);
    $("mapping-delete").addEventListener("click", remove);
    $("mapping-download").addEventListener("click", () => site.download(`${base(book.file.name)}-mapping.json`, JSON.stringify(book.mapping, null, 2)));
    $("mapping-load").addEventListener("change", (event) => { if (event.target.files[0]) load(event.target.files[0]); event.target.value = ""; });
    $("empty").addEventListener("change", () => { book.mapping.empty = $("empty").value; preview(); });
    for (const kind of ["csv", "xlsx"]) $(`template-${kind}`).addEventListener("click", () => downloadTemplate(kind));
    $("template-set").addEventListener("input", () => $("template-set").setCustomValidity(""));
    $("template-set").addEventListener("focus", async () => {
      const { sets } = await site.model();
      $("set-names").replaceChildren(...[...sets.keys()].map((name) => el("option", { value: name })));
    });
  });

  return { isSheet, open, close, request, path, downloadRefused, rows: () => book.rows, media: () => book.media, file: () => book.file, step: () => Math.max(STEP, Math.ceil(book.rows / STEPS)) };
})();
