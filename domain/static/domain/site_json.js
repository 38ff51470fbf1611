// JSON read with positions and without loss (decimals stay as they were written), and shown as a tree that folds.
"use strict";
site.json = (() => {
  const { el, t } = site;
  const LITERALS = ["true", "false", "null"];
  const ESCAPES = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };
  const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
  const PLAIN = /[^"\\\u0000-\u001f]*/y;
  const MAX_DEPTH = 400;

  class Problem extends Error {
    constructor(message, position) { super(message); this.position = position; }
  }

  /**
   * The text as nodes: {kind: "object", members: [[name, node]]}, {kind: "array", items}, {kind: "string", value},
   * {kind: "number" | "literal", raw}. Throws Problem with the position from 0.
   */
  function parse(text) {
    let at = text.charCodeAt(0) === 0xfeff ? 1 : 0;
    const fail = (message, position = at) => { throw new Problem(message, position); };
    const space = () => { while (at < text.length && " \t\r\n".includes(text[at])) at++; };

    function string() {
      const start = at++;
      let value = "";
      for (;;) {
        PLAIN.lastIndex = at;
        const plain = PLAIN.exec(text)[0];
        value += plain;
        at += plain.length;
        if (at >= text.length) fail(t("jsonOpenString"), start);
        if (text[at] === '"') { at++; return value; }
        if (text[at] !== "\\") fail(t("jsonControl"));
        const escape = text[at + 1];
        if (escape === "u" && /^[0-9a-fA-F]{4}$/.test(text.slice(at + 2, at + 6))) { value += String.fromCharCode(parseInt(text.slice(at + 2, at + 6), 16)); at += 6; }
        else if (escape in ESCAPES) { value += ESCAPES[escape]; at += 2; }
        else fail(t("jsonEscape"));
      }
    }

    function node(depth) {
      if (depth > MAX_DEPTH) fail(t("jsonDeep"));
      space();
      const from = at;
      const first = text[at];
      if (first === "{") return object(depth, from);
      if (first === "[") return array(depth, from);
      if (first === '"') return { kind: "string", value: string(), from };
      NUMBER.lastIndex = at;
      const found = NUMBER.exec(text);
      if (found) { at += found[0].length; return { kind: "number", raw: found[0], from }; }
      const literal = LITERALS.find((word) => text.startsWith(word, at));
      if (literal) { at += literal.length; return { kind: "literal", raw: literal, from }; }
      if (at >= text.length) fail(t("jsonEnd"));
      if (first === "'") fail(t("jsonSingleQuote"));
      return fail(t("jsonValue", { found: text.slice(at, at + 12) }));
    }

    function object(depth, from) {
      const members = [];
      const names = new Set();
      at++;
      space();
      if (text[at] === "}") { at++; return { kind: "object", members, from }; }
      for (;;) {
        space();
        if (text[at] === "}") fail(t("jsonTrailingComma"));
        if (text[at] !== '"') fail(at >= text.length ? t("jsonEnd") : t("jsonName"));
        const start = at;
        const name = string();
        if (names.has(name)) fail(t("jsonTwice", { name }), start);
        names.add(name);
        space();
        if (text[at] !== ":") fail(t("jsonColon"));
        at++;
        members.push([name, node(depth + 1)]);
        space();
        if (text[at] === "}") { at++; return { kind: "object", members, from }; }
        if (text[at] !== ",") fail(at >= text.length ? t("jsonEnd") : t("jsonComma"));
        at++;
      }
    }

    function array(depth, from) {
      const items = [];
      at++;
      space();
      if (text[at] === "]") { at++; return { kind: "array", items, from }; }
      for (;;) {
        space();
        if (text[at] === "]") fail(t("jsonTrailingComma"));
        items.push(node(depth + 1));
        space();
        if (text[at] === "]") { at++; return { kind: "array", items, from }; }
        if (text[at] !== ",") fail(at >= text.length ? t("jsonEnd") : t("jsonComma"));
        at++;
      }
    }

    const root = node(0);
    space();
    if (at < text.length) fail(t("jsonMore"));
    return root;
  }

  /** Line and column from 1. */
  function place(text, position) {
    const before = text.slice(0, position);
    const line = before.split("\n").length;
    return { line, column: position - before.lastIndexOf("\n") };
  }

  /** The nodes as indented text; numbers as they were. */
  function format(node, indent = "") {
    const inner = indent + "  ";
    if (node.kind === "object") return node.members.length ? `{\n${node.members.map(([name, value]) => `${inner}${JSON.stringify(name)}: ${format(value, inner)}`).join(",\n")}\n${indent}}` : "{}";
    if (node.kind === "array") return node.items.length ? `[\n${node.items.map((item) => inner + format(item, inner)).join(",\n")}\n${indent}]` : "[]";
    return node.kind === "string" ? JSON.stringify(node.value) : node.raw;
  }

  const member = (node, name) => (node && node.kind === "object" ? (node.members.find(([known]) => known === name) || [])[1] : undefined);

  // --- shown

  const SHOWN_AT_ONCE = 100;
  const LINKS = /(?:^|@(?:odata\.)?)(?:id|nextLink|deltaLink|readLink|editLink|navigationLink|associationLink|context|mediaReadLink)$/;
  const isLink = (name, value) => name.includes("@") && LINKS.test(name) && value !== "";

  /**
   * The tree as elements. `follow(path)` gets the address, below the service root, of a link that was chosen. One tab
   * stop: the arrow keys go from line to line that can be folded or followed.
   */
  function tree(root, follow) {
    const box = el("div", { class: "json", tabindex: "-1" });
    const control = (node) => { node.tabIndex = -1; return node; };

    function link(name, value) {
      const path = site.belowRoot(value);
      if (path === null) return el("span", { class: "string" }, JSON.stringify(value));
      const anchor = control(el("a", { class: "string", href: `${site.data.query}#GET%20${encodeURIComponent(path)}` }, JSON.stringify(value)));
      anchor.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        follow(path);
      });
      return anchor;
    }

    function scalar(node, name) {
      if (node.kind === "string") return isLink(name, node.value) ? link(name, node.value) : el("span", { class: "string" }, JSON.stringify(node.value));
      return el("span", { class: node.kind }, node.raw);
    }

    function line(parent, label, node, name, last) {
      const comma = last ? "" : ",";
      const head = label === null ? [] : [el("span", { class: "name" }, JSON.stringify(label)), ": "];
      if (node.kind !== "object" && node.kind !== "array") { parent.append(el("div", { class: "l" }, ...head, scalar(node, name), comma)); return; }
      const entries = node.kind === "object" ? node.members.map(([key, value]) => [key, value, key]) : node.items.map((item) => [null, item, name]);
      const [open, close] = node.kind === "object" ? "{}" : "[]";
      if (!entries.length) { parent.append(el("div", { class: "l" }, ...head, open + close + comma)); return; }
      const inner = el("div", { class: "inner" });
      const summary = el("span", { class: "summary", hidden: true }, ` … ${site.number.format(entries.length)} ${close}${comma}`);
      const end = el("div", { class: "l" }, close + comma);
      const fold = control(el("button", { type: "button", class: "fold", "aria-expanded": "true", "aria-label": label === null ? t("fold") : t("foldName", { name: label }) }));
      fold.addEventListener("click", () => {
        const shut = fold.getAttribute("aria-expanded") === "true";
        fold.setAttribute("aria-expanded", String(!shut));
        inner.hidden = end.hidden = shut;
        summary.hidden = !shut;
      });
      parent.append(el("div", { class: "l" }, fold, ...head, open, summary), inner, end);
      let shown = 0;
      const more = () => {
        const until = Math.min(entries.length, shown + SHOWN_AT_ONCE);
        for (; shown < until; shown++) line(inner, entries[shown][0], entries[shown][1], entries[shown][2], shown === entries.length - 1);
        if (shown < entries.length) {
          const button = control(el("button", { type: "button", class: "secondary small" }, t("showMore", { count: site.number.format(entries.length - shown) })));
          button.addEventListener("click", () => { button.remove(); more(); });
          inner.append(button);
        }
      };
      more();
    }

    line(box, null, root, "", true);
    const controls = () => [...box.querySelectorAll("a, button")].filter((node) => node.offsetParent !== null);
    const first = box.querySelector("a, button");
    if (first) first.tabIndex = 0; else box.tabIndex = 0;
    box.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1, Home: -1e9, End: 1e9 }[event.key];
      if (step && event.target !== box) {
        const all = controls();
        const next = all[Math.max(0, Math.min(all.length - 1, all.indexOf(event.target) + step))];
        if (!next) return;
        event.preventDefault();
        event.target.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      } else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && event.target.matches(".fold")) {
        if ((event.target.getAttribute("aria-expanded") === "true") === (event.key === "ArrowLeft")) event.target.click();
        event.preventDefault();
      }
    });
    return box;
  }

  return { parse, place, format, member, tree };
})();
