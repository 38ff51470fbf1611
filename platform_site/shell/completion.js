// Completion of names of the model: Domain., subject., event. and what follows from them in scripts, {placeholders} in templates.
// The names come from the server (domain/admin/code_completion.py), which leaves out what the person may not read.
import { completeAnyWord } from "@codemirror/autocomplete";

const MEMBERS = {
  repository: ["query()", "getById()", "getByIdList()", "createNew()", "name"],
  entity: ["Id", "DisplayText", "ObjectState", "CustomProperties", "Delete()", "toJSON()", "toString()"],
  list: ["length", "Count", "createNew()", "Delete()", "DeleteAll()", "toArray()", "map()", "filter()", "find()", "forEach()"],
  transaction: ["begin()", "commit()", "rollback()"],
  action: ["log()", "error()", "cancel()", "notify", "http", "user", "session", "files"],
  "action.notify": ["user()"], "action.http": ["get()", "post()"], "action.user": ["id", "name", "login", "email", "roles", "locale"],
  "action.session": ["id", "startedAt"], "action.files": ["create()"],
  console: ["log()", "info()", "warn()", "error()", "debug()", "dir()", "table()", "group()", "groupEnd()", "count()", "time()", "timeEnd()", "assert()", "trace()"],
  types: ["Amount()", "Quantity()", "MultilanguageString()", "CustomPropertyValue()"],
};
const SEGMENT = String.raw`[\w$]+(?:\([^()]*\)|\[[^\[\]]*\])*`;
const PATH = new RegExp(String.raw`((?:${SEGMENT}\??\.)*)([\w$]*)$`);
const DEPTH = 8;

