// The globals of scripts: Domain, Transaction, Action (spec 04, 4.2). The host's part is bridge.py.
//
// Rows are transferred in columns ("frames"); an entity is a proxy for its index in one. Every read of one entity
// of a result list reads for the whole list: references, children, measures and display texts are prefetched together.
// Changes are sent to the host at once, so that errors and events occur at their statement.
"use strict";
const { defineProperty, freeze, keys, create: bare } = Object;
const { isArray } = Array;
const types = new Map(); // repository → type
const byHandle = []; // handle → state
const byKey = new Map(); // identity:guid → state
const hidden = new Set(); // identity:guid of entities that the caller may not read
const stateOf = new WeakMap(); // proxy → state
const repositories = new Map();
let language = "EN";
let kidsEpoch = 0, changeEpoch = 0; // versions at which collections, and measures and texts, were read

function call(method, ...args) {
  try {
    return host(method, ...args);
  } catch (error) {
    if (error.data && error.data.type)
      defineProperty(error, "type", { value: error.data.type, configurable: true, writable: true, enumerable: true });
    throw error;
  }
}

// -- rows ----------------------------------------------------------------------------------------------------------

function take(answer) {
  if (answer.t) for (const type of answer.t) addType(type);
  if (answer.f) for (const frame of answer.f) takeFrame(frame);
  if (answer.gone) for (const handle of answer.gone) byHandle[handle].is = "Deleted";
  if (answer.stale) for (const handle of answer.stale) byHandle[handle].stale = true;
  return answer;
}

function takeFrame(frame) {
  const { h: handles, i: ids, s: states } = frame;
  const type = types.get(frame.n);
  for (let i = 0; i < handles.length; i++) {
    let state = byHandle[handles[i]];
    if (state === undefined) state = addState(handles[i], type, ids[i]);
    state.frame = frame;
    state.at = i;
    state.over = null;
    state.stale = false;
    state.is = states === null ? "Unchanged" : states[i];
  }
}

function addState(handle, type, id) {
  const state = { handle, type, id, frame: null, at: 0, over: null, stale: false, is: "", group: null, kids: null,
    measures: null, measuresAt: 0, text: undefined, textAt: 0, calculated: null, calculatedAt: 0, proxy: null, custom: null };
  state.group = [state];
  state.proxy = new Proxy(state, entityTraps);
  stateOf.set(state.proxy, state);
  byHandle[handle] = state;
  byKey.set(type.root + ":" + id, state);
  return state;
}

function addType(given) {
  const type = { name: given.n, root: given.k, attributes: given.a.map((a) => a[0]), members: new Map(), known: bare(null) };
  const add = (name, member) => type.members.set(name.toLowerCase(), { name, kind: "", extra: "", read: null, ...member });
  // QuantityValue and SalesPersonId, as rules name them; attributes of these names come first.
  for (const [name, kind] of given.a)
    if (kind === "a" || kind === "q" || kind === "r") add(name + (kind === "r" ? "Id" : "Value"), { name, kind, read: part });
  for (const [name, read] of specials) add(name, { read });
  for (const name of given.o) add(name, { read: (state) => (...args) => operate(state, name, args) });
  for (const name of given.c) add(name, { kind: "c", read: collection });
  for (const [name, kind, extra] of given.a) add(name, { kind, extra: extra || "", read: readers[kind] });
  types.set(type.name, type);
}

function memberOf(type, name) {
  let member = type.known[name];
  if (member === undefined) member = type.known[name] = type.members.get(name.toLowerCase()) || null;
  return member;
}

function raw(state, name) {
  if (state.stale) refresh(state);
  if (state.over !== null && name in state.over) return state.over[name];
  const column = state.frame.c[name];
  return column === undefined ? null : column[state.at];
}

function refresh(state) {
  const stale = [state];
  for (let i = state.group.indexOf(state) + 1; i > 0 && i < state.group.length && stale.length < 100; i++)
    if (state.group[i].stale) stale.push(state.group[i]);
  take(call("refresh", stale.map((each) => each.handle)));
  for (const each of stale) each.stale = false;
}

function grouped(handles) {
  const group = handles.map((handle) => byHandle[handle]);
  for (const state of group) state.group = group;
  return group.map((state) => state.proxy);
}

