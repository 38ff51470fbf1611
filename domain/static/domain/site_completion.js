// What may be typed next in an OData address, from the model; and the list under the field where it is chosen.
"use strict";
site.completion = (() => {
  const { t } = site;
  const OPTIONS = {
    $select: t("optSelect"), $filter: t("optFilter"), $expand: t("optExpand"), $orderby: t("optOrderby"), $top: t("optTop"), $skip: t("optSkip"), $count: t("optCount"),
    $search: t("optSearch"), $apply: t("optApply"), $compute: t("optCompute"), $format: t("optFormat"), $levels: t("optLevels"), options: t("optOptions"),
  };
  const TOP_ONLY = new Set(["$format", "options"]);
  const COMPARISONS = ["eq", "ne", "gt", "ge", "lt", "le", "in"];
  const ARITHMETIC = ["add", "sub", "mul", "div", "divby", "mod"];
  const TRANSFORMATIONS = ["aggregate", "groupby", "filter", "orderby", "top", "skip", "search", "compute", "concat", "identity", "topcount", "bottomcount", "topsum", "bottomsum", "toppercent", "bottompercent"];
  const METHODS = ["sum", "min", "max", "average", "countdistinct"];
  const MOST = 60;

  // --- the model's members. A scope is {set, variables: {name: set}}; the set is null where nothing is known.

  const shown = (type) => (type || "").replace(/^Edm\./, "");
  function members(set) {
    if (!set) return [];
    return [
      ...set.attributes.map((a) => ({ label: a.name, detail: shown(a.type) + (a.required ? " *" : ""), kind: "property", attribute: a })),
      ...set.references.map((r) => ({ label: r.name, detail: `→ ${r.entitySet}`, kind: "reference", target: r.entitySet })),
      ...set.collections.map((c) => ({ label: c.name, detail: `→ ${c.entitySet} [ ]`, kind: "collection", target: c.entitySet })),
      ...set.customProperties.map((c) => ({ label: c.name, detail: c.propertyType, kind: "property", custom: c })),
    ];
  }
  const find = (set, name) => members(set).find((member) => member.label === name);

  /** The set behind a path of references and collections; undefined for a wrong one. */
  function walk(model, scope, steps) {
    let set = scope.set;
    for (const [i, step] of steps.entries()) {
      if (i === 0 && step in scope.variables) { set = scope.variables[step]; continue; }
      if (i === 0 && step === "$it") { set = scope.root; continue; }
      const cast = model.byType.get(step);
      if (cast) { set = cast; continue; }
      const member = find(set, step);
      if (!member || !member.target) return undefined;
      set = model.sets.get(member.target);
    }
    return set;
  }

  /** Members behind the last "/" of a partial path. */
  function pathItems(model, scope, word, { collections = true, more = () => [] } = {}) {
    const steps = word.split("/");
    const partial = steps.pop();
    const set = walk(model, scope, steps);
    if (set === undefined) return [0, []];
    const last = steps.length ? find(walk(model, scope, steps.slice(0, -1)), steps[steps.length - 1]) : null;
    const items = last && last.kind === "collection" ? [] : members(set).filter((member) => collections || member.kind !== "collection");
    return [partial.length, [...items, ...more(last, steps)]];
  }

  const word = (text) => /[\w@$./]*$/.exec(text)[0];
  const item = (label, detail = "", kind = "word", insert = label, back = 0) => ({ label, detail, kind, insert, back });
  const insertable = (member) => ({ ...member, insert: member.label });

  /** Items that fit what is typed of the word: those that begin with it first, then those that contain it. */
  function narrowed(text, length, items) {
    const partial = text.slice(text.length - length);
    const low = partial.toLowerCase();
    const unique = new Map();
    for (const known of items) {
      const at = known.label.toLowerCase().indexOf(low);
      if (at >= 0 && !unique.has(known.label)) unique.set(known.label, { known, rank: at === 0 ? 0 : /[_.$]/.test(known.label[at - 1]) ? 1 : 2 });
    }
    // Members stay in the model's order; of sets the shortest name is the most likely one.
    const found = [...unique.values()].sort((a, b) => a.rank - b.rank || (a.known.kind === "set" && b.known.kind === "set" ? a.known.label.length - b.known.label.length : 0)).map(({ known }) => known);
    if (found.length === 1 && found[0].insert === partial) return { length, items: [] };
    return { length, items: found.slice(0, MOST) };
  }

  // --- values of options

  /** The text behind the last separator that stands outside quotes and parentheses. */
  function lastPart(text, separators) {
    let depth = 0, quoted = false, from = 0;
    for (let i = 0; i < text.length; i++) {
      if (text[i] === "'") quoted = !quoted;
      else if (quoted) continue;
      else if (text[i] === "(") depth++;
      else if (text[i] === ")") depth = Math.max(0, depth - 1);
      else if (depth === 0 && separators.includes(text[i])) from = i + 1;
    }
    return text.slice(from);
  }

  /** Where the first parenthesis opens that is not closed again, or -1. */
  function openAt(text) {
    const stack = [];
    let quoted = false;
    for (let i = 0; i < text.length; i++) {
      if (text[i] === "'") quoted = !quoted;
      else if (quoted) continue;
      else if (text[i] === "(") stack.push(i);
      else if (text[i] === ")") stack.pop();
    }
    return stack.length ? stack[0] : -1;
  }

  function values(model, member) {
    const attribute = member && member.attribute;
    if (!attribute) return member && member.custom ? (member.custom.allowedValues || []).map((value) => item(`'${typeof value === "object" ? value.Value ?? value.value : value}'`, "", "value")) : [];
    if (attribute.members) return Object.entries(attribute.members).map(([name, number]) => item(`'${name}'`, String(number), "value"));
    if (attribute.type === "Edm.Boolean") return [item("true", "", "value"), item("false", "", "value")];
    if (attribute.type === "Edm.Date") return [item(new Date().toISOString().slice(0, 10), t("today"), "value"), item("date(now())", "", "function")];
    if (attribute.type === "Edm.DateTimeOffset") return [item(new Date().toISOString().slice(0, 19) + "Z", t("now"), "value"), item("now()", "", "function")];
    return [];
  }

  function functions() {
    return site.data.functions.map(({ name, least, most }) => item(name, most ? `${least === most ? least : `${least}–${most}`} ${t("arguments")}` : "", "function", most ? `${name}()` : `${name}()`, most ? 1 : 0));
  }

  /** Inside $filter, $compute and the like. */
  function expression(model, scope, text) {
    const variables = { ...scope.variables };
    const here = { ...scope, variables };
    const pattern = /'(?:[^']|'')*'?|[\w@$./]+(?:\((?=\w+:))?|[(),:]|\s+|./gy;
    let previous = null, left = null, found;
    while ((found = pattern.exec(text))) {
      const [token] = found;
      const isLast = pattern.lastIndex === text.length;
      if (/^\s+$/.test(token)) continue;
      if (isLast && token[0] === "'" && !(token.length > 1 && token.endsWith("'"))) break;
      if (isLast && /^[\w@$./]+$/.test(token)) break;
      if (/^[\w@$./]+\($/.test(token)) {
        const steps = token.slice(0, -1).split("/");
        steps.pop();
        const variable = /(\w+):/y;
        variable.lastIndex = pattern.lastIndex;
        const name = variable.exec(text);
        const target = walk(model, here, steps);
        if (name) { variables[name[1]] = target || null; pattern.lastIndex = variable.lastIndex; }
        previous = "(";
      } else if (token === "(") { if (previous !== "comparison") { previous = "("; left = null; } }
      else if (token === ")") previous = "operand";
      else if (token === ",") previous = ",";
      else if (COMPARISONS.includes(token) || token === "has") previous = "comparison";
      else if (ARITHMETIC.includes(token) || token === "-") previous = "operator";
      else if (["and", "or", "not"].includes(token)) { previous = "logic"; left = null; }
      else if (/^[A-Za-z_$@]/.test(token)) {
        const steps = token.split("/");
        const last = steps.pop();
        const member = find(walk(model, here, steps), last);
        if (member) left = member;
        previous = "operand";
      } else previous = "operand";
    }
    const typed = /'(?:[^']|'')*$/.exec(text.replace(/'(?:[^']|'')*'/g, (all) => "_".repeat(all.length)));
    if (typed) return narrowed(text, typed[0].length, values(model, left).filter((value) => value.label.startsWith("'")));
    const partial = word(text);
    const startsOperand = partial === "" || !/\s$/.test(text);
    if (previous === "operand" && startsOperand && (partial === "" ? /\s$/.test(text) : true)) {
      const operators = [...COMPARISONS, "and", "or", ...ARITHMETIC, ...(left && left.attribute && left.attribute.members ? ["has"] : [])];
      return narrowed(text, partial.length, operators.map((name) => item(name, "", "operator", `${name} `)));
    }
    if (previous === "operand") return { length: 0, items: [] };
    const [length, items] = pathItems(model, here, partial, {
      more: (last, steps) => {
        if (last && last.kind === "collection") return [item("any", "", "function", `any(${steps[steps.length - 1][0].toLowerCase()}:)`, 1), item("all", "", "function", `all(${steps[steps.length - 1][0].toLowerCase()}:)`, 1), item("$count", "", "function")];
        return [];
      },
    });
    const first = !partial.includes("/");
    const known = items.map((member) => (member.kind === "collection" ? { ...member, insert: `${member.label}/` } : insertable(member)));
    const wanted = previous === "comparison" || previous === "," ? values(model, left) : [];
    const rest = first ? [...Object.keys(variables).map((name) => item(name, variables[name] ? variables[name].name : "", "variable")), ...(previous === "comparison" ? [item("null", "", "value")] : [item("not", "", "operator", "not ")]), ...functions()] : [];
    return narrowed(text, length, [...wanted, ...known, ...rest]);
  }

  function selection(model, scope, text) {
    const part = lastPart(text, ",").trimStart();
    const at = openAt(part);
    if (at >= 0) return options(model, { ...scope, set: walk(model, scope, part.slice(0, at).split("/")) || null }, part.slice(at + 1), true);
    const [length, items] = pathItems(model, scope, part);
    const rest = part.includes("/") ? [] : [item("default", t("defaults")), item("*", t("everything"))];
    return narrowed(text, length, [...items.map(insertable), ...rest]);
  }

  function expansion(model, scope, text) {
    const part = lastPart(text, ",").trimStart();
    const at = openAt(part);
    if (at >= 0) {
      const set = walk(model, scope, part.slice(0, at).split("/").filter((step) => !step.startsWith("$")));
      return options(model, { ...scope, set: set || null }, part.slice(at + 1), true);
    }
    const [length, items] = pathItems(model, scope, part, { more: (last) => (last ? [item("$ref"), item("$count")] : []) });
    return narrowed(text, length, items.filter((member) => member.kind !== "property").map(insertable));
  }

  function ordering(model, scope, text) {
    const part = lastPart(text, ",").trimStart();
    if (/^\S+\s+\w*$/.test(part)) return narrowed(text, word(text).length, [item("asc", t("ascending")), item("desc", t("descending"))]);
    const [length, items] = pathItems(model, scope, word(part), { collections: false });
    return narrowed(text, length, [...items.map(insertable), ...(part.includes("/") ? [] : functions())]);
  }

  function applying(model, scope, text) {
    const part = lastPart(text, "/");
    const at = openAt(part);
    if (at < 0) return narrowed(text, word(part).length, TRANSFORMATIONS.map((name) => item(name, "", "function", `${name}(${name === "groupby" ? "()" : ""})`, name === "groupby" ? 2 : 1)));
    const name = part.slice(0, at).trim();
    const inner = part.slice(at + 1);
    if (name === "filter" || name === "compute") return expression(model, scope, inner);
    if (name === "orderby") return ordering(model, scope, inner);
    if (name === "aggregate") {
      const one = lastPart(inner, ",").trimStart();
      if (/\swith\s+\w*$/.test(one)) return narrowed(text, word(text).length, METHODS.map((method) => item(method, "", "function", `${method} as `)));
      if (/^\S+\s+\w*$/.test(one)) return narrowed(text, word(text).length, [item("with", "", "operator", "with "), item("as", "", "operator", "as ")]);
      const [length, items] = pathItems(model, scope, one, { collections: false });
      return narrowed(text, length, [...items.map(insertable), item("$count", "", "function", "$count as ")]);
    }
    if (name === "groupby") {
      if (/^\s*\([^)]*$/.test(inner)) {
        const one = lastPart(inner.replace(/^\s*\(/, ""), ",").trimStart();
        const [length, items] = pathItems(model, scope, one, { collections: false });
        return narrowed(text, length, items.map(insertable));
      }
      return applying(model, scope, inner.replace(/^\s*\([^)]*\)\s*,?\s*/, ""));
    }
    return { length: 0, items: [] };
  }

  const READERS = { $select: selection, $expand: expansion, $filter: expression, $orderby: ordering, $apply: applying, $compute: expression };

  /** Options: at the top separated by "&", in parentheses of $expand and $select by ";". */
  function options(model, scope, text, nested) {
    const part = nested ? lastPart(text, ";") : site.options(text).pop();
    const equals = part.indexOf("=");
    if (equals < 0) {
      const used = new Set((nested ? text.split(";") : site.options(text)).map((option) => option.split("=")[0].trim()));
      const free = Object.keys(OPTIONS).filter((name) => !used.has(name) && (nested ? !TOP_ONLY.has(name) : name !== "$levels"));
      return narrowed(text, part.trimStart().length, free.map((name) => item(name, OPTIONS[name], "option", `${name}=`)));
    }
    const name = part.slice(0, equals).trim().toLowerCase();
    const value = part.slice(equals + 1);
    const reader = READERS[name.startsWith("$") ? name : `$${name}`];
    if (reader) return reader(model, { ...scope, root: scope.root || scope.set }, value);
    const fixed = { $count: ["true", "false"], $format: ["json", "application/json;odata.metadata=full", "application/json;odata.metadata=none"], options: ["skipnulls"], $top: ["10", "100"] }[name] || [];
    return narrowed(text, value.length, fixed.map((known) => item(known, "", "value")));
  }

  // --- the path

  /** The set that the path leads to, or null; `entity`: whether to one entity of it. */
  function resource(model, path) {
    const steps = path.split("/");
    const head = /^([\w.]+)(\(.*\))?$/.exec(steps[0] || "");
    let set = head ? model.sets.get(head[1]) : null;
    let entity = Boolean(head && head[2]);
    let member = null;
    for (const step of steps.slice(1)) {
      if (!set) break;
      if (model.byType.has(step)) { set = model.byType.get(step); continue; }
      const known = /^([\w.$]+)(\(.*\))?$/.exec(step);
      member = known && find(set, known[1]);
      if (!member || !member.target) { if (step && !step.startsWith("$")) set = null; continue; }
      set = model.sets.get(member.target) || null;
      entity = member.kind === "reference" || Boolean(known[2]);
    }
    return { set: set || null, entity };
  }

  const call = (operation) => `${operation.name}(${operation.isFunction ? operation.parameters.filter((p) => !p.optional).map((p) => `${p.name}=`).join(",") : ""})`;
  const signature = (operation) => `${operation.isFunction ? "GET" : "POST"} (${operation.parameters.map((p) => p.name + (p.optional ? "?" : "")).join(", ")})`;
  const operationItem = (operation) => item(operation.name, signature(operation), "operation", operation.isFunction ? call(operation) : operation.name, operation.isFunction && operation.parameters.some((p) => !p.optional) ? 1 : 0);

  function path(model, text) {
    const steps = text.split("/");
    const partial = steps.pop();
    if (!steps.length) {
      const unbound = model.operationDetails.filter((operation) => !operation.boundTo);
      return narrowed(text, partial.length, [
        ...[...model.sets.values()].map((set) => item(set.name, set.isDocument ? t("document") : "", "set")),
        ...unbound.map(operationItem), item("$metadata", "CSDL", "word"), item("$batch", "POST", "word"),
      ]);
    }
    if (partial.includes("(")) return { length: 0, items: [] };
    const { set, entity } = resource(model, steps.join("/"));
    if (!set) return { length: 0, items: [] };
    if (!entity) return narrowed(text, partial.length, [item("$count", t("optCount")), item("$query", "POST")]);
    return narrowed(text, partial.length, [...members(set).map(insertable), ...site.operationsOf(model, set).map(operationItem), item("$value"), item("$ref"), item("$count")]);
  }

  /** {length of what is typed of the word, items [{label, detail, kind, insert, back}]} for the text before the caret. */
  function complete(model, text) {
    const [resourcePath, query] = site.halves(text.replace(/\n/g, ""));
    if (query === null) return path(model, resourcePath);
    const { set } = resource(model, resourcePath.replace(/\/\$(count|query|ref)$/, ""));
    return options(model, { set, root: set, variables: {} }, query, false);
  }

  // --- the list

  /**
   * Give a textarea completions: `source(text before the caret)` → as `complete`. `enter()` is called for Enter when no
   * choice is marked. ARIA: a textbox whose list is named by aria-controls, the mark told by aria-activedescendant.
   */
  function attach(input, list, source, enter) {
    let found = { length: 0, items: [] };
    let marked = -1;
    const open = () => !list.hidden;

    function close() {
      list.hidden = true;
      marked = -1;
      input.removeAttribute("aria-activedescendant");
    }
    function mark(index) {
      const all = [...list.children];
      marked = index < 0 ? all.length - 1 : index % all.length;
      for (const [i, option] of all.entries()) option.setAttribute("aria-selected", String(i === marked));
      input.setAttribute("aria-activedescendant", all[marked].id);
      all[marked].scrollIntoView({ block: "nearest" });
    }
    function accept(index) {
      const chosen = found.items[index];
      const end = input.selectionStart;
      const start = end - found.length;
      // What follows of the same word is replaced with it.
      const rest = /^[\w$.]*/.exec(input.value.slice(end))[0];
      input.setRangeText(chosen.insert, start, end + (chosen.kind === "value" ? 0 : rest.length), "end");
      input.selectionStart = input.selectionEnd = start + chosen.insert.length - (chosen.back || 0);
      close();
      input.dispatchEvent(new Event("input", { bubbles: true }));
    }
    function update(forced = false) {
      if (input.selectionStart !== input.selectionEnd) { close(); return; }
      found = source(input.value.slice(0, input.selectionStart));
      if (!found.items.length) { close(); return; }
      list.replaceChildren(...found.items.map((known, i) => site.el("li", {
        id: `${list.id}-${i}`, role: "option", "aria-selected": "false", class: known.kind,
        onmousedown: (event) => { event.preventDefault(); accept(i); input.focus(); },
      }, site.el("span", { class: "label" }, known.label), " ", site.el("span", { class: "detail" }, known.detail || ""))));
      list.hidden = false;
      list.scrollTop = 0;
      // Nothing is marked before a word is begun: Enter then runs what is typed, and Tab leaves the field.
      if (found.length || forced) mark(0); else { marked = -1; input.removeAttribute("aria-activedescendant"); }
    }

    input.addEventListener("input", () => update());
    input.addEventListener("click", () => { if (open()) update(); });
    input.addEventListener("blur", close);
    input.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      const modified = event.ctrlKey || event.metaKey || event.altKey;
      if (event.key === " " && event.ctrlKey) { event.preventDefault(); update(true); }
      else if (open() && event.key === "ArrowDown") { event.preventDefault(); mark(marked + 1); }
      else if (open() && event.key === "ArrowUp") { event.preventDefault(); mark(marked - 1); }
      else if (open() && event.key === "Escape") { event.preventDefault(); close(); }
      else if (open() && marked >= 0 && !modified && !event.shiftKey && (event.key === "Enter" || event.key === "Tab")) { event.preventDefault(); accept(marked); }
      else if (event.key === "Enter") { event.preventDefault(); close(); enter(); }
      // The list scrolls, so it can have the focus, but it is worked from the field: the Tab key passes it.
      else if (event.key === "Tab") close();
    });
    list.addEventListener("mousedown", (event) => event.preventDefault());
    return { close };
  }

  return { complete, attach, members, find, resource };
})();
