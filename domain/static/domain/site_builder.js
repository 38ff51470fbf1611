// The query builder: choose a set, columns, conditions and order; the address grows, the rows come as a table.
"use strict";
(() => {
  const { $, t, el } = site;
  const COLUMNS_SHOWN = 400;
  let model = null, set = null;
  const chosen = new Map(); // path of a column → true
  const conditions = []; // {path, operator, value}
  const orders = []; // {path, direction}

  // Type → the operators that fit, in the order offered.
  const TEXT = ["contains", "startswith", "endswith", "eq", "ne", "isnull", "notnull"];
  const NUMBER = ["eq", "ne", "gt", "ge", "lt", "le", "isnull", "notnull"];
  const OPERATORS = {
    "Edm.String": TEXT, "Erp.MultilanguageString": ["contains"], "Edm.Boolean": ["eq"], "Edm.Int32": NUMBER, "Edm.Decimal": NUMBER, "Edm.Date": NUMBER,
    "Edm.DateTimeOffset": NUMBER, "Edm.Guid": ["eq", "ne"], "Erp.Amount": NUMBER, "Erp.Quantity": NUMBER, enum: ["eq", "ne", "in", "isnull", "notnull"],
    state: ["eq", "ne", "ge", "le", "in"], reference: ["eq", "contains", "isnull", "notnull"], "Edm.Binary": ["isnull", "notnull"], custom: ["eq", "ne", "isnull", "notnull"],
  };
  const NAMES = { contains: t("opContains"), startswith: t("opStartswith"), endswith: t("opEndswith"), eq: t("opEq"), ne: t("opNe"), gt: t("opGt"), ge: t("opGe"), lt: t("opLt"), le: t("opLe"), in: t("opIn"), isnull: t("opIsnull"), notnull: t("opNotnull") };

  /** Columns of a set, and of what it refers to, one step away: [{path, kind, attribute?, target?, custom?}]. */
  function columns() {
    const own = site.completion.members(set).map((member) => ({ ...member, path: member.label }));
    const away = own.filter((member) => member.kind === "reference").flatMap((reference) =>
      site.completion.members(model.sets.get(reference.target)).filter((member) => member.kind === "property" && !member.custom).map((member) => ({ ...member, path: `${reference.label}/${member.label}` })));
    return [...own, ...away];
  }
  let all = [];
  const column = (path) => all.find((known) => known.path === path);
  function kind(known) {
    if (known.kind === "reference") return "reference";
    if (known.custom) return "custom";
    if (known.attribute.members) return /State$/.test(known.attribute.type) ? "state" : "enum";
    return known.attribute.type;
  }

  // --- the address

  const text = (value) => `'${value.replace(/'/g, "''")}'`;
  function literal(type, value) {
    if (["Edm.Int32", "Edm.Decimal", "Erp.Amount", "Erp.Quantity", "Edm.Boolean", "Edm.Date", "Edm.Guid"].includes(type)) return value.trim() || "null";
    if (type === "Edm.DateTimeOffset") return value ? new Date(value).toISOString().replace(".000", "") : "null";
    return text(value);
  }
  function condition({ path, operator, value }) {
    const known = column(path);
    if (!known) return "";
    const type = kind(known);
    const left = type === "Erp.Amount" || type === "Erp.Quantity" ? `${path}Value` : path;
    if (operator === "isnull") return `${path} eq null`;
    if (operator === "notnull") return `${path} ne null`;
    if (value === "" || Array.isArray(value) && !value.length) return "";
    if (["contains", "startswith", "endswith"].includes(operator)) return `${operator}(${path},${text(value)})`;
    if (operator === "in") return `${path} in (${[].concat(value).map(text).join(",")})`;
    return `${left} ${operator} ${literal(type, String(value))}`;
  }

  /** The address, as people read it. */
  function address() {
    if (!set) return "";
    const own = [], expanded = new Map();
    for (const path of chosen.keys()) {
      const known = column(path);
      if (!known) continue;
      const [first, inner] = path.split("/");
      if (inner || known.kind === "collection") { if (!expanded.has(first)) expanded.set(first, []); if (inner) expanded.get(first).push(inner); }
      else own.push(path);
    }
    const parts = [];
    const selected = [...own, ...[...expanded.keys()].filter((name) => !own.includes(name) && own.length)];
    if (own.length) parts.push(`$select=${selected.join(",")}`);
    if (expanded.size) parts.push(`$expand=${[...expanded].map(([name, inner]) => (inner.length ? `${name}($select=${inner.join(",")})` : name)).join(",")}`);
    const filters = conditions.map(condition).filter(Boolean);
    if (filters.length) parts.push(`$filter=${filters.join(` ${$("filter-join").value} `)}`);
    const by = orders.filter(({ path }) => column(path)).map(({ path, direction }) => path + (direction === "desc" ? " desc" : ""));
    if (by.length) parts.push(`$orderby=${by.join(",")}`);
    if ($("top").value) parts.push(`$top=${$("top").value}`);
    if (Number($("skip").value)) parts.push(`$skip=${$("skip").value}`);
    if ($("count").checked) parts.push("$count=true");
    return set.name + (parts.length ? `?${parts.join("&")}` : "");
  }

  function update() {
    const now = address();
    $("address").textContent = now ? `GET ${now}` : "";
    $("open-query").href = `${site.data.query}#GET%20${encodeURIComponent(now)}`;
    site.tab.set("builder", { set: set && set.name, chosen: [...chosen.keys()], conditions, orders, join: $("filter-join").value, top: $("top").value, skip: $("skip").value, count: $("count").checked });
  }

  // --- the form

  function showColumns() {
    const wanted = $("column-search").value.toLowerCase();
    const groups = new Map();
    let shown = 0;
    for (const known of all) {
      if (!known.path.toLowerCase().includes(wanted) && !chosen.has(known.path)) continue;
      if (++shown > COLUMNS_SHOWN) break;
      const group = known.path.includes("/") ? known.path.split("/")[0] : "";
      if (!groups.has(group)) groups.set(group, []);
      const box = el("input", { type: "checkbox", checked: chosen.has(known.path) });
      box.addEventListener("change", () => { if (box.checked) chosen.set(known.path, true); else chosen.delete(known.path); update(); });
      groups.get(group).push(el("label", { class: "choice" }, box, " ", el("span", {}, known.label), " ", el("span", { class: "quiet" }, known.detail)));
    }
    $("columns").replaceChildren(...[...groups].map(([group, boxes]) => {
      if (!group) return el("div", { class: "boxes" }, boxes);
      const open = Boolean(wanted) || [...chosen.keys()].some((path) => path.startsWith(`${group}/`));
      return el("details", { open }, el("summary", {}, `${group} → ${column(group).target}`), el("div", { class: "boxes" }, boxes));
    }));
  }

  function pathChoice(value, label, fits, onChoose) {
    const select = el("select", { "aria-label": label });
    const own = el("optgroup", { label: set.name });
    const groups = new Map([["", own]]);
    for (const known of all.filter(fits)) {
      const group = known.path.includes("/") ? known.path.split("/")[0] : "";
      if (!groups.has(group)) groups.set(group, el("optgroup", { label: group }));
      groups.get(group).append(el("option", { value: known.path, selected: known.path === value }, known.path));
    }
    select.append(...groups.values());
    select.addEventListener("change", () => onChoose(select.value));
    return select;
  }

  function valueInput(entry) {
    const known = column(entry.path);
    const type = kind(known);
    const label = t("value");
    if (entry.operator === "isnull" || entry.operator === "notnull") return "";
    const set = (value) => { entry.value = value; update(); };
    if (known.attribute && known.attribute.members) {
      const many = entry.operator === "in";
      const select = el("select", { "aria-label": label, multiple: many, size: many ? 4 : false });
      for (const name of Object.keys(known.attribute.members)) select.append(el("option", { selected: [].concat(entry.value).includes(name) }, name));
      select.addEventListener("change", () => set(many ? [...select.selectedOptions].map((option) => option.value) : select.value));
      if (!many && !entry.value) entry.value = select.value;
      return select;
    }
    if (type === "Edm.Boolean") {
      const select = el("select", { "aria-label": label }, ["true", "false"].map((value) => el("option", { selected: value === entry.value }, value)));
      select.addEventListener("change", () => set(select.value));
      if (!entry.value) entry.value = "true";
      return select;
    }
    const types = { "Edm.Int32": "number", "Edm.Decimal": "number", "Erp.Amount": "number", "Erp.Quantity": "number", "Edm.Date": "date", "Edm.DateTimeOffset": "datetime-local" };
    const input = el("input", { type: types[type] || "text", step: types[type] === "number" ? "any" : false, "aria-label": label, placeholder: type === "reference" && entry.operator === "eq" ? `${known.target}(…)` : false, value: entry.value });
    input.addEventListener("input", () => set(input.value));
    return input;
  }

  const remove = (list, entry, show) => el("button", { type: "button", class: "secondary small", "aria-label": t("remove"), onclick: () => { list.splice(list.indexOf(entry), 1); show(); update(); } }, "×");

  function showConditions() {
    $("filters").replaceChildren(...conditions.map((entry) => {
      const operators = OPERATORS[kind(column(entry.path))] || ["eq", "ne"];
      if (!operators.includes(entry.operator)) { entry.operator = operators[0]; entry.value = ""; }
      const operator = el("select", { "aria-label": t("operator") }, operators.map((name) => el("option", { value: name, selected: name === entry.operator }, NAMES[name])));
      operator.addEventListener("change", () => { entry.operator = operator.value; showConditions(); update(); });
      const path = pathChoice(entry.path, t("column"), (known) => known.kind !== "collection", (value) => { entry.path = value; entry.value = ""; showConditions(); update(); });
      return el("div", { class: "condition" }, path, operator, valueInput(entry), remove(conditions, entry, showConditions));
    }));
    update();
  }

  function showOrders() {
    $("orders").replaceChildren(...orders.map((entry) => {
      const direction = el("select", { "aria-label": t("direction") }, [["asc", t("ascending")], ["desc", t("descending")]].map(([value, label]) => el("option", { value, selected: value === entry.direction }, label)));
      direction.addEventListener("change", () => { entry.direction = direction.value; update(); });
      const path = pathChoice(entry.path, t("column"), (known) => known.kind === "property", (value) => { entry.path = value; update(); });
      return el("div", { class: "condition" }, path, direction, remove(orders, entry, showOrders));
    }));
  }

  function choose(name, kept = null) {
    const found = model.sets.get(name.trim());
    $("set-problem").textContent = name.trim() && !found ? t("noSuchSet") : "";
    $("parts").hidden = !found;
    if (!found) { set = null; update(); return; }
    if (set === found && !kept) return;
    set = found;
    all = columns();
    chosen.clear();
    conditions.length = orders.length = 0;
    for (const path of (kept && kept.chosen) || []) if (column(path)) chosen.set(path, true);
    conditions.push(...((kept && kept.conditions) || []).filter((entry) => column(entry.path)));
    orders.push(...((kept && kept.orders) || []).filter((entry) => column(entry.path)));
    showColumns();
    showConditions();
    showOrders();
    update();
  }

  // --- running

  async function run(path) {
    const asked = { method: "GET", path };
    $("answer").setAttribute("aria-busy", "true");
    $("run").disabled = true;
    try { site.answer.show($("answer"), await site.send(asked), asked, run, "table"); }
    catch (failure) { site.answer.showFailure($("answer"), failure, asked); }
    finally { $("run").disabled = false; }
  }

  document.addEventListener("DOMContentLoaded", async () => {
    $("builder").addEventListener("submit", (event) => { event.preventDefault(); if (set) run(site.encoded(address())); else $("set").focus(); });
    for (const id of ["filter-join", "top", "skip", "count"]) $(id).addEventListener("input", update);
    $("set").addEventListener("input", () => { if (model && model.sets.has($("set").value.trim())) choose($("set").value); });
    $("set").addEventListener("change", () => model && choose($("set").value));
    $("column-search").addEventListener("input", showColumns);
    $("filter-add").addEventListener("click", () => { conditions.push({ path: (all.find((known) => known.path === set.codeMember) || all.find((known) => known.kind === "property")).path, operator: "", value: "" }); showConditions(); $("filters").lastElementChild.querySelector("select").focus(); });
    $("order-add").addEventListener("click", () => { orders.push({ path: all.find((known) => known.kind === "property").path, direction: "asc" }); showOrders(); update(); $("orders").lastElementChild.querySelector("select").focus(); });
    $("copy-url").addEventListener("click", () => site.copy(site.data.publicRoot + site.encoded(address())));
    model = await site.model();
    $("sets").append(...[...model.sets.keys()].map((name) => el("option", { value: name })));
    // "?GET+~/Crm_Sales_Customers?…" is a link of the reference platform.
    const linked = /^\?GET(?:\+|%20)(?:~|%7E)?\/?(\w+)/i.exec(location.search);
    const asked = decodeURIComponent(location.hash.slice(1)) || (linked ? linked[1] : "");
    const kept = site.tab.get("builder", null);
    if (asked && model.sets.has(asked)) { $("set").value = asked; choose(asked); }
    else if (kept && kept.set && model.sets.has(kept.set)) {
      $("set").value = kept.set;
      $("filter-join").value = kept.join; $("top").value = kept.top; $("skip").value = kept.skip; $("count").checked = kept.count;
      choose(kept.set, kept);
    }
    document.documentElement.dataset.model = "ready";
    // Once a session is open anyway, custom properties are offered as well; what is chosen stays.
    document.addEventListener("site:called", () => site.ownModel().then((own) => {
      model = own;
      if (!set || !own.sets.has(set.name)) return;
      set = own.sets.get(set.name);
      all = columns();
      showColumns();
      showConditions();
      showOrders();
    }, () => {}), { once: true });
  });
})();
