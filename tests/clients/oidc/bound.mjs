// A relying party on openid-client with private_key_jwt, pushed requests and DPoP. It says its public key, waits until that
// is registered, and says what it was given.
import { createInterface } from "node:readline";
import * as oidc from "openid-client";

const { issuer, clientId, api, redirectUri } = JSON.parse(process.argv[2]);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (value) => console.log(JSON.stringify(value));

const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
const { kty, crv, x, y } = await crypto.subtle.exportKey("jwk", pair.publicKey);
say({ keys: [{ kty, crv, x, y }] });
await lines.next();

const configured = (id) =>
  oidc.discovery(new URL(issuer), id, undefined, oidc.PrivateKeyJwt(pair.privateKey), {
    execute: [oidc.allowInsecureRequests],
  });
const service = await configured(`${clientId}-service`);
const bound = { DPoP: oidc.getDPoPHandle(service, await oidc.randomDPoPKeyPair("ES256")) };
const tokens = await oidc.clientCredentialsGrant(service, { scope: "read" }, bound);
const url = new URL(api);
const answer = await oidc.fetchProtectedResource(service, tokens.access_token, url, "GET", null, new Headers(), bound);
const stolen = await fetch(url, { headers: { Authorization: `Bearer ${tokens.access_token}` } });

const people = await configured(clientId);
const sent = await oidc.buildAuthorizationUrlWithPAR(
  people,
  { redirect_uri: redirectUri, scope: "openid", state: oidc.randomState(), response_type: "code" },
  { DPoP: oidc.getDPoPHandle(people, await oidc.randomDPoPKeyPair("ES256")) },
);
say({ tokenType: tokens.token_type, status: answer.status, stolen: stolen.status, url: sent.href });
process.stdin.destroy();
