// A stranger's client sends batches: o.js (npm: odata), multipart, plain and with a changeset. Prints one JSON object with
// what it saw; any failure ends with a status that is not zero.
//
//   ODATA_URL    service root with the trailing slash
//   ODATA_TOKEN  bearer token

const { o } = require("odata");

const { ODATA_URL: root, ODATA_TOKEN: token } = process.env;
const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
const SET = "General_Currencies_Currencies";

function client(useChangset) {
  const batch = { useChangset, endpoint: "$batch", headers: new Headers(headers), useRelativeURLs: true,
    boundaryPrefix: "batch_", changsetBoundaryPrefix: "changset_" };
  return o(root, { headers, batch });
}

async function main() {
  const sign = `O${Date.now() % 1000}`;
  const plain = await client(false).get(SET).post(SET, { CurrencySign: sign, Name: "Batched" }).batch({ $top: 1 });
  const together = client(true);
  const grouped = await together.post(SET, { CurrencySign: `${sign}c`.slice(-4), Name: "Grouped" })
    .patch(`${SET}(${plain[1].body["@odata.id"].split("(")[1].slice(0, -1)})`, { Name: "Patched" }).batch();
  const read = await client(false).get(plain[1].body["@odata.id"]).get(`${SET}(00000000-0000-0000-0000-000000000000)`)
    .batch();
  const statuses = (answers) => answers.map((answer) => answer.status);
  console.log(JSON.stringify({ plain: statuses(plain), grouped: statuses(grouped), read: statuses(read),
    rows: plain[0].body.length, name: read[0].body.Name }));
}

main().catch((error) => { console.error(error); process.exit(1); });
