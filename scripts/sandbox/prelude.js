// The first code in every context, evaluated by the worker before any other. It takes the two Python closures out of
// the globals, keeps the built-ins that it needs out of reach of what a script may do to them, and leaves behind
// `console` and one function, which only the worker's Python holds. See worker.py for the commands.
(function (callHost, takeRefusal, writeConsole, paddingLines) {
  "use strict";
  delete globalThis.__callHost;
  delete globalThis.__takeRefusal;
  delete globalThis.__writeConsole;
  // Shared memory and its clocks serve side channels and waiting; there is one thread here.
  delete globalThis.SharedArrayBuffer;
  delete globalThis.Atomics;
  delete globalThis.__date_clock;

  const CONSOLE_LINE_MAX = 1100000, MESSAGE_MAX = 10000, STACK_MAX = 16000;
  const { parse, stringify } = JSON;
  const { apply, defineProperty, setPrototypeOf, ownKeys } = Reflect;
  const uncurried = (method) => (self, ...args) => apply(method, self, args);
  const globalEval = eval;
  const String_ = String, Error_ = Error, SyntaxError_ = SyntaxError, TypeError_ = TypeError;
  const isFinite_ = Number.isFinite, isArray = Array.isArray;
  const slice = uncurried(String.prototype.slice);
  const sourceOf = uncurried(Function.prototype.toString);
  const tagOf = uncurried(Object.prototype.toString);
  const then = uncurried(Promise.prototype.then);
  const entry = uncurried(Map.prototype.set), removal = uncurried(Map.prototype.delete);
  const entries = uncurried(Map.prototype.forEach);
  const padding = "\n".repeat(paddingLines - 1); // a source's lines tell it from preludes by it: positions.py
  const origins = new WeakMap(); // error thrown for a refused host call → the refusal's number
  const rememberOrigin = uncurried(WeakMap.prototype.set).bind(null, origins);
  const originOf = uncurried(WeakMap.prototype.get).bind(null, origins);

  function host(method, ...args) {
    setPrototypeOf(args, null); // so that a toJSON on Array.prototype does not see, or change, what is called
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

  function log(...args) {
    let line = "";
    for (let i = 0; i < args.length && line.length < CONSOLE_LINE_MAX; i++)
      line += (i ? " " : "") + slice(shown(args[i]), 0, CONSOLE_LINE_MAX);
    writeConsole(stringify(slice(line, 0, CONSOLE_LINE_MAX)));
  }

  globalThis.console = {
    log(...args) { log(...args); },
    info(...args) { log(...args); },
    warn(...args) { log(...args); },
    error(...args) { log(...args); },
    debug(...args) { log(...args); },
  };
  defineProperty(globalThis, "console", { enumerable: false });

  // -- rejected promises -----------------------------------------------------------------------------------------

  const rejected = new Map(); // promise that nothing handles → reason, oldest first

  // Called by the engine, which takes it from the globals before anything else is evaluated: rejections.py.
  function trackRejection(promise, reason, isHandled) {
    if (isHandled) removal(rejected, promise);
    else entry(rejected, promise, reason);
  }
  globalThis.__trackRejection = trackRejection;

  function firstRejection() {
    let first = null;
    entries(rejected, (error) => { if (first === null) first = { error }; });
    return first;
  }

  // -- the run ---------------------------------------------------------------------------------------------------

  let start = null; // what the second prelude returned: called with the run's globals
  let parameters = null;
  let outcome = { value: undefined };
  const endings = []; // functions to call when the script and its jobs are through

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
      then(value, (result) => { outcome = { value: result }; }, (error) => { outcome = { error }; });
      outcome = { pending: true };
    } catch (_) { /* not a promise */ }
  }

  function run(job) {
    let compiling = true;
    try {
      if (start !== null) start(job.globals);
      else if (job.globals !== null) defineGlobals(job.globals);
      if (job.wrapped === null) {
        // To check is to compile: nothing runs after a throw, and no source can get before it.
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
        settle(apply(body, undefined, values));
      }
    } catch (error) {
      if (job.check && error === 0) return;
      outcome = { error, compiling: compiling && job.wrapped !== null };
    }
  }

  function strict(key, value) {
    const type = typeof value;
    if (type === "function" || type === "symbol" || type === "bigint" || (type === "number" && !isFinite_(value)))
      throw new TypeError_("a " + (type === "number" ? "number that is not finite" : type) + " has no JSON form" +
        (key === "" ? "" : ", at " + key));
    return value;
  }

  function finish() {
    if ("error" in outcome) return failure(outcome.error, outcome.compiling ? "syntax" : "throw");
    const unhandled = firstRejection();
    if (unhandled !== null) return failure(unhandled.error, "throw");
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

  // Everything about the thrown value may be a trap: getters, toString, a proxy.
  function failure(error, kind) {
    const isError = attempt(() => error instanceof Error_, false);
    const text = (read, max) => attempt(() => slice(String_(read()), 0, max), "");
    const code = isError ? attempt(() => error.code, null) : null;
    return stringify({
      kind,
      is_bare: error === null,
      name: isError ? text(() => error.name, 200) : "",
      message: isError ? text(() => error.message, MESSAGE_MAX) : text(() => shown(error), MESSAGE_MAX),
      stack: isError ? text(() => error.stack, STACK_MAX) : "",
      code: typeof code === "string" ? slice(code, 0, 200) : typeof code === "number" ? code : null,
      host_error: isError ? attempt(() => originOf(error), null) : null,
      __proto__: null,
    });
  }

  function control(command, text) {
    if (command === "run") return run(parse(text));
    if (command === "finish") return finish();
    if (command === "tracked") return void delete globalThis.__trackRejection;
    if (command === "prelude") {
      const made = globalEval(text)(host, sandbox);
      start = typeof made === "function" ? made : null;
    }
  }
  control.trackRejection = trackRejection; // which the engine holds by its address alone
  return control;
})
