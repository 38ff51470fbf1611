// What tests ask of UI5's ODataModel v4 without any control. Each function returns plain JSON.
//
// The address of the page names the service and the token: ?service=…&token=…
sap.ui.define([
  "sap/ui/core/Messaging", "sap/ui/model/Filter", "sap/ui/model/FilterOperator", "sap/ui/model/Sorter",
  "sap/ui/model/odata/v4/ODataModel",
], (Messaging, Filter, FilterOperator, Sorter, ODataModel) => {
  const given = new URLSearchParams(window.location.search);

  function newModel(parameters) {
    return new ODataModel({
      autoExpandSelect: true, operationMode: "Server", serviceUrl: given.get("service"),
      // UI5 knows no base types.
      metadataUrlParams: { options: "flat" },
      httpHeaders: { Authorization: `Bearer ${given.get("token")}` }, ...parameters,
    });
  }

  function filters(conditions) {
    return (conditions ?? []).map(([path, operator, value, upTo]) =>
      new Filter(path, FilterOperator[operator], value, upTo));
  }

  function sorters(orders) {
    return (orders ?? []).map(([path, descending]) => new Sorter(path, descending));
  }

  function bindList(model, path, { parameters, conditions, orders } = {}) {
    return model.bindList(path, undefined, sorters(orders), filters(conditions), parameters);
  }

  const read = (contexts) => contexts.map((context) => context.getObject());

  // The messages that a user would see, and what each belongs to.
  function messages() {
    return Messaging.getMessageModel().getData().map((message) => ({
      text: message.getMessage(), type: message.getType(), code: message.getCode(), targets: message.getTargets(),
      technical: message.getTechnical(),
    }));
  }

  // A promise as {value} or {error}.
  const outcome = (promise) => promise.then(
    (value) => ({ value: value ?? null }),
    (error) => ({ error: error.message, status: error.error?.$httpStatus ?? error.status ?? null, canceled: !!error.canceled }),
  );

  const functions = {
    async metadata(path) {
      const found = await newModel().getMetaModel().requestObject(path);
      return found ?? null;
    },

    async list(path, options) {
      const binding = bindList(newModel(options.model), path, options);
      const pages = [];
      for (const [start, length] of options.pages ?? [[0, 100]]) {
        pages.push(read(await binding.requestContexts(start, length)));
      }
      return { pages, count: binding.getCount() ?? null };
    },

    async entity(path, parameters) {
      return newModel().bindContext(path, undefined, parameters).requestObject();
    },

    async value(path) {
      return newModel().bindProperty(path).requestValue();
    },

    async invoke(path, parameters) {
      const binding = newModel().bindContext(path);
      for (const [name, value] of Object.entries(parameters ?? {})) binding.setParameter(name, value);
      const result = await outcome(binding.invoke());
      return result.error ? result : binding.getBoundContext().getObject() ?? null;
    },

    // Changes in one batch: [{create: values} | {change: key, path, value} | {delete: key}]
    async submit(path, { parameters, changes }) {
      const model = newModel({ updateGroupId: "changes" });
      const binding = bindList(model, path, { parameters: { ...parameters, $$updateGroupId: "changes" } });
      await binding.requestContexts(0, 1);
      const waiting = [];
      for (const change of changes) {
        if (change.create) {
          waiting.push(outcome(binding.create(change.create, true).created()));
        } else {
          const context = model.getKeepAliveContext(change.change ?? change.delete, false, { $$updateGroupId: "changes" });
          await context.requestObject(change.requests ?? "Id");
          waiting.push(outcome(change.delete ? context.delete("changes")
            : context.setProperty(change.path, change.value, "changes")));
        }
      }
      const pending = model.hasPendingChanges();
      await model.submitBatch("changes");
      // A change that failed stays pending: the user may correct it.
      const settled = await Promise.all(waiting.map((each) => Promise.race([each,
        new Promise((resolve) => { setTimeout(resolve, 500, { pending: true }); })])));
      const created = binding.getAllCurrentContexts().filter((context) => context.isTransient() !== undefined)
        .map((context) => ({ path: context.getPath(), transient: context.isTransient(), object: context.getObject() }));
      return { pending, settled, created, left: model.hasPendingChanges(), messages: messages() };
    },

    // Two models change the same entity; the second to save is late.
    async conflict(path, property, mine, theirs) {
      const contexts = [];
      for (const model of [newModel(), newModel()]) {
        const context = model.getKeepAliveContext(path);
        await context.requestObject(property);
        contexts.push(context);
      }
      await contexts[1].setProperty(property, theirs);
      return outcome(contexts[0].setProperty(property, mine));
    },

    clear() {
      Messaging.removeAllMessages();
    },
  };
  window.ui5 = functions;
  return functions;
});