// The result list of an entity: a value is requested for all entities of it that do not have it yet, beginning with
// this one, in batches of limited size.
const PREFETCHED = 1000;
function peersWithout(state, has) {
  if (state.stale) refresh(state); // and the entities of its list that still exist
  if (has(state)) return [state];
  const asked = [], group = state.group, first = group.indexOf(state);
  for (let i = 0; i < group.length && asked.length < PREFETCHED; i++) {
    const peer = group[(first + i) % group.length];
    if (peer === state || !(peer.stale || peer.is === "Deleted" || has(peer))) asked.push(peer);
  }
  return asked;
}

const readers = {
  v: (state, member) => raw(state, member.name),
  i: (state) => state.id,
  d(state, member) { const value = raw(state, member.name); return value === null ? null : new Date(value); },
  m(state, member) { const value = raw(state, member.name); return value === null ? null : new MultilanguageString(value); },
  a(state, member) { const value = raw(state, member.name); return value === null ? null : new Amount(value, measure(state, member)); },
  q(state, member) { const value = raw(state, member.name); return value === null ? null : new Quantity(value, measure(state, member)); },
  r: reference,
};

function part(state, member) { return raw(state, member.name); }

function measure(state, member) {
  const path = member.extra;
  if (path === "") return null;
  const fresh = state.measures !== null && state.measuresAt === changeEpoch;
  if (!fresh || !(path in state.measures)) {
    const asked = peersWithout(state, (peer) => peer.measures !== null && path in peer.measures)
      .filter((peer) => memberOf(peer.type, member.name) !== null);
    const codes = call("measures", asked.map((peer) => peer.handle), member.name);
    asked.forEach((peer, i) => {
      if (peer.measures === null || peer.measuresAt !== changeEpoch) peer.measures = bare(null);
      peer.measuresAt = changeEpoch;
      peer.measures[path] = codes[i];
    });
  }
  return state.measures[path];
}

function reference(state, member) {
  const id = raw(state, member.name);
  if (id === null) return null;
  const key = member.extra + ":" + id;
  if (!byKey.has(key) && !hidden.has(key)) {
    const asked = [], wanted = new Set(), group = state.group, first = group.indexOf(state);
    for (let i = 0; i < group.length && asked.length < PREFETCHED; i++) {
      const peer = group[(first + i) % group.length];
      const peerMember = memberOf(peer.type, member.name);
      if (peer.is === "Deleted" && peer !== state || peer.stale || peerMember === null || peerMember.kind !== "r") continue;
      const peerKey = peerMember.extra + ":" + raw(peer, peerMember.name);
      if (wanted.has(peerKey) || byKey.has(peerKey) || hidden.has(peerKey)) continue;
      wanted.add(peerKey);
      asked.push(peer.handle);
    }
    const answer = take(call("follow", asked, member.name));
    grouped(answer.r);
    for (const each of wanted) if (!byKey.has(each)) hidden.add(each);
  }
  const target = byKey.get(key);
  return target === undefined ? null : target.proxy;
}

function changed(answer) {
  kidsEpoch++;
  changeEpoch++;
  return take(answer);
}

function operate(state, name, args) {
  const answer = changed(call("operate", state.handle, name, args.map(wire)));
  if (answer.r === undefined) return answer.v;
  return isArray(answer.r) ? grouped(answer.r) : byHandle[answer.r].proxy;
}

function displayText(state) {
  if (state.text === undefined || state.textAt !== changeEpoch) {
    const asked = peersWithout(state, (peer) => peer.text !== undefined);
    const texts = call("display", asked.map((peer) => peer.handle));
    asked.forEach((peer, i) => { peer.text = texts[i]; peer.textAt = changeEpoch; });
  }
  return state.text;
}

