// Queries of ts-odata-client, typed as its documentation says; compiled by tsc --strict. Prints one JSON object.
//
//   ODATA_URL    service root with the trailing slash
//   ODATA_TOKEN  bearer token
declare const process: { env: Record<string, string | undefined>; exit(status: number): void };
import { ODataV4Context } from "ts-odata-client";

interface Group { Code: string; Name: Record<string, string> }
interface Product { Id: string; PartNumber: string; ProductGroup: Group; Active: boolean }
interface Line { LineNo: number }
interface Order { DocumentNo: string; DocumentDate: string; Lines: Line[] }

const { ODATA_URL: root = "", ODATA_TOKEN: token = "" } = process.env;
const options = { requestInit: () => ({ headers: { Authorization: `Bearer ${token}` } }) };

class Platform extends ODataV4Context {
  constructor() { super(root, options); }
  get products() { return this.createQuery<Product>("General_Products_Products"); }
  get wrong() { return this.createQuery<{ Nothing: string }>("General_Products_Products"); }
  get orders() { return this.createQuery<Order>("Crm_Sales_SalesOrders"); }
}

async function main(): Promise<void> {
  const platform = new Platform();
  const page = await platform.products.select((p) => ({ PartNumber: p.PartNumber })).orderByDescending((p) => p.PartNumber).top(3).skip(1).getManyAsync();
  const numbers = page.value.map((row) => row.PartNumber);
  const found = await platform.products.filter((p) => p.PartNumber.$in(numbers)).getManyWithCountAsync();
  const starts = await platform.products.select((p) => ({ PartNumber: p.PartNumber })).filter((p, { not }) =>
    p.PartNumber.$startsWith("C").and(not(p.PartNumber.$contains("zz")))).getManyAsync();
  const expanded = await platform.products.expand("ProductGroup").filter((p) => p.ProductGroup.Code.$notEquals("")).top(2).getManyAsync();
  const orders = await platform.orders.filter((o) => o.Lines.$any((line) => line.LineNo.$greaterThan(5))).expand("Lines").top(2).getManyAsync();
  const [wide] = (await platform.products.select((p) => ({ Id: p.Id })).filter((p) => p.PartNumber.$equals(numbers[0])).getManyAsync()).value;
  const one = await platform.products.getAsync(wide?.Id);
  const nothing = await platform.products.filter((p) => p.PartNumber.$equals("none")).getManyAsync();
  const refused = await platform.wrong.filter((p) => p.Nothing.$equals("x")).getManyAsync()
    .then(() => "", (error: unknown) => error instanceof Error ? error.message : JSON.stringify(error));
  let walked = 0;
  for await (const order of platform.orders) { if (order.DocumentNo) walked++; if (walked > 20) break; }
  console.log(JSON.stringify({
    numbers, count: found["@odata.count"], starts: starts.value.map((row) => row.PartNumber), 
    groups: expanded.value.map((row) => row.ProductGroup.Code), lines: orders.value.map((row) => row.Lines.length),
    one: one.PartNumber, nothing: nothing.value.length, refused, walked,
  }));
}

main().catch((error) => { console.error(error); process.exit(1); });
