// A page as applications have it: sap.m.Table over an ODataModel v4, with search, growing, input and save.
//
// The address of the page names the service and the token: ?service=…&token=…
sap.ui.define([
  "sap/m/Button", "sap/m/Column", "sap/m/ColumnListItem", "sap/m/Input", "sap/m/SearchField", "sap/m/Table",
  "sap/m/Text", "sap/m/Title", "sap/m/Toolbar", "sap/ui/model/Filter", "sap/ui/model/FilterOperator",
  "sap/ui/model/Sorter", "sap/ui/model/odata/v4/ODataModel",
], (Button, Column, ColumnListItem, Input, SearchField, Table, Text, Title, Toolbar, Filter, FilterOperator, Sorter,
  ODataModel) => {
  const given = new URLSearchParams(window.location.search);
  const model = new ODataModel({
    autoExpandSelect: true, operationMode: "Server", serviceUrl: given.get("service"), updateGroupId: "changes",
    metadataUrlParams: { options: "flat" }, httpHeaders: { Authorization: `Bearer ${given.get("token")}` },
  });
  const title = new Title("count");
  const table = new Table("table", {
    growing: true, growingThreshold: 5,
    columns: ["Part number", "Group", "Catalogue"].map((text) => new Column({ header: new Text({ text }) })),
    items: {
      path: "/General_Products_Products", parameters: { $count: true }, sorter: new Sorter("PartNumber"),
      template: new ColumnListItem({
        cells: [new Text({ text: "{PartNumber}" }), new Text({ text: "{ProductGroup/Code}" }),
          new Input({ value: "{CatalogDescriptionHtml}" })],
      }),
    },
    headerToolbar: new Toolbar({
      content: [title,
        new SearchField("search", {
          search: (event) => table.getBinding("items").filter(
            new Filter("PartNumber", FilterOperator.Contains, event.getParameter("query"))),
        }),
        new Button("descending", {
          text: "Descending", press: () => table.getBinding("items").sort(new Sorter("PartNumber", true)),
        }),
        new Button("save", {
          text: "Save", press: () => model.submitBatch("changes").then(() => { document.body.dataset.saved = "yes"; }),
        })],
    }),
  });
  table.setModel(model);
  table.attachUpdateFinished((event) => title.setText(String(event.getParameter("total"))));
  table.placeAt("content");
  window.ui5 = { table, model };
  return window.ui5;
});
