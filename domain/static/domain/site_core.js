// What all pages under /api/ share: texts, elements, access, requests, the model. One global, `site`; no build.
"use strict";
window.site = (() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const data = read("site-data");
  const texts = read("site-texts");
  const $ = (id) => document.getElementById(id);

  /** The text of a key in the page's language; {name} is filled in from values. */
  const t = (key, values = {}) => texts[key].replace(/\{(\w+)\}/g, (all, name) => (name in values ? String(values[name]) : all));

  /** An element. Attributes by name, listeners as functions under "onclick" …; children are nodes or text. */
  function el(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (typeof value === "function") node.addEventListener(name.slice(2), value);
      else if (value === true) node.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
    }
    node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
    return node;
  }

  /** Say it to screen readers; `seen` shows it too, for what has no other visible effect. */
  function announce(text, seen = false) {
    const place = $("announce");
    place.textContent = text;
    place.className = seen ? "toast" : "unseen";
    clearTimeout(announce.timer);
    if (seen) announce.timer = setTimeout(() => { place.className = "unseen"; }, 2500);
  }

  /** Storage that may be full or forbidden: then nothing is kept. */
  const keep = (storage) => ({
    get(name, otherwise) { try { return JSON.parse(storage.getItem("domain-api." + name)) ?? otherwise; } catch { return otherwise; } },
    set(name, value) { try { storage.setItem("domain-api." + name, JSON.stringify(value)); return true; } catch { return false; } },
    drop(name) { try { storage.removeItem("domain-api." + name); } catch { /* nothing is kept, then */ } },
  });
  const local = keep(window.localStorage), tab = keep(window.sessionStorage);

  // --- access: a token of this site's own application, in memory; or one that was pasted, in this tab's storage.

  let own = null; // {token, until}

  class Refused extends Error {
    constructor(error) { super(error.message); this.error = error; }
  }

  /** A request to the site itself, with the browser's cookie. The body, if any, is sent as JSON. */
  function ask(method, url, body) {
    const proof = document.querySelector("meta[name=csrf-token]").content;
    return fetch(url, { method, headers: { "X-CSRFToken": proof, "Content-Type": "application/json" }, credentials: "same-origin", body: body && JSON.stringify(body) });
  }

  async function token(renew = false) {
    const pasted = tab.get("token", "");
    if (pasted) return pasted;
    // Renewed half a minute early, so that no request meets the end of its token on the way.
    if (own && !renew && own.until > Date.now() + 30000) return own.token;
    const response = await ask("POST", data.session);
    let body = null;
    try { body = await response.json(); } catch { /* a page, of CSRF protection or a proxy */ }
    if (!response.ok) {
      const signedOut = response.status === 401 || response.status === 403 && !body;
      throw new Refused({ status: response.status, signIn: signedOut, message: signedOut ? t("signInFirst") : body && body.error ? body.error.message : String(response.status) });
    }
    own = { token: body.accessToken, until: Date.now() + body.expiresIn * 1000 };
    return own.token;
  }

  /** The way to the login page, and back to here. */
  const logInUrl = () => `${data.logIn}?next=${encodeURIComponent(location.pathname + location.search + location.hash)}`;

  // --- requests

  /** What is typed, as a path below the service root that may stand in a URL. Pasted absolute URLs lose their root. */
  function encoded(typed) {
    let text = typed.replace(/[\r\n]+\s*/g, "").trim();
    const below = /^[a-z]+:\/\/[^/]+.*?\/domain\/odata\/?(.*)$/is.exec(text) || /^\/?(?:[\w./-]*\/)?domain\/odata\/?(.*)$/is.exec(text);
    if (below) text = below[1];
    text = text.replace(/^\/+/, "");
    const [path, query] = halves(text);
    return query === null ? escaped(path) : `${escaped(path)}?${options(query).map(escapedOption).join("&")}`;
  }

  /** Path and query; the query is null without "?". A question mark in quotes is part of a key. */
  function halves(text) {
    let quoted = false;
    for (let i = 0; i < text.length; i++) {
      if (text[i] === "'") quoted = !quoted;
      else if (text[i] === "?" && !quoted) return [text.slice(0, i), text.slice(i + 1)];
    }
    return [text, null];
  }

  /** Options of a query; "&" in quotes separates nothing. */
  function options(query) {
    const found = [];
    let from = 0, quoted = false;
    for (let i = 0; i <= query.length; i++) {
      if (query[i] === "'") quoted = !quoted;
      else if (i === query.length || query[i] === "&" && !quoted) { found.push(query.slice(from, i)); from = i + 1; }
    }
    return found;
  }

  // Encoded text stays as it is; what may not stand in a URL, or means something else there, is encoded.
  const escaped = (text) => text.replace(/%(?![0-9a-f]{2})|[^\w%\-.~!$&'()*+,;=:@/?[\]]/giu, (found) => encodeURIComponent(found)).replace(/[[\]]/g, encodeURIComponent);
  function escapedOption(option) {
    const [name, ...rest] = option.split("=");
    const value = rest.join("=").replace(/[+&#]/g, encodeURIComponent);
    return rest.length ? `${escaped(name)}=${escaped(value)}` : escaped(name);
  }

  /** Where a URL that the service gave points to, below this page's service root; null for other addresses. */
  function belowRoot(url) {
    const [bare] = url.split("#"); // a context names a part of $metadata behind it
    const parts = /^(?:[a-z]+:\/\/[^/]+)?(\/.*)$/i.exec(bare);
    if (!parts) return bare;
    const at = parts[1].indexOf("/domain/odata/");
    return at < 0 ? null : parts[1].slice(at + "/domain/odata/".length);
  }

  /**
   * Send a request to the API. {method, path (encoded, below the root), headers {name: value}, body, signal}
   * → {status, statusText, headers [[name, value]], text, bytes, milliseconds, url}. Throws Refused without access.
   */
  async function send({ method = "GET", path, headers = {}, body, signal }) {
    const attempt = async (renew) => {
      const sent = { Accept: "application/json", "Accept-Language": data.language, ...headers, Authorization: `Bearer ${await token(renew)}` };
      const started = performance.now();
      const response = await fetch(data.root + path, { method, headers: sent, body, signal, credentials: "omit", cache: "no-store" });
      const text = await response.text();
      return {
        status: response.status, statusText: response.statusText, headers: [...response.headers], text,
        bytes: new TextEncoder().encode(text).length, milliseconds: Math.round(performance.now() - started), url: data.root + path,
      };
    };
    let answer = await attempt(false);
    // A session that was ended elsewhere revokes its tokens; the sign-in may still be good for another one.
    if (answer.status === 401 && own && !tab.get("token", "")) answer = await attempt(true);
    if (answer.status < 400) document.dispatchEvent(new CustomEvent("site:called"));
    return answer;
  }

  /** The JSON of a GET. Throws Refused with the service's error. */
  async function get(path) {
    const answer = await send({ path });
    let body = null;
    try { body = JSON.parse(answer.text); } catch { /* told below */ }
    if (answer.status >= 400 || body === null) throw new Refused((body && body.error) || { message: `${answer.status} ${answer.statusText}` });
    return body;
  }

  // --- the model: what is shipped until somebody calls the API, since reading one's own takes a slot of the licence.

  let known = null;
  function indexed(body) {
    const sets = new Map(body.entitySets.map((set) => [set.name, set]));
    const byType = new Map(body.entitySets.map((set) => [set.entityType, set]));
    return { ...body, sets, byType };
  }

  /** The standard model, indexed: `sets` name → set, `byType` entity type → set. */
  async function model() {
    known = known || fetch(data.standardModel, { credentials: "omit" }).then((response) => response.json()).then(indexed);
    return known;
  }

  /** What the caller may read, with custom properties. */
  async function ownModel() {
    const response = await fetch(data.currentModel, { headers: { Authorization: `Bearer ${await token()}` }, credentials: "omit" });
    if (!response.ok) throw new Refused({ message: `${response.status} ${response.statusText}` });
    return indexed(await response.json());
  }

  /** A part of a page, which the server draws for `values`; of the own model with a token. POST for forms. Throws Refused. */
  async function part(url, values, own, method = "POST") {
    const headers = { "Accept-Language": data.language, ...(own ? { Authorization: `Bearer ${await token()}` } : {}) };
    const asked = values instanceof FormData ? values : new URLSearchParams(values);
    const response = await (method === "GET" ? fetch(`${url}?${asked}`, { headers, credentials: "omit" }) : fetch(url, { method, headers, body: asked, credentials: "omit" }));
    if (!response.ok) throw new Refused((await response.json()).error);
    return response.text();
  }

  /**
   * A form whose `place` the server draws again. draw(action, fields) sends the form's fields (or those) by `send`, with a field `do`
   * for each action, until what was written meanwhile is sent, too; then `shown(actions, failure)` is called.
   */
  function drawnForm(form, place, send, shown) {
    const written = () => JSON.stringify([...new FormData(form)].filter(([, value]) => typeof value === "string"));
    let actions = [], turn = 0, last = null;
    let released = null; // a promise while a button is held down: what is drawn meanwhile would take it away before its click
    async function redraw(mine, given) {
      const before = written(), fields = given || new FormData(form);
      for (const action of actions) fields.append("do", action);
      let html = null, failure = null;
      try { html = await send(fields); } catch (problem) { failure = problem; }
      await released;
      if (mine !== turn) { await last; return; }
      if (html !== null && written() !== before) { await draw(); return; }
      const done = actions, { id, selectionStart, selectionEnd } = document.activeElement;
      actions = [];
      if (html !== null) {
        place.innerHTML = html;
        if (id && $(id) !== document.activeElement) $(id)?.focus();
        // A field that has become one for dates, for example, has no selection.
        if (Number.isInteger(selectionStart) && Number.isInteger($(id)?.selectionStart)) $(id).setSelectionRange(selectionStart, selectionEnd);
      }
      shown(done, failure);
    }
    function draw(action = [], fields = null) {
      actions = actions.concat(action);
      return last = redraw(++turn, fields);
    }
    form.addEventListener("pointerdown", () => {
      released = new Promise((done) => { for (const name of ["pointerup", "pointercancel"]) document.addEventListener(name, () => setTimeout(done), { once: true }); });
    });
    return { draw, drawn: () => last, forget() { turn++; actions = []; } };
  }

  /** What may stand in a path behind an entity of the set: [{label, detail, kind, attribute? | target? | custom?}]. */
  function members(set) {
    if (!set) return [];
    return [
      ...set.attributes.map((a) => ({ label: a.name, detail: a.type.replace(/^Edm\./, "") + (a.required ? " *" : ""), kind: "property", attribute: a })),
      ...set.references.map((r) => ({ label: r.name, detail: `→ ${r.entitySet}`, kind: "reference", target: r.entitySet })),
      ...set.collections.map((c) => ({ label: c.name, detail: `→ ${c.entitySet} [ ]`, kind: "collection", target: c.entitySet })),
      ...set.customProperties.map((c) => ({ label: c.name, detail: c.propertyType, kind: "property", custom: c })),
    ];
  }
  const member = (set, name) => members(set).find(({ label }) => label === name);

  /** The set that the path leads to, or null; `entity`: whether to one entity of it. */
  function resource(model, path) {
    const [head, ...steps] = path.split("/").map((step) => /^([\w.$]*)(\(.*\))?$/.exec(step) || []);
    let set = model.sets.get(head[1]) || null;
    let entity = Boolean(head[2]);
    for (const [, name, key] of steps) {
      const next = member(set, name);
      if (model.byType.has(name)) set = model.byType.get(name);
      else if (next && next.target) { set = model.sets.get(next.target) || null; entity = next.kind === "reference" || Boolean(key); }
      else if (name && !name.startsWith("$")) return { set: null, entity };
    }
    return { set, entity };
  }

  /** The operations of a set's entities, with their parameters. */
  function operationsOf(model, set) {
    const repositories = [set.repository];
    for (let base = set.baseType; base && model.byType.has(base); base = model.byType.get(base).baseType) repositories.push(model.byType.get(base).repository);
    return set.operations.map((name) => model.operationDetails.find((known) => known.name === name && (known.boundTo === "*" || known.boundTo === "documents" && set.isDocument || repositories.includes(known.boundTo))) || { name, parameters: [], isFunction: false, returns: null });
  }

  // --- JSON whose numbers stay as they were written: decimals are exact, numbers of JavaScript are not.

  const exact = (name, value, { source } = {}) => (typeof value === "number" && JSON.rawJSON && source !== String(value) ? JSON.rawJSON(source) : value);
  const json = {
    parse: (text) => JSON.parse(text, exact),
    format: (value) => JSON.stringify(value, null, 2),
    /** The text of a number, string or literal. */
    text: (value) => (value === null || value === undefined ? "" : String(value.rawJSON ?? value)),
    isObject: (value) => typeof value === "object" && value !== null && !Array.isArray(value) && !("rawJSON" in value),
  };

  // --- small things

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      announce(t("copied"), true);
    } catch {
      // Browsers give scripts the clipboard over https and on this computer only: then people copy it themselves.
      const area = el("textarea", { readonly: true, rows: 8, "aria-label": t("copyByHand") });
      area.value = text;
      const dialog = el("dialog", {}, el("p", {}, t("copyByHand")), area, el("button", { type: "button", onclick: () => dialog.close() }, t("close")));
      dialog.addEventListener("close", () => dialog.remove());
      document.body.append(dialog);
      dialog.showModal();
      area.select();
    }
  }

  function download(name, text, type = "application/json") {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const link = el("a", { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 60_000); // a busy browser begins the download late
  }

  /** Download a file that the service makes with the rights of the token; the name is the service's. Throws Refused. */
  async function downloadFrom(url) {
    const response = await fetch(url, { headers: { Authorization: `Bearer ${await token()}`, "Accept-Language": data.language }, credentials: "omit", cache: "no-store" });
    if (!response.ok) {
      let error = { message: `${response.status} ${response.statusText}` };
      try { error = (await response.json()).error; } catch { /* a page of a proxy */ }
      throw new Refused(error);
    }
    const [, name] = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") || "") || [];
    download(name || url.split("/").pop().split("?")[0], await response.blob(), response.headers.get("Content-Type"));
  }

  const FORMULA = /^'*[=+\-@\t\r\n＝＋－＠]/; // as domain/odata/sheets/cells.py
  /** The text with an apostrophe before it, where a spreadsheet would take it for a formula. */
  const neutral = (text) => (FORMULA.test(text) ? `'${text}` : text);

  const number = new Intl.NumberFormat(data.language);
  const size = (bytes) => (bytes < 1024 ? `${number.format(bytes)} B` : bytes < 1048576 ? `${number.format(Math.round(bytes / 102.4) / 10)} KB` : `${number.format(Math.round(bytes / 104857.6) / 10)} MB`);

  /** A grid of Tabulator in `place`, when it is built: sorted and resized by its heads, cells chosen by arrow keys and copied. */
  function grid(place, label, { columnDefaults, ...options }) {
    // The mark in a column's head, which sorts by keyboard, too.
    const sorting = (column, direction) => el("button", { type: "button", "aria-label": t("sortBy", { name: column.getDefinition().title }) }, { asc: "▲", desc: "▼" }[direction] || "↕").outerHTML;
    // Tabulator takes titles for HTML; ours may come from a file.
    const titleFormatter = (cell) => document.createTextNode(cell.getValue());
    place.className = "grid";
    place.setAttribute("aria-label", label);
    // Tabulator edits a cell by Enter, and fails where none can be edited.
    place.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target.closest(".tabulator-tableholder")) event.stopPropagation(); }, true);
    const table = new Tabulator(place, {
      nestedFieldSeparator: false, layout: "fitDataStretch", maxHeight: "70vh", headerSortElement: sorting, selectableRange: 1, selectableRangeAutoFocus: false, clipboard: "copy", clipboardCopyRowRange: "range",
      clipboardCopyConfig: { columnHeaders: false }, columnDefaults: { headerSortTristate: true, titleFormatter, ...columnDefaults }, ...options,
    });
    return new Promise((built) => table.on("tableBuilt", () => {
      // Rows are in the part that has the focus: a child of a grid without a role could not.
      place.querySelector(".tabulator-tableholder").setAttribute("role", "rowgroup");
      place.querySelector(".tabulator-table").setAttribute("role", "presentation");
      built(table);
    }));
  }

  // --- the access panel

  function showAccess() {
    const state = $("access-state");
    if (!state) return;
    const pasted = tab.get("token", "");
    if (pasted) state.textContent = t("withPastedToken");
    else state.textContent = data.login ? t("asLogin", { login: data.login }) : t("nobody");
    $("token-drop").hidden = !pasted;
  }

  function wireAccess() {
    if (!$("access")) return;
    $("token-use").addEventListener("click", () => {
      const value = $("token").value.trim().replace(/^bearer\s+/i, "");
      if (!value) { $("token").focus(); return; }
      tab.set("token", value);
      $("token").value = "";
      showAccess();
      announce(t("tokenKept"), true);
    });
    $("token-drop").addEventListener("click", () => { tab.drop("token"); showAccess(); $("token").focus(); });
    const end = $("session-end");
    if (end) end.addEventListener("click", async () => {
      const response = await ask("DELETE", data.session);
      own = null;
      announce(response.ok ? t("sessionEnded") : `${response.status} ${response.statusText}`, true);
    });
    showAccess();
    if (!data.login && !tab.get("token", "")) $("access").open = true;
  }
  document.addEventListener("DOMContentLoaded", wireAccess);

  return { $, data, t, el, announce, local, tab, ask, token, logInUrl, encoded, halves, options, belowRoot, send, get, model, ownModel, part, drawnForm, members, member, resource, operationsOf, json, copy, download, downloadFrom, neutral, grid, number, size, Refused };
})();