/** A source of completions for the editor of `textarea`, whose form may have the fields repository_name and parameter_schema. */
export function completionSource(textarea) {
  const known = new Map(); // query → promise of the server's answer
  const field = (name) => textarea.form.elements[name]?.value || "";
  const isRule = () => "repository_name" in textarea.form.elements;

  function ask(repository) {
    if (!known.has(repository)) {
      const url = textarea.dataset.completion + (repository ? `?repository=${encodeURIComponent(repository)}` : "");
      const answer = fetch(url, { credentials: "same-origin" }).then((response) => (response.ok ? response.json() : null)).catch(() => null);
      known.set(repository, answer);
    }
    return known.get(repository);
  }

  const called = (segment) => segment.includes("(");
  const indexed = (segment) => /\[[^\]]*\]$/.test(segment);
  const nameOf = (segment) => /^[\w$]*/.exec(segment)[0];
  const entity = (repository) => repository && { kind: "entity", repository };

  // What the member `segment` of something is: {kind, repository or prefix}; null where that is not known.
  async function member(of, segment) {
    const name = nameOf(segment), lower = name.toLowerCase();
    const one = (list) => (list && indexed(segment) ? entity(list.repository) : list);
    if (of.kind === "namespace") {
      const path = of.prefix ? `${of.prefix}.${name}` : name;
      if (path.toLowerCase() === "types") return { kind: "types" };
      const all = (await ask(""))?.repositories || [];
      const repository = lower.endsWith("repository") && all.find((each) => each.toLowerCase() === path.slice(0, -"repository".length).toLowerCase());
      return repository ? { kind: "repository", repository } : { kind: "namespace", prefix: path };
    }
    if (of.kind === "repository") {
      if (lower === "getbyid" || lower === "createnew") return entity(of.repository);
      return lower === "query" || lower === "getbyidlist" ? one({ kind: "list", repository: of.repository }) : null;
    }
    if (of.kind === "list") {
      if (["createnew", "find", "at", "pop", "shift"].includes(lower)) return entity(of.repository);
      return ["filter", "toarray", "slice"].includes(lower) ? one(of) : null;
    }
    if (of.kind === "entity") {
      const names = await ask(of.repository);
      const attribute = names?.attributes.find(([each]) => each.toLowerCase() === lower);
      if (attribute) return entity(attribute[2]);
      const collection = names?.collections.find(([each]) => each.toLowerCase() === lower);
      return collection ? one({ kind: "list", repository: collection[1] }) : null;
    }
    return of.kind === "action" ? { kind: `action.${lower}` } : null;
  }

  // What an expression is that consists of a name and members; variables by where the text before the caret declares them.
  async function valueOf(expression, before, depth = 0) {
    const segments = expression.match(new RegExp(SEGMENT, "g"));
    if (!segments || depth > DEPTH) return null;
    const first = nameOf(segments[0]);
    let value = null;
    if (first === "Domain") value = { kind: "namespace", prefix: "" };
    else if (first === "Transaction" || first === "Action" || first === "console") value = { kind: first.toLowerCase() };
    else if (first === "subject" && isRule()) value = entity(field("repository_name"));
    else if (first === "event" && isRule()) value = { kind: "event" };
    else if (first === "parameters" && !isRule()) value = { kind: "parameters" };
    else value = await declared(first, before, depth + 1);
    if (value?.kind === "list" && indexed(segments[0])) value = entity(value.repository);
    for (const segment of segments.slice(1)) value = value && (await member(value, segment));
    return value;
  }

  async function declared(name, before, depth) {
    const safe = name.replace(/\$/g, "\\$&");
    const path = String.raw`(?:new\s+)?(${SEGMENT}(?:\s*\??\.${SEGMENT})*)`;
    let found = null;
    for (const [pattern, take] of [
      [String.raw`(?:const|let|var)\s+${safe}\s*=\s*${path}`, (value) => value],
      [String.raw`(?:const|let|var)\s*\[\s*${safe}\s*\]\s*=\s*${path}`, (value) => (value?.kind === "list" ? entity(value.repository) : null)],
      [String.raw`for\s*\(\s*(?:const|let|var)\s+${safe}\s+of\s+${path}`, (value) => (value?.kind === "list" ? entity(value.repository) : null)],
      [String.raw`(?:const|let|var)\s*\{[^}]*\b${safe}\b[^}]*\}\s*=\s*${path}`, (value) => value && member(value, name)],
    ]) {
      for (const match of before.matchAll(new RegExp(pattern, "g"))) if (!found || match.index > found.match.index) found = { match, take };
    }
    return found && found.take(await valueOf(found.match[1], before.slice(0, found.match.index), depth));
  }

  const option = (label, detail = "", type = "property") => ({ label: label.replace("()", ""), detail, type: label.endsWith("()") ? "method" : type });
  const namesOf = (names, more) => [
    ...names.attributes.map(([name, kind, target]) => option(name, target || kind)),
    ...more.flatMap((part) => names[part]).map(([name, detail]) => option(name, detail)),
  ];

  async function membersOf(value) {
    const fixed = (MEMBERS[value.kind] || []).map((label) => option(label));
    if (value.kind === "namespace") {
      const all = (await ask(""))?.repositories || [];
      const start = value.prefix ? `${value.prefix.toLowerCase()}.` : "";
      const rest = all.filter((each) => each.toLowerCase().startsWith(start)).map((each) => each.slice(start.length).split("."));
      const spaces = new Set(rest.filter((parts) => parts.length > 1).map(([part]) => part));
      return [
        ...[...spaces].map((each) => option(each, "", "namespace")), ...(start ? [] : [option("Types", "", "namespace")]),
        ...rest.filter((parts) => parts.length === 1).map(([part]) => option(`${part}Repository`, "", "class")),
      ];
    }
    if (value.kind === "entity") {
      const names = await ask(value.repository);
      return names ? [...namesOf(names, ["parts", "collections"]), ...names.operations.map((name) => option(`${name}()`)), ...fixed.filter(({ label }) => !names.attributes.some(([name]) => name === label))] : fixed;
    }
    if (value.kind === "event") return ((await ask(field("repository_name")))?.events || []).map((name) => option(name.replace(/^\$/, ""), name));
    if (value.kind === "parameters") return inputs().map((name) => option(name));
    return fixed;
  }

  function inputs() {
    try { return Object.keys(JSON.parse(field("parameter_schema"))); } catch { return []; }
  }

  async function script(context) {
    const before = context.state.sliceDoc(0, context.pos);
    const [, path, word] = PATH.exec(before);
    const from = context.pos - word.length;
    if (path) {
      const value = await valueOf(path.replace(/\??\.$/, ""), before);
      if (value) return { from, options: await membersOf(value), validFor: /^[\w$]*$/ };
    }
    const words = completeAnyWord(context);
    if (path || !words) return words;
    const globals = ["Domain", "Transaction", "Action", "console", ...(isRule() ? ["subject", "event"] : ["parameters", ...inputs()])];
    return { ...words, options: [...globals.map((name) => ({ label: name, type: "variable", boost: 1 })), ...words.options.filter(({ label }) => !globals.includes(label))] };
  }

  // {Customer.Party.PartyName}, {@code}, {$user.Login}; a doubled brace is none.
  async function template(context) {
    const open = /(?:^|[^{\\])(?:\{\{)*\{([@$\w.]*)$/.exec(context.state.sliceDoc(Math.max(0, context.pos - 300), context.pos));
    if (!open || !field("repository_name")) return null;
    const segments = open[1].split("."), word = segments.pop();
    const from = context.pos - (segments.length ? word.length : open[1].length);
    let value = entity(field("repository_name"));
    for (const segment of segments) value = value && (await member(value, segment));
    const names = value && (await ask(value.repository));
    const own = names ? [...namesOf(names, ["parts"]), ...names.properties.map((name) => option(name))] : [];
    const called = segments.length ? [] : [...(names?.events || []), ...((await ask(""))?.known || [])].map((name) => option(name, "", "variable"));
    return own.length || called.length ? { from, options: [...own, ...called], validFor: /^[@$\w]*$/ } : null;
  }

  if (textarea.dataset.code === "template") return template;
  return textarea.dataset.code === "javascript" ? script : completeAnyWord;
}
