// What a stranger's tool makes of this service: odata2ts writes a client from $metadata, and that client is used as
// its documentation says. Prints one JSON object with what it saw; any failure ends with a status that is not zero.
//
//   ODATA_URL    service root without the trailing slash
//   ODATA_TOKEN  bearer token
//   WORK_DIR     what `manage.py generate_client typescript` has written

const { execFile } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { promisify } = require("node:util");
const typescript = require("typescript");
const { FetchClient } = require("@odata2ts/http-client-fetch");

const { ODATA_URL: url, ODATA_TOKEN: token, WORK_DIR: work } = process.env;
const headers = { Authorization: `Bearer ${token}` };
const OPTIONS = { target: "es2022", module: "commonjs", skipLibCheck: true };

const strict = []; // what tsc --strict says of the generated client

async function generate() {
  const cli = require.resolve("@odata2ts/odata2ts/lib/run-cli.js");
  const flags = ["-s", "metadata.xml", "-o", "src", "-name", "platform", "-e", "ts"];
  // Not the synchronous form: while it waits nobody would notice that the idle connection was closed.
  await promisify(execFile)(process.execPath, [cli, ...flags], { cwd: work });
  fs.symlinkSync(process.env.NODE_PATH, path.join(work, "node_modules"));
  const compiler = [require.resolve("typescript/bin/tsc"), "--noEmit"];
  const compiled = await promisify(execFile)(process.execPath, compiler, { cwd: work }).catch((error) => error);
  strict.push(...(compiled.stdout || "").split("\n").filter(Boolean));
  for (const name of fs.readdirSync(path.join(work, "src"))) {
    const source = fs.readFileSync(path.join(work, "src", name), "utf8");
    const { outputText } = typescript.transpileModule(source, {
      compilerOptions: { ...OPTIONS, target: typescript.ScriptTarget.ES2022, module: typescript.ModuleKind.CommonJS },
    });
    fs.writeFileSync(path.join(work, "src", name.replace(/\.ts$/, ".js")), outputText);
  }
  return require(path.join(work, "src", "platformApi.js")).platformApi;
}

async function main() {
  const Service = await generate();
  const service = new Service(new FetchClient({ headers }), url);
  const seen = {};

  seen.version = (await service.GetVersion()).data.value;

  const sign = `T${Date.now() % 1000}`;
  const currencies = service.General_Currencies_Currencies();
  const created = await currencies.create({ CurrencySign: sign, Name: "Test" });
  seen.created = { status: created.status, sign: created.data.CurrencySign };

  const found = await currencies.query((builder, q) =>
    builder.select("Id", "CurrencySign", "Name").filter(q.CurrencySign.eq(sign)).count());
  seen.found = { count: found.data["@odata.count"], names: found.data.value.map((row) => row.Name) };
  const id = found.data.value[0].Id;

  const one = service.General_Currencies_Currencies(id);
  seen.patched = (await one.patch({ Name: "Patched" })).status;
  seen.read = (await one.query((builder) => builder.select("Name"))).data.Name;
  seen.deleted = (await one.delete()).status;
  seen.gone = await one.query().then(() => null, (error) => ({ status: error.status, message: error.message }));

  const products = await service.General_Products_Products().query((builder, q) =>
    builder.select("PartNumber").orderBy(q.PartNumber.desc()).top(3).skip(1).expanding("ProductGroup", (group) =>
      group.select("Code")));
  seen.products = products.data.value.map((row) => [row.PartNumber, row.ProductGroup.Code]);

  const orders = await service.Crm_Sales_SalesOrders().query((builder, q) =>
    builder.filter(q.Lines.any((line) => line.LineNo.ge(1))).expanding("Lines", (lines) => lines.select("LineNo")).top(2));
  seen.orders = orders.data.value.map((row) => row.Lines.length);
  seen.strict = strict;
  process.stdout.write(JSON.stringify(seen));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
