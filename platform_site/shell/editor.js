// Code editors (spec 04, 4.4): every <textarea data-code> becomes one, and stays the form's field. `code` is for scripts of a
// page: the editor of an address, JSON to read, and where a text is no JSON. <div data-differences> shows those of two texts.
//
// An editor lives in a shadow root: there CodeMirror brings its styles as constructed sheets, which a policy without
// inline styles allows. Colours are custom properties of the page (scripts.css), which reach into the shadow root, so
// light and dark need nothing here.
import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completeAnyWord, completionKeymap, pickedCompletion } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { json, jsonLanguage } from "@codemirror/lang-json";
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { completionSource } from "./completion.js";
import { EditorState, Prec } from "@codemirror/state";
import { Decoration, drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers, MatchDecorator, placeholder, ViewPlugin } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const CHECK_AFTER_MS = 600;
const languages = { javascript, json, template: () => [] };

const highlighting = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--code-number)" },
  { tag: [tags.comment], color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName)], color: "var(--code-function)" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--code-property)" },
  { tag: tags.invalid, color: "var(--error-fg)" },
]);

const theme = EditorView.theme({
  "&": { color: "var(--body-fg)", backgroundColor: "var(--body-bg)", fontSize: "0.8125rem" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--font-family-monospace)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--body-fg)" },
  ".cm-cursor": { borderLeftColor: "var(--body-fg)" },
  ".cm-gutters": { backgroundColor: "var(--darkened-bg)", color: "var(--body-quiet-color)", borderRight: "1px solid var(--hairline-color)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--code-line)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--code-selection)" },
  ".cm-selectionMatch, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--code-match)" },
  ".cm-panels, .cm-tooltip": { backgroundColor: "var(--darkened-bg)", color: "var(--body-fg)", borderColor: "var(--border-color)" },
  ".cm-textfield, .cm-button": { backgroundColor: "var(--body-bg)", backgroundImage: "none", color: "var(--body-fg)", borderColor: "var(--border-color)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--code-selection)", color: "var(--body-fg)" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--error-fg)" },
  ".cm-completionDetail": { float: "right", marginLeft: "2em", color: "var(--body-quiet-color)", fontStyle: "normal" },
  ".cm-tooltip-autocomplete ul li[aria-selected] .cm-completionDetail": { color: "var(--body-fg)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { maxWidth: "calc(100vw - 2rem)", fontFamily: "var(--font-family-monospace)" },
  ".cm-content a": { color: "var(--link-fg, var(--accent))", cursor: "pointer" },
  ".cm-collapsedLines": { color: "var(--body-quiet-color)", background: "var(--darkened-bg)" },
  // CodeMirror's own mark, U+299A, is in few fonts.
  ".cm-collapsedLines:before, .cm-collapsedLines:after": { content: '"…"' },
  ".cm-changedText, .cm-deletedChunk .cm-deletedText": { background: "var(--code-selection)" },
  ".cm-deletedChunk": { backgroundColor: "var(--darkened-bg)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--darkened-bg)", color: "var(--body-quiet-color)", borderColor: "var(--border-color)" },
});

// The shadow root's host, after `before`, with an editor of these extensions.
function mounted(before, doc, label, extensions) {
  const host = document.createElement("div");
  host.className = "code-editor";
  const root = host.attachShadow({ mode: "open" });
  before.after(host);
  return new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc,
      extensions: [
        highlightSpecialChars(), history(), drawSelection(), bracketMatching(), highlightSelectionMatches(), EditorView.lineWrapping,
        syntaxHighlighting(highlighting), theme, EditorView.contentAttributes.of({ "aria-label": label, "aria-multiline": "true" }), extensions,
        // The list of completions scrolls, so it can have the focus; it is worked from the text.
        EditorView.updateListener.of(({ view }) => { for (const list of view.dom.querySelectorAll(".cm-tooltip-autocomplete > ul:not([tabindex])")) list.tabIndex = 0; }),
      ],
    }),
  });
}

// An editor in place of a field, which keeps its value and its events.
function enhance(textarea, extensions) {
  const label = document.querySelector(`label[for="${textarea.id}"]`);
  const view = mounted(textarea, textarea.value, label ? label.textContent.replace(/:\s*$/, "") : textarea.name, [
    extensions,
    EditorState.readOnly.of(textarea.readOnly || textarea.disabled),
    EditorView.updateListener.of((update) => {
      const text = update.state.doc.toString();
      if (!update.docChanged || text === textarea.value) return;
      textarea.value = text;
      textarea.dispatchEvent(new Event("input", { bubbles: true }));
    }),
  ]);
  view.dom.getRootNode().host.dataset.for = textarea.name;
  textarea.classList.add("code-hidden");
  textarea.tabIndex = -1;
  if (label) label.addEventListener("click", () => view.focus());
  textarea.addEventListener("focus", () => view.focus());
  textarea.addEventListener("input", () => {
    const { doc } = view.state;
    if (doc.toString() !== textarea.value) view.dispatch({ changes: { from: 0, to: doc.length, insert: textarea.value }, selection: { anchor: textarea.value.length } });
  });
  return view;
}

