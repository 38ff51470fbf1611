// What may be typed next in an OData address, from the model. The editor shows it, and narrows it to what is typed.
"use strict";
site.completion = (() => {
  const { t } = site;
  const COMPARISONS = ["eq", "ne", "gt", "ge", "lt", "le", "in"], LOGIC = ["and", "or"], ARITHMETIC = ["add", "sub", "mul", "div", "divby", "mod"];
  const TRANSFORMATIONS = ["aggregate", "groupby", "filter", "orderby", "top", "skip", "search", "compute", "concat", "identity", "topcount", "bottomcount", "topsum", "bottomsum", "toppercent", "bottompercent"];
  const SORTABLE = ["property", "reference"];
  const METHODS = ["sum", "min", "max", "average", "countdistinct"];
  const FIXED = { $count: ["true", "false"], $format: ["json", "application/json;odata.metadata=full", "application/json;odata.metadata=none"], options: ["skipnulls"], $top: ["10", "100"] };
  const OPTIONS = {
    $select: t("optSelect"), $filter: t("optFilter"), $expand: t("optExpand"), $orderby: t("optOrderby"), $top: t("optTop"), $skip: t("optSkip"), $count: t("optCount"),
    $search: t("optSearch"), $apply: t("optApply"), $compute: t("optCompute"), $format: t("optFormat"), $levels: t("optLevels"), options: t("optOptions"),
  };

  // `back`: how far from the end of what is inserted the caret stands.
  const item = (label, detail = "", kind = "word", insert = label, back = 0) => ({ label, detail, kind, insert, back });
  const all = (names, kind, insert = (name) => name, back = 0) => names.map((name) => item(name, "", kind, insert(name), back));
  const found = (text, partial, items) => ({ length: partial.length, items: items.map((known) => ({ insert: known.label, back: 0, ...known })) });
  const nothing = { length: 0, items: [] };
  const word = (text) => /[\w@$./]*$/.exec(text)[0];
  const functions = () => site.data.functions.map(({ name, least, most }) => item(name, most ? `${least === most ? least : `${least}–${most}`} ${t("arguments")}` : "", "function", `${name}()`, most ? 1 : 0));

  // A scope is {model, set, root, variables: {name: set}}; the set is null where nothing is known.

  /** The set behind a path of references and collections; undefined for a wrong one. */
  function walk({ model, set, root, variables }, steps) {
    let at = set;
    for (const [i, step] of steps.entries()) {
      if (i === 0 && step in variables) at = variables[step];
      else if (i === 0 && step === "$it") at = root;
      else if (model.byType.has(step)) at = model.byType.get(step);
      else at = model.sets.get((site.member(at, step) || {}).target);
    }
    return at;
  }

  /** Members behind the last "/" of a partial path; `more(last)` gives what else may follow the member before it. */
  function members(scope, text, { kinds = ["property", "reference", "collection"], more = () => [], first = [] } = {}) {
    const steps = word(text).split("/");
    const partial = steps.pop();
    const last = steps.length ? site.member(walk(scope, steps.slice(0, -1)), steps[steps.length - 1]) : null;
    const own = last && last.kind === "collection" ? [] : site.members(walk(scope, steps)).filter(({ kind }) => kinds.includes(kind));
    return found(text, partial, [...own, ...(last ? more(last) : []), ...(steps.length ? [] : first)]);
  }

  /** The text behind the last separator that stands outside quotes and parentheses, and where in it one is open, or -1. */
  function lastPart(text, separator) {
    let from = 0, quoted = false;
    const open = [];
    for (let i = 0; i < text.length; i++) {
      if (text[i] === "'") quoted = !quoted;
      else if (quoted) continue;
      else if (text[i] === "(") open.push(i);
      else if (text[i] === ")") open.pop();
      else if (!open.length && text[i] === separator) from = i + 1;
    }
    const part = text.slice(from).trimStart();
    return { part, at: open.length ? part.length - text.length + open[0] : -1 };
  }

  function values(known) {
    const { attribute, custom } = known || {};
    if (custom) return (custom.allowedValues || []).map((value) => item(`'${typeof value === "object" ? value.Value ?? value.value : value}'`, "", "value"));
    if (!attribute) return [];
    if (attribute.members) return Object.entries(attribute.members).map(([name, number]) => item(`'${name}'`, String(number), "value"));
    const now = new Date().toISOString();
    return {
      "Edm.Boolean": all(["true", "false"], "value"), "Edm.Date": [item(now.slice(0, 10), t("today"), "value"), item("date(now())", "", "function")],
      "Edm.DateTimeOffset": [item(`${now.slice(0, 19)}Z`, t("now"), "value"), item("now()", "", "function")],
    }[attribute.type] || [];
  }

  // --- values of options

  /** Inside $filter, $compute and the like. */
  function expression(outer, text) {
    const bare = text.replace(/'(?:[^']|'')*'/g, (quoted) => "_".repeat(quoted.length));
    const scope = { ...outer, variables: { ...outer.variables } };
    for (const [, path, name] of bare.matchAll(/([\w/]+)\/(?:any|all)\((\w+):/g)) scope.variables[name] = walk(scope, path.split("/"));
    const memberAt = (path) => { const steps = path.split("/"); const last = steps.pop(); return site.member(walk(scope, steps), last); };
    const compared = /([\w/$]+)\s+(?:(?:eq|ne|gt|ge|lt|le|has)\s+|in\s*\((?:[^()]*,)?\s*)('[^']*|[\w@$./]*)$/.exec(bare);
    const known = compared && memberAt(compared[1]);
    const quoted = /'[^']*$/.exec(bare);
    if (quoted) return compared ? found(text, quoted[0], values(known).filter(({ label }) => label.startsWith("'"))) : nothing;
    const behind = /([\w/$.)]+)\s+([a-z]*)$/.exec(bare);
    if (!compared && behind && ![...COMPARISONS, ...LOGIC, ...ARITHMETIC, "not", "has"].includes(behind[1])) {
      const operators = [...COMPARISONS, ...LOGIC, ...ARITHMETIC, ...((memberAt(behind[1]) || {}).attribute?.members ? ["has"] : [])];
      return found(text, behind[2], all(operators, "operator", (name) => `${name} `));
    }
    if (/[)']$/.test(text)) return nothing;
    const names = Object.entries(scope.variables).map(([name, set]) => item(name, set ? set.name : "", "variable"));
    const step = (last) => (last.kind === "collection" ? [...["any", "all"].map((name) => item(name, "", "function", `${name}(${last.label[0].toLowerCase()}:)`, 1)), item("$count", "", "function")] : []);
    const result = members(scope, text, { more: step, first: [...names, ...(compared ? [item("null", "", "value")] : [item("not", "", "operator", "not ")]), ...functions()] });
    return { ...result, items: [...(word(text).includes("/") ? [] : values(known)), ...result.items.map((one) => (one.kind === "collection" ? { ...one, insert: `${one.label}/` } : one))] };
  }

  /** A list of paths, each perhaps with options of its own in parentheses. */
  const list = (wanted) => (scope, text) => {
    const { part, at } = lastPart(text, ",");
    if (at < 0) return members(scope, part, wanted);
    return options({ ...scope, set: walk(scope, part.slice(0, at).split("/").filter((step) => !step.startsWith("$"))) || null }, part.slice(at + 1), true);
  };

  function ordering(scope, text) {
    const { part } = lastPart(text, ",");
    if (/^\S+\s+\w*$/.test(part)) return found(text, word(text), [item("asc", t("ascending")), item("desc", t("descending"))]);
    return members(scope, part, { kinds: SORTABLE, first: functions() });
  }

  function aggregation(scope, text) {
    const { part } = lastPart(text, ",");
    if (/\swith\s+\w*$/.test(part)) return found(text, word(text), all(METHODS, "function", (name) => `${name} as `));
    if (/^\S+\s+\w*$/.test(part)) return found(text, word(text), all(["with", "as"], "operator", (name) => `${name} `));
    return members(scope, part, { kinds: SORTABLE, first: [item("$count", "", "function", "$count as ")] });
  }

  function grouping(scope, text) {
    const paths = /^\s*\(([^)]*)$/.exec(text);
    return paths ? members(scope, lastPart(paths[1], ",").part, { kinds: SORTABLE }) : applying(scope, text.replace(/^\s*\([^)]*\)\s*,?\s*/, ""));
  }

  const INSIDE = { filter: expression, compute: expression, orderby: ordering, aggregate: aggregation, groupby: grouping };
  function applying(scope, text) {
    const { part, at } = lastPart(text, "/");
    if (at < 0) return found(text, word(part), TRANSFORMATIONS.map((name) => item(name, "", "function", name === "groupby" ? "groupby(())" : `${name}()`, name === "groupby" ? 2 : 1)));
    const inside = INSIDE[part.slice(0, at).trim()];
    return inside ? inside(scope, part.slice(at + 1)) : nothing;
  }

  const READERS = {
    $select: list({ first: [item("default", t("defaults")), item("*", t("everything"))] }),
    $expand: list({ kinds: ["reference", "collection"], more: () => all(["$ref", "$count"], "word") }),
    $filter: expression, $compute: expression, $orderby: ordering, $apply: applying,
  };

  /** Options: at the top separated by "&", in parentheses of $expand and $select by ";". */
  function options(scope, text, nested) {
    const parts = nested ? text.split(";") : site.options(text);
    const part = nested ? lastPart(text, ";").part : parts[parts.length - 1];
    const equals = part.indexOf("=");
    if (equals < 0) {
      const used = new Set(parts.map((option) => option.split("=")[0].trim()));
      const free = Object.keys(OPTIONS).filter((name) => !used.has(name) && (nested ? !["$format", "options"].includes(name) : name !== "$levels"));
      return found(text, part.trimStart(), free.map((name) => item(name, OPTIONS[name], "option", `${name}=`)));
    }
    const name = part.slice(0, equals).trim().toLowerCase(), value = part.slice(equals + 1);
    const reader = READERS[name.startsWith("$") ? name : `$${name}`];
    return reader ? reader(scope, value) : found(text, value, all(FIXED[name] || [], "value"));
  }

  // --- the path

  function operationItem(operation) {
    const wanted = operation.parameters.filter(({ optional }) => !optional);
    const detail = `${operation.isFunction ? "GET" : "POST"} (${operation.parameters.map(({ name, optional }) => name + (optional ? "?" : "")).join(", ")})`;
    return item(operation.name, detail, "operation", operation.isFunction ? `${operation.name}(${wanted.map(({ name }) => `${name}=`).join(",")})` : operation.name, operation.isFunction && wanted.length ? 1 : 0);
  }

  function path(model, text) {
    const steps = text.split("/");
    const partial = steps.pop();
    if (!steps.length) {
      const unbound = model.operationDetails.filter((operation) => !operation.boundTo);
      return found(text, partial, [...[...model.sets.values()].map((set) => item(set.name, set.isDocument ? t("document") : "", "set")), ...unbound.map(operationItem), item("$metadata", "CSDL"), item("$batch", "POST")]);
    }
    const { set, entity } = site.resource(model, steps.join("/"));
    if (!set || partial.includes("(")) return nothing;
    if (!entity) return found(text, partial, [item("$count", t("optCount")), item("$query", "POST")]);
    return found(text, partial, [...site.members(set), ...site.operationsOf(model, set).map(operationItem), ...all(["$value", "$ref", "$count"], "word")]);
  }

  /** {length of what is typed of the word, items [{label, detail, kind, insert, back}]} for the text before the caret. */
  return function complete(model, text) {
    const [address, query] = site.halves(text.replace(/\n/g, ""));
    if (query === null) return path(model, address);
    const { set } = site.resource(model, address.replace(/\/\$(count|query|ref)$/, ""));
    return options({ model, set, root: set, variables: {} }, query, false);
  };
})();
