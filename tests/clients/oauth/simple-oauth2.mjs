// A relying party on simple-oauth2. Configuration: the first argument, as JSON. It writes one line of JSON and reads one
// line from its input in turn: first the authorization URL, then, given the code, what the tokens did.
import { createHash, randomBytes } from "node:crypto";
import { createInterface } from "node:readline";
import { AuthorizationCode, ClientCredentials } from "simple-oauth2";

const { issuer, clientId, clientSecret, serviceId, serviceSecret, redirectUri, apiUrl, scope } = JSON.parse(process.argv[2]);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (value) => console.log(JSON.stringify(value));
const hear = async () => (await lines.next()).value;
const host = { tokenHost: new URL(issuer).origin, tokenPath: "/id/connect/token", revokePath: "/id/connect/revocation" };
const auth = { ...host, authorizePath: "/id/connect/authorize" };
const called = async (token) => (await fetch(apiUrl, { headers: { Authorization: `Bearer ${token.token.access_token}` } })).status;
const refusal = async (promise) => promise.then(() => "", (error) => error.data?.payload?.error ?? String(error));

// Both ways to send the secret (RFC 6749, 2.3.1).
const services = [];
for (const authorizationMethod of ["header", "body"]) {
  const service = new ClientCredentials({ client: { id: serviceId, secret: serviceSecret }, auth: host, options: { authorizationMethod } });
  const token = await service.getToken({ scope: "read" });
  const before = await called(token);
  await token.revoke("access_token");
  services.push({ scope: token.token.scope, before, expired: token.expired(), after: await called(token) });
}
const wrong = new ClientCredentials({ client: { id: serviceId, secret: "wrong" }, auth: host });
const beyond = new ClientCredentials({ client: { id: serviceId, secret: serviceSecret }, auth: host });
const refused = [await refusal(wrong.getToken({})), await refusal(beyond.getToken({ scope: "sec" }))];

const client = new AuthorizationCode({ client: { id: clientId, secret: clientSecret }, auth });
const verifier = randomBytes(32).toString("base64url");
say({
  url: client.authorizeURL({
    redirect_uri: redirectUri, scope, state: "s",
    code_challenge: createHash("sha256").update(verifier).digest("base64url"), code_challenge_method: "S256",
  }),
});
const code = await hear();
const unproved = await refusal(client.getToken({ code, redirect_uri: redirectUri, code_verifier: "x".repeat(43) }));
say({ services, refused, unproved, again: client.authorizeURL({
  redirect_uri: redirectUri, scope: scope.split(" "), state: "s",
  code_challenge: createHash("sha256").update(verifier).digest("base64url"), code_challenge_method: "S256",
}) });

const first = await client.getToken({ code: await hear(), redirect_uri: redirectUri, code_verifier: verifier });
const refreshed = await first.refresh();
const seen = {
  called: [await called(first), await called(refreshed)],
  rotated: first.token.refresh_token !== refreshed.token.refresh_token,
  idToken: Boolean(first.token.id_token),
};
await refreshed.revokeAll();
say({ ...seen, revoked: await called(refreshed), deadRefresh: await refusal(refreshed.refresh()) });
process.stdin.destroy(); // the last line is said; an open input would keep the process