const program = (textarea) => enhance(textarea, [
  lineNumbers(), foldGutter(), lintGutter(), indentOnInput(), closeBrackets(), autocompletion({ override: [textarea.dataset.completion ? completionSource(textarea) : completeAnyWord] }),
  highlightActiveLine(), highlightActiveLineGutter(), indentUnit.of("  "), (languages[textarea.dataset.code] || javascript)(),
  // Tab indents, so the way out by keyboard is Escape, then Tab; CodeMirror tells screen readers nothing of it.
  keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...completionKeymap, ...lintKeymap, indentWithTab]),
]);

/**
 * An address of one or a few lines. complete(text before the caret) → {length of the word's begin, items: [{label, detail, kind,
 * insert, back}]}, where `back` is how far from the end of what is inserted the caret then stands. enter() runs it.
 */
function address(textarea, { complete, enter }) {
  const option = ({ label, detail, kind, insert, back }, index) => ({
    label, detail, type: kind, sortText: String(index).padStart(4, "0"),
    apply(view, completion, from, to) {
      // What follows of the same word is replaced with it.
      const rest = kind === "value" ? 0 : /^[\w$.]*/.exec(view.state.sliceDoc(to))[0].length;
      view.dispatch({ changes: { from, to: to + rest, insert }, selection: { anchor: from + insert.length - back }, userEvent: "input.complete", annotations: pickedCompletion.of(completion) });
    },
  });
  function source(context) {
    const { length, items } = complete(context.state.sliceDoc(0, context.pos));
    const typed = context.state.sliceDoc(context.pos - length, context.pos).toLowerCase();
    const fitting = items.filter(({ label }) => label.toLowerCase().includes(typed));
    if (fitting.length === 1 && fitting[0].insert.toLowerCase() === typed) return null;
    // Before a word is begun Enter runs what is there; the list comes by Ctrl+Space.
    return items.length && (length || context.explicit) ? { from: context.pos - length, options: items.map(option), validFor: /^['$\w]*$/ } : null;
  }
  // What is typed in full already is run.
  function acceptOrEnter(view) {
    const { doc } = view.state;
    if (!acceptCompletion(view) || view.state.doc.eq(doc)) enter();
    return true;
  }
  return enhance(textarea, [
    autocompletion({ override: [source], icons: false, activateOnTypingDelay: 0, interactionDelay: 0 }), placeholder(textarea.placeholder),
    Prec.highest(keymap.of([{ key: "Tab", run: acceptCompletion }, { key: "Enter", run: acceptOrEnter }])),
    keymap.of([...defaultKeymap, ...historyKeymap]),
  ]);
}

/**
 * JSON to read in `host`, with folding and search. Links are those of OData; follow(address) runs for one that is chosen, by
 * Enter the one of the caret's line. linked(address) → the page's URL of it, or null.
 */
function reading(host, text, label, linked, follow) {
  const links = /"(?:[^"]*@)(?:odata\.)?(?:id|nextLink|deltaLink|readLink|editLink|navigationLink|associationLink|context|mediaReadLink)": "((?:[^"\\]|\\.)+)"/g;
  const address = (match) => JSON.parse(`"${match[1]}"`);
  const matcher = new MatchDecorator({
    regexp: links,
    decorate(add, from, to, match) {
      const href = linked(address(match));
      if (href) add(to - match[1].length - 1, to - 1, Decoration.mark({ tagName: "a", attributes: { href, tabindex: "-1" } }));
    },
  });
  const plugin = ViewPlugin.define((view) => ({ decorations: matcher.createDeco(view), update(update) { this.decorations = matcher.updateDeco(update, this.decorations); } }), { decorations: (value) => value.decorations });
  const chosen = (view, position) => { links.lastIndex = 0; const match = links.exec(view.state.doc.lineAt(position).text); return match && linked(address(match)) ? address(match) : null; };
  const start = document.createElement("span");
  host.replaceChildren(start);
  const view = mounted(start, text, label, [
    json(), lineNumbers(), foldGutter(), plugin, EditorState.readOnly.of(true), EditorView.contentAttributes.of({ inputmode: "none", "aria-readonly": "true" }),
    EditorView.domEventHandlers({
      click(event, view) {
        const found = event.target.closest && event.target.closest("a") && chosen(view, view.posAtDOM(event.target));
        if (!found || event.ctrlKey || event.metaKey || event.shiftKey) return false;
        event.preventDefault();
        follow(found);
        return true;
      },
    }),
    keymap.of([
      { key: "Enter", run: (view) => { const found = chosen(view, view.state.selection.main.head); if (found) follow(found); return Boolean(found); } },
      ...foldKeymap, ...searchKeymap, ...defaultKeymap,
    ]),
  ]);
  start.remove();
  return view;
}

/**
 * The differences of two texts in `host`, <div data-differences="id of a JSON script" data-labels="id of another">, each with two
 * texts: side by side, on a narrow screen one below the other. The page has them as a text, too.
 */
function differences(host) {
  const [before, after] = JSON.parse(document.getElementById(host.dataset.differences).textContent);
  const labels = JSON.parse(document.getElementById(host.dataset.labels).textContent);
  const options = { gutter: true, collapseUnchanged: { margin: 3, minSize: 6 }, diffConfig: { scanLimit: 2000, timeout: 500 } };
  const shown = (label) => [
    lineNumbers(), highlightSpecialChars(), EditorView.lineWrapping, theme, EditorState.readOnly.of(true), EditorState.phrases.of({ "$ unchanged lines": host.dataset.unchanged }),
    EditorView.contentAttributes.of({ "aria-label": label, "aria-multiline": "true", "aria-readonly": "true", inputmode: "none" }), keymap.of([...searchKeymap, ...defaultKeymap]),
  ];
  const root = host.attachShadow({ mode: "open" });
  const narrow = window.matchMedia("(max-width: 48rem)");
  let view = null;
  const draw = () => {
    if (view) view.destroy();
    view = narrow.matches
      ? new EditorView({ root, parent: root, state: EditorState.create({ doc: after, extensions: [shown(labels[1]), unifiedMergeView({ original: before, mergeControls: false, ...options })] }) })
      : new MergeView({ root, parent: root, a: { doc: before, extensions: shown(labels[0]) }, b: { doc: after, extensions: shown(labels[1]) }, ...options });
    host.dataset.shown = narrow.matches ? "unified" : "side-by-side";
  };
  narrow.addEventListener("change", draw);
  draw();
}

/** Where and why a text is no JSON: {line, column, message}, or null. The message is the browser's. */
function jsonProblem(text) {
  try { JSON.parse(text); return null; } catch (error) {
    let at = text.length;
    jsonLanguage.parser.parse(text).iterate({ enter: ({ type, from }) => { if (type.isError) at = Math.min(at, from); } });
    const before = text.slice(0, at);
    return { line: before.split("\n").length, column: at - before.lastIndexOf("\n"), message: error.message.replace(/,? (?:in JSON )?at (?:position|line) .*/s, "") };
  }
}

// {line, column, message}, counted from 1; either may be missing.
function show(view, problems) {
  const { doc } = view.state;
  const found = problems.map(({ line, column, message }) => {
    const at = doc.line(Math.min(Math.max(line || 1, 1), doc.lines));
    const from = Math.min(at.from + Math.max((column || 1) - 1, 0), at.to);
    const word = view.state.wordAt(from);
    return { from, to: word ? word.to : Math.min(from + 1, at.to), severity: "error", message };
  });
  view.dispatch(setDiagnostics(view.state, found));
}

const views = new Map(); // name of the field → view
for (const textarea of document.querySelectorAll("textarea[data-code]")) views.set(textarea.name, program(textarea));
for (const host of document.querySelectorAll("[data-differences]")) {
  differences(host);
  for (const text of document.querySelectorAll("details[data-as-text]")) text.open = false;
}
window.code = { address, reading, jsonProblem };

// Other scripts of the page, and tests, speak to the editors by events: {field, problems} and {field, line, column}.
document.addEventListener("code:problems", ({ detail }) => {
  const view = views.get(detail.field);
  if (view) show(view, detail.problems);
});
document.addEventListener("code:goto", ({ detail }) => {
  const view = views.get(detail.field);
  if (!view) return;
  const at = view.state.doc.line(Math.min(Math.max(detail.line, 1), view.state.doc.lines));
  view.dispatch({ selection: { anchor: Math.min(at.from + Math.max((detail.column || 1) - 1, 0), at.to) }, scrollIntoView: true });
  view.focus();
});

// What the server says of the texts, a moment after the last key.
const checked = document.querySelector("textarea[data-check]");
if (checked) {
  const { form } = checked;
  let timer = 0, latest = 0;
  const check = async () => {
    const mine = ++latest;
    const response = await fetch(checked.dataset.check, { method: "POST", body: new FormData(form), credentials: "same-origin" });
    if (!response.ok || mine !== latest) return;
    const { problems } = await response.json();
    for (const [name, view] of views) show(view, problems.filter((problem) => problem.field === name));
    document.documentElement.dataset.checked = String(mine);
  };
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => check().catch(() => {}), CHECK_AFTER_MS); });
  check().catch(() => {});
}
