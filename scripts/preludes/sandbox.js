// The first code in every context, evaluated by the worker before any other. It removes the two Python closures from
// the globals, keeps private copies of the built-ins that it needs, which scripts cannot change, and defines
// `console` and one function that only the worker's Python code can call. See worker.py for the commands.
(function (callHost, takeRefusal, writeConsole, paddingLines) {
  "use strict";
  delete globalThis.__callHost;
  delete globalThis.__takeRefusal;
  delete globalThis.__writeConsole;
  // Remove shared memory and its clocks: they enable side channels and waiting, and there is only one thread.
  delete globalThis.SharedArrayBuffer;
  delete globalThis.Atomics;
  const clock = globalThis.__date_clock; // microseconds
  delete globalThis.__date_clock;

  const CONSOLE_LINE_MAX = 1100000, MESSAGE_MAX = 10000, STACK_MAX = 16000, LABEL_MAX = 1000;
  const TABLE_ROWS = 100000, TABLE_COLUMNS = 200, CELL_MAX = 200, GROUPS_SHOWN = 50;
  const INDEX = "(index)", VALUES = "Values";
  const { parse, stringify } = JSON;
  const { apply, defineProperty, setPrototypeOf, ownKeys } = Reflect;
  const { is, keys } = Object;
  const uncurried = (method) => (self, ...args) => apply(method, self, args);
  const globalEval = eval, parseInt_ = parseInt;
  const String_ = String, Error_ = Error, SyntaxError_ = SyntaxError, TypeError_ = TypeError;
  const isFinite_ = Number.isFinite, isNaN_ = Number.isNaN, isArray = Array.isArray;
  const slice = uncurried(String.prototype.slice), repeated = uncurried(String.prototype.repeat);
  const padded = uncurried(String.prototype.padEnd), fixed = uncurried(Number.prototype.toFixed);
  const split = uncurried(String.prototype.split), lastIndexOf = uncurried(String.prototype.lastIndexOf);
  const sourceOf = uncurried(Function.prototype.toString);
  const tagOf = uncurried(Object.prototype.toString), timeOf = uncurried(Date.prototype.getTime);
  const then = uncurried(Promise.prototype.then);
  const entry = uncurried(Map.prototype.set), removal = uncurried(Map.prototype.delete);
  const entries = uncurried(Map.prototype.forEach), elements = uncurried(Set.prototype.forEach);
  const valueAt = uncurried(Map.prototype.get), isKey = uncurried(Map.prototype.has);
  const padding = "\n".repeat(paddingLines - 1); // its line numbers distinguish a script's source from what it evaluates: positions.py
  const origins = new WeakMap(); // error thrown for a refused host call → the refusal's number
  const rememberOrigin = uncurried(WeakMap.prototype.set).bind(null, origins);
  const originOf = uncurried(WeakMap.prototype.get).bind(null, origins);
  const places = new WeakMap(); // rejected promise → where its reason was thrown, if that is not an Error
  const rememberPlace = uncurried(WeakMap.prototype.set).bind(null, places);
  const rememberedPlace = uncurried(WeakMap.prototype.get).bind(null, places);

  function host(method, ...args) {
    setPrototypeOf(args, null); // so that a toJSON on Array.prototype can neither read nor change the arguments
    const answer = callHost(method, stringify(args));
    if (answer !== null) return parse(answer);
    throw refusal(parse(takeRefusal()));
  }

  function refusal(fields) {
    const error = new Error_(fields.message);
    defineProperty(error, "name", { value: fields.name, configurable: true, writable: true });
    defineProperty(error, "code", { value: fields.code, configurable: true, writable: true, enumerable: true });
    if (fields.data !== null)
      defineProperty(error, "data", { value: fields.data, configurable: true, writable: true, enumerable: true });
    if (fields.id !== null) rememberOrigin(error, fields.id);
    return error;
  }

  // -- console ---------------------------------------------------------------------------------------------------

  function shown(value) {
    if (typeof value === "string") return value;
    if (typeof value === "function" || typeof value !== "object" || value === null || value instanceof Error_)
      return String_(value);
    try {
      const text = stringify(value);
      return text === undefined ? String_(value) : text;
    } catch (_) {
      return tagOf(value);
    }
  }

  let depth = 0, indent = ""; // of groups

  function joined(args, line) {
    for (let i = 0; i < args.length && line.length < CONSOLE_LINE_MAX; i++)
      line += (line === "" && i === 0 ? "" : " ") + slice(shown(args[i]), 0, CONSOLE_LINE_MAX);
    return slice(line, 0, CONSOLE_LINE_MAX);
  }

  // Indents every line of the text by the open groups.
  function emit(text) {
    if (indent !== "") {
      const lines = split(text, "\n");
      text = "";
      for (let i = 0; i < lines.length && text.length < CONSOLE_LINE_MAX; i++) text += (i ? "\n" : "") + indent + lines[i];
    }
    writeConsole(stringify(slice(text, 0, CONSOLE_LINE_MAX)));
  }

  function log(...args) { emit(joined(args, "")); }

  function setDepth(wanted) {
    depth = wanted < 0 ? 0 : wanted;
    indent = repeated("  ", depth < GROUPS_SHOWN ? depth : GROUPS_SHOWN);
  }

  function group(...args) {
    if (args.length) log(...args);
    setDepth(depth + 1);
  }

  const counts = new Map(), timers = new Map(); // label → count, → microseconds at its start
  const labelOf = (label) => (label === undefined ? "default" : slice(String_(label), 0, LABEL_MAX));

  function count(label) {
    const name = labelOf(label), next = (isKey(counts, name) ? valueAt(counts, name) : 0) + 1;
    entry(counts, name, next);
    emit(name + ": " + next);
  }

  function countReset(label) {
    const name = labelOf(label);
    if (!removal(counts, name)) emit("Count for '" + name + "' does not exist");
  }

  function time(label) {
    const name = labelOf(label);
    if (isKey(timers, name)) return emit("Label '" + name + "' already exists for console.time()");
    entry(timers, name, clock());
  }

  function elapsed(method, label, data) {
    const name = labelOf(label);
    if (!isKey(timers, name)) return emit("No such label '" + name + "' for console." + method + "()");
    emit(joined(data, name + ": " + fixed((clock() - valueAt(timers, name)) / 1000, 3) + "ms"));
    if (method === "timeEnd") removal(timers, name);
  }

  function assert(condition, ...data) {
    if (!condition) emit(data.length ? joined(data, "Assertion failed:") : "Assertion failed");
  }

  // The engine's stack with the script's line numbers, without the frames of preludes.
  function trace(...args) {
    let text = args.length ? joined(args, "Trace:") : "Trace";
    const frames = split(new Error_().stack, "\n");
    for (let i = 0; i < frames.length; i++) {
      const colon = lastIndexOf(frames[i], ":"), line = parseInt_(slice(frames[i], colon + 1)) - paddingLines;
      if (line > 0) text += "\n" + split(frames[i], "<input>")[0] + "script.js:" + line + (slice(frames[i], -1) === ")" ? ")" : "");
    }
    emit(text);
  }

  // The data of an entity, or of a collection, that is already loaded, without further host calls.
  const plain = (value) => (typeof value === "object" && value !== null && typeof value.toJSON === "function" ? value.toJSON() : value);
  const isObject = (value) => typeof value === "object" && value !== null;

  function rowsOf(data) {
    const rows = [];
    const add = (index, value) => { if (rows.length < TABLE_ROWS) defineProperty(rows, rows.length, { value: { index: String_(index), value } }); };
    let position = 0;
    try { entries(data, (value, key) => add(shown(key), value)); return rows; } catch (_) { /* not a map */ }
    try { elements(data, (value) => add(position++, value)); return rows; } catch (_) { /* not a set */ }
    const names = keys(data);
    for (let i = 0; i < names.length && i < TABLE_ROWS; i++) add(names[i], data[names[i]]);
    return rows;
  }

  function cellOf(value) {
    const text = slice(shown(value), 0, CELL_MAX + 1);
    const lines = split(text.length > CELL_MAX ? slice(text, 0, CELL_MAX) + "…" : text, "\n");
    let line = "";
    for (let i = 0; i < lines.length; i++) line += (i ? " " : "") + lines[i];
    return line;
  }

  function table(given, columns) {
    const data = plain(given);
    if (!isObject(data)) return log(given);
    const rows = rowsOf(data), names = new Map(); // column → width
    const widen = (name, text) => { if (!(valueAt(names, name) >= text.length)) entry(names, name, text.length); };
    const chosen = isArray(columns) ? columns : null;
    widen(INDEX, INDEX);
    if (chosen !== null) for (let i = 0; i < chosen.length && i < TABLE_COLUMNS; i++) widen(String_(chosen[i]), String_(chosen[i]));
    let hasValues = false, valuesWidth = VALUES.length, size = 0;
    const lines = [];
    for (let i = 0; i < rows.length && size < CONSOLE_LINE_MAX; i++) {
      const cells = new Map(), row = chosen === null ? plain(rows[i].value) : rows[i].value;
      widen(INDEX, rows[i].index);
      entry(cells, INDEX, rows[i].index);
      let own = null;
      if (isObject(row)) {
        const read = chosen === null ? keys(row) : chosen;
        for (let j = 0; j < read.length && j < TABLE_COLUMNS; j++) {
          const name = String_(read[j]);
          if (chosen !== null && !(name in row)) continue;
          const text = cellOf(row[name]);
          widen(name, name);
          widen(name, text);
          entry(cells, name, text);
        }
      } else {
        own = cellOf(row);
        hasValues = true;
        if (own.length > valuesWidth) valuesWidth = own.length;
      }
      defineProperty(lines, i, { value: { cells, own } });
      size += 4 * cells.size;
    }
    if (hasValues && chosen === null) entry(names, VALUES, valuesWidth);
    const rule = (left, middle, right) => {
      let text = left, first = true;
      entries(names, (width) => { text += (first ? "" : middle) + repeated("─", width + 2); first = false; });
      return text + right;
    };
    const line = (read) => {
      let text = "";
      entries(names, (width, name) => { text += "│ " + padded(read(name), width) + " "; });
      return text + "│";
    };
    let text = rule("┌", "┬", "┐") + "\n" + line((name) => name) + "\n" + rule("├", "┼", "┤");
    for (let i = 0; i < lines.length && text.length < CONSOLE_LINE_MAX; i++) {
      const { cells, own } = lines[i];
      text += "\n" + line((name) => (name === VALUES && own !== null ? own : isKey(cells, name) ? valueAt(cells, name) : ""));
    }
    emit(text + "\n" + rule("└", "┴", "┘"));
  }

  globalThis.console = {
    log(...args) { log(...args); },
    info(...args) { log(...args); },
    warn(...args) { log(...args); },
    error(...args) { log(...args); },
    debug(...args) { log(...args); },
    dir(value) { log(value); },
    table(data, columns) { table(data, columns); },
    group(...args) { group(...args); },
    groupCollapsed(...args) { group(...args); },
    groupEnd() { setDepth(depth - 1); },
    count(label) { count(label); },
    countReset(label) { countReset(label); },
    time(label) { time(label); },
    timeLog(label, ...args) { elapsed("timeLog", label, args); },
    timeEnd(label) { elapsed("timeEnd", label, []); },
    assert(condition, ...args) { assert(condition, ...args); },
    trace(...args) { trace(...args); },
  };
  defineProperty(globalThis, "console", { enumerable: false });

  // -- thrown values that are not errors --------------------------------------------------------------------------

  let thrown = null; // the last: { value, site, stack }

  // A marked statement is `throw __throwSite(3).value = "x"`: throw_statements.py.
  defineProperty(globalThis, "__throwSite", {
    configurable: true,
    value: (site) => ({ set value(value) { if (!isError(value)) thrown = { value, site, stack: new Error_().stack }; } }),
  });

  const isError = (value) => attempt(() => value instanceof Error_, false);
  const isInvalidDate = (value) => attempt(() => isNaN_(timeOf(value)), false);
  const placeOf = (value) => (thrown !== null && is(thrown.value, value) ? thrown : null);

  // -- rejected promises -----------------------------------------------------------------------------------------

  const rejected = new Map(); // promise that nothing handles → reason, oldest first

  // Called by the engine; the worker takes it from the globals before it evaluates other code: engine_interface.py.
  function trackRejection(promise, reason, isHandled) {
    if (isHandled) removal(rejected, promise);
    else {
      entry(rejected, promise, reason);
      if (!isError(reason)) rememberPlace(promise, placeOf(reason) || { value: reason, site: null, stack: new Error_().stack });
    }
  }
  globalThis.__trackRejection = trackRejection;

  function firstRejection() {
    let first = null;
    entries(rejected, (error, promise) => { if (first === null) first = { error, place: rememberedPlace(promise) }; });
    return first;
  }

  // -- the run ---------------------------------------------------------------------------------------------------

  let start = null; // what the second prelude returned: called with the run's globals; may return who calls the body
  let parameters = null;
  let outcome = { value: undefined };
  const endings = []; // functions to call when the script and its jobs have ended

  const sandbox = {
    beforeEnd(callback) { defineProperty(endings, endings.length, { value: callback, configurable: true }); },
    log,
  };

  function defineGlobals(values) {
    const names = ownKeys(values);
    for (let i = 0; i < names.length; i++)
      defineProperty(globalThis, names[i], { value: values[names[i]], configurable: true, writable: true });
  }

  function settle(value) {
    outcome = { value };
    if (typeof value !== "object" || value === null) return;
    try {
      then(value, (result) => { outcome = { value: result }; }, (error) => { outcome = { error, place: rememberedPlace(value) || placeOf(error) }; });
      outcome = { pending: true };
    } catch (_) { /* not a promise */ }
  }

  function run(job) {
    let compiling = true;
    try {
      const caller = start !== null ? start(job.globals) : null;
      if (start === null && job.globals !== null) defineGlobals(job.globals);
      if (job.wrapped === null) {
        // A check compiles only: nothing runs after a throw, and no source can run before it.
        settle(globalEval(padding + (job.check ? "throw 0;\n" : "\n") + job.source));
      } else {
        const body = globalEval(padding + "(" + job.wrapped + ")");
        // A body that closes its own function early leaves a function with another text.
        if (typeof body !== "function" || sourceOf(body) !== job.wrapped)
          throw new SyntaxError_("unexpected token: '}'");
        if (job.check) return;
        compiling = false;
        parameters = job.parameters;
        const values = [parameters];
        for (let i = 0; i < job.names.length; i++)
          defineProperty(values, i + 1, { value: parameters[job.names[i]], configurable: true });
        settle(typeof caller === "function" ? caller(body, parameters) : apply(body, undefined, values));
      }
    } catch (error) {
      if (job.check && error === 0) return;
      outcome = { error, place: placeOf(error), compiling: compiling && job.wrapped !== null };
    }
  }

  const noJson = (what, key) => new TypeError_(what + " has no JSON form" + (key === "" ? "" : ", at " + key));
  const PLAIN = { __proto__: null, Object: true, Array: true, Boolean: true, Number: true, String: true };

  // A replacer of JSON.stringify that refuses what it would leave out or write as null or {}. An output without a value,
  // and no returned value, are none.
  function strict(key, value) {
    const type = typeof value;
    if (type === "function" || type === "symbol" || type === "bigint") throw noJson("a " + type, key);
    if (type === "number" && !isFinite_(value)) throw noJson("a number that is not finite", key);
    if (value === undefined && key !== "" && this !== parameters) throw noJson("undefined", key);
    if (value === null && this[key] !== null && isInvalidDate(this[key])) throw noJson("an invalid Date", key);
    if (type === "object" && value !== null) {
      const tag = slice(tagOf(value), 8, -1);
      if (PLAIN[tag] !== true) throw noJson("an object of type " + tag, key);
    }
    return value;
  }

  function finish() {
    if ("error" in outcome) return failure(outcome.error, outcome.compiling ? "syntax" : "throw", outcome.place);
    const unhandled = firstRejection();
    if (unhandled !== null) return failure(unhandled.error, "throw", unhandled.place);
    try {
      for (let i = 0; i < endings.length; i++) endings[i]();
    } catch (error) {
      return failure(error, "throw");
    }
    if (parameters === null) return '{"value":null,"parameters":null}';
    if (outcome.pending) return failure(new TypeError_("the returned promise never settles"), "result");
    try {
      const value = stringify(outcome.value, strict);
      const outputs = stringify(parameters, strict);
      return '{"value":' + (value === undefined ? "null" : value) + ',"parameters":' + outputs + "}";
    } catch (error) {
      return failure(error, "result");
    }
  }

  function attempt(read, fallback) {
    try { return read(); } catch (_) { return fallback; }
  }

  // The thrown value may be hostile in every access: getters, toString, a proxy.
  function failure(error, kind, place) {
    const hasStack = isError(error);
    const text = (read, max) => attempt(() => slice(String_(read()), 0, max), "");
    const code = hasStack ? attempt(() => error.code, null) : null;
    return stringify({
      kind,
      is_bare: error === null,
      name: hasStack ? text(() => error.name, 200) : "",
      message: hasStack ? text(() => error.message, MESSAGE_MAX) : text(() => shown(error), MESSAGE_MAX),
      stack: hasStack ? text(() => error.stack, STACK_MAX) : place ? slice(place.stack, 0, STACK_MAX) : "",
      site: !hasStack && place ? place.site : null,
      code: typeof code === "string" ? slice(code, 0, 200) : typeof code === "number" ? code : null,
      host_error: hasStack ? attempt(() => originOf(error), null) : null,
      __proto__: null,
    });
  }

  function control(command, text) {
    if (command === "run") return run(parse(text));
    if (command === "finish") return finish();
    if (command === "taken") {
      delete globalThis.__control;
      delete globalThis.__trackRejection;
    }
    if (command === "prelude") {
      const prelude = globalThis.__prelude;
      delete globalThis.__prelude;
      const made = prelude(host, sandbox);
      start = typeof made === "function" ? made : null;
    }
  }
  control.trackRejection = trackRejection; // keeps the function alive: the engine has only its address
  return control;
})
