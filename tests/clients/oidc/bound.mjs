// A relying party on openid-client with private_key_jwt, pushed requests and DPoP. It says its public key, waits until that
// is registered, says what it was given and the authorization URL, waits for the address that the browser was sent to, and
// says what the tokens are good for.
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
const own = { DPoP: oidc.getDPoPHandle(people, await oidc.randomDPoPKeyPair("ES256")) };
const pkceCodeVerifier = oidc.randomPKCECodeVerifier();
const expectedState = oidc.randomState();
const sent = await oidc.buildAuthorizationUrlWithPAR(
  people,
  {
    redirect_uri: redirectUri, scope: "openid read offline_access", state: expectedState, response_type: "code",
    code_challenge: await oidc.calculatePKCECodeChallenge(pkceCodeVerifier), code_challenge_method: "S256",
  },
  own,
);
say({ tokenType: tokens.token_type, status: answer.status, stolen: stolen.status, url: sent.href });

const callback = new URL((await lines.next()).value);
const signedIn = await oidc.authorizationCodeGrant(people, callback, { pkceCodeVerifier, expectedState }, undefined, own);
const call = (token) => oidc.fetchProtectedResource(people, token, url, "GET", null, new Headers(), own);
const first = await call(signedIn.access_token);
const refreshed = await oidc.refreshTokenGrant(people, signedIn.refresh_token, undefined, own);
const second = await call(refreshed.access_token);
let foreignKey = 0;
try {
  const other = { DPoP: oidc.getDPoPHandle(people, await oidc.randomDPoPKeyPair("ES256")) };
  await oidc.fetchProtectedResource(people, refreshed.access_token, url, "GET", null, new Headers(), other);
} catch (error) {
  foreignKey = error.status ?? error.response?.status ?? String(error);
}
say({ sub: signedIn.claims().sub, statuses: [first.status, second.status], tokenType: signedIn.token_type, foreignKey });
process.stdin.destroy();