// A calculated attribute of administrators, kept until something changes.
function calculated(state, name) {
  const known = state.calculated !== null && name in state.calculated;
  if (!known || state.calculatedAt !== changeEpoch) {
    const ofType = (peer) => peer.type === state.type;
    const asked = peersWithout(state, (peer) => peer.calculated !== null && name in peer.calculated).filter(ofType);
    // After a change each entity is asked for again when it is read; the host loads what the next ones need.
    const first = state.group.indexOf(state);
    const ahead = known ? state.group.slice(first + 1, first + 100).filter((peer) => ofType(peer) && peer.is !== "Deleted") : [];
    const found = call("calculated", asked.map((peer) => peer.handle), ahead.map((peer) => peer.handle), name);
    if (found === null) throw unknown(state, name);
    asked.forEach((peer, i) => {
      if (peer.calculated === null || peer.calculatedAt !== changeEpoch) peer.calculated = bare(null);
      peer.calculatedAt = changeEpoch;
      peer.calculated[name] = found[i];
    });
  }
  const { v: value, f: failed } = state.calculated[name];
  if (failed) call("calculated", [state.handle], [], name); // throws
  return value;
}

const specials = [
  ["Id", (state) => state.id],
  ["DisplayText", displayText],
  ["ObjectState", (state) => { if (state.stale) refresh(state); return state.is; }],
  ["CustomProperties", (state) => state.custom || (state.custom = new Proxy(state, customTraps))],
  ["Delete", (state) => () => { changed(call("delete", state.handle)); }],
  ["toString", (state) => () => displayText(state)],
  ["valueOf", (state) => () => state.proxy],
  ["toJSON", (state) => () => snapshot(state)],
];
// Names that the language itself reads from any object; other unknown names are errors.
const silent = new Set(["then", "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "length", "__proto__"]);

function snapshot(state) {
  const found = {};
  for (const name of state.type.attributes) found[name] = raw(state, name);
  found.Id = state.id;
  return found;
}

function unknown(state, name) {
  const error = new TypeError(state.type.name + " has no attribute '" + name + "'");
  error.code = 203;
  error.type = "UnknownProperty";
  return error;
}

const entityTraps = {
  get(state, name) {
    if (typeof name === "symbol")
      return name === Symbol.toPrimitive ? (hint) => (hint === "number" ? NaN : displayText(state)) : undefined;
    const member = memberOf(state.type, name);
    if (member !== null) return member.read(state, member);
    if (/^customproperty_/i.test(name)) return customByName(state, name);
    if (silent.has(name)) return Object.prototype[name];
    return calculated(state, name);
  },
  set(state, name, value) {
    if (typeof name === "symbol") throw new TypeError("An entity has no such attribute");
    const member = memberOf(state.type, name);
    if (state.stale) refresh(state);
    const answer = call("set", state.handle, name, wire(value));
    changeEpoch++;
    if (member !== null && member.kind === "r") kidsEpoch++;
    if (isArray(answer)) {
      if (state.over === null) state.over = bare(null);
      state.over[member.name] = answer[0];
      state.is = answer[1];
    } else changed(answer);
    return true;
  },
  has: (state, name) => typeof name === "string" && memberOf(state.type, name) !== null,
  deleteProperty() { throw new TypeError("An attribute cannot be deleted; set it to null"); },
  defineProperty() { throw new TypeError("An entity takes no properties of one's own"); },
  setPrototypeOf: () => false,
  preventExtensions: () => false,
  ownKeys: (state) => ["Id", ...state.type.attributes.filter((name) => name !== "Id")],
  getOwnPropertyDescriptor(state, name) {
    const member = typeof name === "string" ? memberOf(state.type, name) : null;
    if (member === null || !state.type.attributes.includes(member.name)) return undefined;
    return { value: member.read(state, member), writable: true, enumerable: true, configurable: true };
  },
};

// -- custom properties ---------------------------------------------------------------------------------------------

function customValues(state) {
  if (state.stale) refresh(state);
  return state.frame.x === null ? {} : state.frame.x[state.at];
}

function customByName(state, apiName) {
  const code = call("customCode", state.handle, apiName);
  return customTraps.get(state, code);
}

const customTraps = {
  get(state, code) {
    if (typeof code === "symbol") return undefined;
    if (code === "toJSON") return () => customValues(state);
    const values = customValues(state);
    return Object.prototype.hasOwnProperty.call(values, code) ? new CustomPropertyValue(values[code]) : null;
  },
  set(state, code, value) { changed(call("setCustom", state.handle, String(code), wire(value))); return true; },
  deleteProperty(state, code) { changed(call("setCustom", state.handle, String(code), null)); return true; },
  has: (state, code) => typeof code === "string" && code in customValues(state),
  ownKeys: (state) => keys(customValues(state)),
  getOwnPropertyDescriptor(state, code) {
    const value = customTraps.get(state, code);
    return value === null || value === undefined ? undefined : { value, writable: true, enumerable: true, configurable: true };
  },
  defineProperty: () => false,
  setPrototypeOf: () => false,
  preventExtensions: () => false,
};

// -- collections ---------------------------------------------------------------------------------------------------

function collection(state, member) {
  const name = member.name;
  if (state.kids === null || state.kids[name] === undefined) {
    const asked = peersWithout(state, (peer) => peer.kids !== null && peer.kids[name] !== undefined)
      .filter((peer) => { const known = memberOf(peer.type, name); return known !== null && known.kind === "c"; });
    const answer = take(call("children", asked.map((peer) => peer.handle), name));
    grouped(answer.m.flat());
    asked.forEach((peer, i) => {
      if (peer.kids === null) peer.kids = bare(null);
      peer.kids[name] = new Proxy({ owner: peer, name, items: answer.m[i], readAt: kidsEpoch }, collectionTraps);
    });
  }
  return state.kids[name];
}

function itemsOf(list) {
  if (list.readAt !== kidsEpoch) {
    const answer = take(call("children", [list.owner.handle], list.name));
    grouped(answer.m[0]);
    list.items = answer.m[0];
    list.readAt = kidsEpoch;
  }
  return list.items.map((handle) => byHandle[handle].proxy);
}

const reading = new Set(["at", "concat", "entries", "every", "filter", "find", "findIndex", "flatMap", "forEach",
  "includes", "indexOf", "join", "keys", "lastIndexOf", "map", "reduce", "reduceRight", "slice", "some", "values"]);

const collectionTraps = {
  get(list, name) {
    if (name === Symbol.iterator) return () => itemsOf(list)[Symbol.iterator]();
    if (typeof name === "symbol") return undefined;
    if (name === "Count" || name === "length" || name === "count") return itemsOf(list).length;
    if (/^\d+$/.test(name)) return itemsOf(list)[Number(name)];
    if (reading.has(name)) return (...args) => { const items = itemsOf(list); return items[name](...args); };
    switch (name) {
      case "Delete": return (item) => { changed(call("deleteChild", list.owner.handle, list.name, wire(item))); };
      case "DeleteAll": return () => { changed(call("deleteChildren", list.owner.handle, list.name)); };
      case "createNew": return (initial) => created(call("createChild", list.owner.handle, list.name, wire(initial)));
      case "toArray": return () => itemsOf(list);
      case "toJSON": return () => itemsOf(list);
      case "toString": return () => itemsOf(list).join(", ");
    }
    return undefined;
  },
  set() { throw new TypeError("A collection is changed by createNew, Delete and DeleteAll"); },
  has: (list, name) => typeof name === "string" && /^\d+$/.test(name) && Number(name) < itemsOf(list).length,
  ownKeys: (list) => itemsOf(list).map((_, i) => String(i)),
  getOwnPropertyDescriptor(list, name) {
    const value = typeof name === "string" && /^\d+$/.test(name) ? itemsOf(list)[Number(name)] : undefined;
    return value === undefined ? undefined : { value, writable: false, enumerable: true, configurable: true };
  },
  defineProperty: () => false,
  setPrototypeOf: () => false,
  preventExtensions: () => false,
};

// -- values --------------------------------------------------------------------------------------------------------

// A double keeps fifteen digits of a decimal: further digits are rounding noise.
const exact = (number) => Number(number.toPrecision(15));

function numberOf(value, what) {
  const number = typeof value === "object" && value !== null && "Value" in value ? value.Value : value;
  const found = typeof number === "string" && number.trim() !== "" ? Number(number) : number;
  if (typeof found !== "number" || !isFinite(found)) throw new TypeError(what + " needs a number, not " + String(value));
  return found;
}

// `kind` and `member`: an entity instead of a code is replaced by its code.
function measured(name, part, kind, member) {
  const codeOf = (given) => {
    const state = stateOf.get(given);
    if (state === undefined) return String(given);
    if (state.type.name !== kind) throw new TypeError(name + " needs an entity of " + kind + ", not of " + state.type.name);
    return state.proxy[member];
  };
  const Type = { [name]: function (value, code) {
    if (new.target === undefined) return new Type(value, code);
    const given = typeof value === "object" && value !== null ? value : null;
    const unit = code === undefined ? (given === null ? null : given[part]) : code;
    defineProperty(this, "Value", { value: numberOf(value, name), enumerable: true });
    defineProperty(this, part, { value: unit === undefined || unit === null ? null : codeOf(unit), enumerable: true });
    freeze(this);
  } }[name];
  const of = (value) => (value instanceof Type ? value : new Type(value));
  const plural = name === "Quantity" ? "Quantities" : name + "s";
  // The case of codes does not matter (spec 14, 14.1).
  const isSame = (one, other) => one === other || (one !== null && other !== null && one.toUpperCase() === other.toUpperCase());
  const both = (one, other, combine) => {
    const left = of(one), right = of(other);
    if (left[part] !== null && right[part] !== null && !isSame(left[part], right[part]))
      throw new TypeError(plural + " in " + left[part] + " and " + right[part] + " cannot be combined");
    return new Type(exact(combine(left.Value, right.Value)), left[part] === null ? right[part] : left[part]);
  };
  const scaled = (value, factor, combine) => {
    const left = of(value);
    return new Type(exact(combine(left.Value, numberOf(factor, name))), left[part]);
  };
  const operations = {
    Add: (one, other) => both(one, other, (a, b) => a + b),
    Subtract: (one, other) => both(one, other, (a, b) => a - b),
    Multiply: (value, factor) => scaled(value, factor, (a, b) => a * b),
    // Divided by a number: a value of the same type; divided by a value of the same type: their ratio.
    Divide(value, divisor) {
      if (numberOf(divisor, name) === 0) throw new RangeError(name + " divided by zero");
      if (typeof divisor !== "object") return scaled(value, divisor, (a, b) => a / b);
      return both(value, divisor, (a, b) => a / b).Value;
    },
    Negate: (value) => scaled(value, -1, (a, b) => a * b),
    Abs: (value) => scaled(value, 1, (a) => Math.abs(a)),
    Round: (value, digits = 2) => scaled(value, digits, (a, d) => { const f = 10 ** d; return Math.sign(a) * Math.round(exact(Math.abs(a) * f)) / f; }),
    Compare: (one, other) => both(one, other, (a, b) => (a < b ? -1 : a > b ? 1 : 0)).Value,
    Equals: (one, other) => one !== null && other !== null && isSame(of(one)[part], of(other)[part]) && of(one).Value === of(other).Value,
    Min: (one, other) => (operations.Compare(one, other) <= 0 ? of(one) : of(other)),
    Max: (one, other) => (operations.Compare(one, other) >= 0 ? of(one) : of(other)),
    Sum: (values) => [...values].reduce((sum, each) => operations.Add(sum, each), new Type(0)),
  };
  for (const key of keys(operations)) {
    Type[key] = operations[key];
    if (key !== "Sum") Type.prototype[key] = function (other) { return operations[key](this, other); };
  }
  Type.prototype.valueOf = function () { return this.Value; };
  Type.prototype.toString = function () { return this[part] === null ? String(this.Value) : this.Value + " " + this[part]; };
  freeze(Type.prototype);
  return freeze(Type);
}

const Amount = measured("Amount", "Currency", "General.Currencies.Currencies", "CurrencySign");
const Quantity = measured("Quantity", "Unit", "General.Products.MeasurementUnits", "Code");

function MultilanguageString(texts) {
  if (new.target === undefined) return new MultilanguageString(texts);
  const given = typeof texts === "object" && texts !== null ? texts : { [language]: String(texts) };
  for (const code of keys(given)) {
    if (given[code] === null || given[code] === undefined) continue;
    const value = String(given[code]), upper = code.toUpperCase();
    defineProperty(this, upper, { value, enumerable: true });
    defineProperty(this, upper.toLowerCase(), { value });
  }
  freeze(this);
}
MultilanguageString.prototype = freeze({
  constructor: MultilanguageString,
  Get(code) { const text = this[String(code).toUpperCase()]; return typeof text === "string" ? text : null; },
  With(code, text) { return new MultilanguageString({ ...this, [String(code).toUpperCase()]: text }); },
  toString() {
    const first = keys(this)[0];
    return this[language] !== undefined ? this[language] : this.EN !== undefined ? this.EN : first === undefined ? "" : this[first];
  },
});

function CustomPropertyValue(given, description) {
  if (new.target === undefined) return new CustomPropertyValue(given, description);
  const fields = typeof given === "object" && given !== null && !(given instanceof Date) ? given : { Value: given, Description: description };
  const value = fields.Value instanceof Date ? fields.Value.toISOString() : fields.Value;
  defineProperty(this, "Value", { value: value === undefined || value === null ? null : String(value), enumerable: true });
  const said = fields.Description;
  defineProperty(this, "Description", { value: said === undefined || said === null ? null : said instanceof MultilanguageString ? said : new MultilanguageString(said), enumerable: true });
  defineProperty(this, "ValueId", { value: fields.ValueId === undefined ? null : fields.ValueId, enumerable: true });
  freeze(this);
}
CustomPropertyValue.prototype = freeze({
  constructor: CustomPropertyValue,
  toString() { return this.Value === null ? "" : this.Value; },
});

// Converts values for the host: entities to handles, dates to ISO strings.
function wire(value) {
  switch (typeof value) {
    case "undefined": return null;
    case "number":
      if (!isFinite(value)) throw new TypeError("A number that is not finite cannot be stored");
      return value;
    case "bigint": return String(value);
    case "function": case "symbol": throw new TypeError("A " + typeof value + " cannot be stored");
    case "object": break;
    default: return value;
  }
  if (value === null) return null;
  const state = stateOf.get(value);
  if (state !== undefined) return { $e: state.handle };
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Number || value instanceof String || value instanceof Boolean) return wire(value.valueOf());
  if (isArray(value)) return value.map(wire);
  if (value instanceof CustomPropertyValue)
    return { Value: value.Value, Description: value.Description === null ? null : { ...value.Description } };
  const found = bare(null);
  for (const key of keys(value)) found[key] = wire(value[key]);
  return found;
}

// -- Domain, Transaction, Action -----------------------------------------------------------------------------------

function created(answer) { return byHandle[changed(answer).r].proxy; }

function repository(name) {
  const key = name.toLowerCase();
  let found = repositories.get(key);
  if (found === undefined) {
    const exactName = take(call("describe", name)).v;
    found = freeze({
      name: exactName,
      query: (filter, options) => grouped(take(call("query", exactName, wire(filter), wire(options))).r),
      getById: (id) => grouped(take(call("get", exactName, [wire(id)])).r)[0] || null,
      getByIdList: (ids) => grouped(take(call("get", exactName, isArray(ids) ? ids.map(wire) : String(ids).split(","))).r),
      createNew: (initial) => created(call("create", exactName, wire(initial))),
    });
    repositories.set(key, found);
  }
  return found;
}

const Types = freeze({ Amount, Quantity, MultilanguageString, CustomPropertyValue });

function namespace(path) {
  const known = bare(null);
  return new Proxy(freeze({}), {
    get(_, name) {
      if (typeof name === "symbol" || name === "toJSON") return undefined;
      if (path === "" && name.toLowerCase() === "types") return Types;
      if (known[name] === undefined)
        known[name] = /.repository$/i.test(name) ? repository(path + name.slice(0, -10)) : namespace(path + name + ".");
      return known[name];
    },
    set() { throw new TypeError("Domain cannot be changed"); },
  });
}

// -- calculated attributes -----------------------------------------------------------------------------------------

// What a script returned for an entity, for the host: a text, or for other types a number, a boolean or a text.
function returned(value, type) {
  if (value === undefined || value === null) return null;
  if (typeof value === "function" || typeof value === "symbol" || typeof value === "object" && typeof value.then === "function")
    throw new TypeError("A " + (typeof value === "object" ? "promise" : typeof value) + " is no value of an attribute");
  if (typeof value === "number" && !isFinite(value)) throw new TypeError("A number that is not finite is no value of an attribute");
  if (value instanceof Date) return value.toISOString();
  if (type !== "String" && stateOf.has(value)) return stateOf.get(value).id;
  if (type !== "String" && (value instanceof Amount || value instanceof Quantity)) return value.Value;
  if (type !== "String" && typeof value !== "object") return typeof value === "bigint" ? String(value) : value;
  const isPlain = isArray(value) || typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype;
  return isPlain ? JSON.stringify(value) : String(value);
}

function thrown(error) {
  const isError = error instanceof Error;
  const read = (name) => (isError && typeof error[name] === "string" ? error[name].slice(0, 2000) : "");
  return { e: isError ? read("message") : String(error).slice(0, 2000), n: read("name"), s: read("stack") };
}

const text = (value) => (value === undefined || value === null ? "" : String(value));
function transact(verb) {
  const answer = call("transaction", verb);
  hidden.clear();
  changed(answer);
}
const once = (read) => { let found; return () => found === undefined ? (found = freeze(read())) : found; };
const user = once(() => { const found = call("user"); freeze(found.roles); return found; });
const session = once(() => {
  const found = call("session");
  return { id: found.id, startedAt: found.startedAt === null ? null : new Date(found.startedAt) };
});
const send = (method, url, body, headers) =>
  new Response(call("http", method, String(url), typeof body === "object" && body !== null ? text(JSON.stringify(body)) : text(body),
    typeof body === "object" && body !== null, wire(headers === undefined ? null : headers)));
// A response converts to its body as a string: JSON.parse(response), response + "", response.includes("x").
function Response(given) {
  const headers = bare(null);
  for (const [name, value] of given.headers) {
    const lower = name.toLowerCase(), known = headers[lower];
    const shown = keys(headers).find((each) => each.toLowerCase() === lower) || name;
    const text = known === undefined ? value : known + ", " + value;
    defineProperty(headers, shown, { value: text, enumerable: true, configurable: true });
    if (shown !== lower) defineProperty(headers, lower, { value: text, configurable: true });
  }
  given.headers = freeze(headers);
  for (const name of keys(given)) defineProperty(this, name, { value: given[name], enumerable: true });
  defineProperty(this, "length", { value: given.body.length });
  freeze(this);
}
Response.prototype = freeze(bare(String.prototype, {
  constructor: { value: Response },
  toString: { value() { return this.body; } },
  valueOf: { value() { return this.body; } },
  toJSON: { value() { return { ...this }; } },
}));
const content = (value) => (ArrayBuffer.isView(value) ? [...value] : text(value));

return function start(given) {
  language = given.language;
  const expose = (name, value) =>
    defineProperty(globalThis, name, { value, configurable: true, writable: true, enumerable: false });
  const Action = {
    log(...messages) { call("log", "Information", messages.map(text).join(" ")); },
    error(...messages) { call("log", "Error", messages.map(text).join(" ")); },
    cancel(message) { call("cancel", text(message)); },
    notify: freeze({ user(id, message) { changed(call("notify", wire(id), text(message))); } }),
    http: freeze({
      get: (url, headers) => send("GET", url, "", headers),
      post: (url, body, headers) => send("POST", url, body, headers),
    }),
  };
  defineProperty(Action, "user", { get: user, enumerable: true });
  defineProperty(Action, "session", { get: session, enumerable: true });
  if (given.files)
    Action.files = freeze({ create: (document, name, data) => created(call("file", wire(document), text(name), content(data))) });
  for (const member of keys(given.members)) // of apps
    Action[member] = (...args) => call(given.members[member], ...args.map(wire));
  expose("Action", freeze(Action));
  expose("Domain", namespace(""));
  expose("Transaction", freeze({
    begin() { transact("begin"); }, commit() { transact("commit"); }, rollback() { transact("rollback"); },
  }));
  if (given.subject !== null) {
    take(given.subject);
    expose("subject", byHandle[given.subject.r].proxy);
  }
  if (given.event !== null) expose("event", freeze(given.event));
  if (given.rows === null) return null;
  const subjects = grouped(take(given.rows).r);
  return (body, parameters) => subjects.map((subject) => {
    try {
      return { v: returned(body(parameters, subject), given.rows.type) };
    } catch (error) {
      return thrown(error);
    }
  });
};
