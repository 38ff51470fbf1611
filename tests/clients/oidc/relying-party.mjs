// A relying party on openid-client. Configuration: the first argument, as JSON. It writes one line of JSON and reads one
// line from its input in turn: first the authorization URL, then (given the address that the browser was sent to) what
// the tokens say, and last the end session URL.
import { createInterface } from "node:readline";
import * as oidc from "openid-client";

const { issuer, clientId, clientSecret, redirectUri, postLogoutRedirectUri, scope } = JSON.parse(process.argv[2]);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (value) => console.log(JSON.stringify(value));
const hear = async () => (await lines.next()).value;

const config = await oidc.discovery(
  new URL(issuer),
  clientId,
  undefined,
  clientSecret ? oidc.ClientSecretBasic(clientSecret) : oidc.None(),
  { execute: [oidc.allowInsecureRequests, oidc.enableNonRepudiationChecks] }, // verify signatures with the JWKS too
);
const verifier = oidc.randomPKCECodeVerifier();
const nonce = oidc.randomNonce();
const state = oidc.randomState();
say({
  url: oidc.buildAuthorizationUrl(config, {
    redirect_uri: redirectUri,
    scope,
    nonce,
    state,
    code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
  }).href,
});

const callback = new URL(await hear());
const tokens = await oidc.authorizationCodeGrant(config, callback, {
  pkceCodeVerifier: verifier,
  expectedNonce: nonce,
  expectedState: state,
  idTokenExpected: true,
  maxAge: 300,
});
const claims = tokens.claims();
const userinfo = await oidc.fetchUserInfo(config, tokens.access_token, claims.sub);
const refreshed = tokens.refresh_token ? await oidc.refreshTokenGrant(config, tokens.refresh_token) : null;
let codeReuse = "";
try {
  await oidc.authorizationCodeGrant(config, callback, {
    pkceCodeVerifier: verifier, expectedNonce: nonce, expectedState: state,
  });
} catch (error) {
  codeReuse = error.error ?? String(error);
}
say({
  claims,
  userinfo,
  codeReuse,
  scope: tokens.scope,
  expiresIn: tokens.expiresIn(),
  refreshed: refreshed && { rotated: refreshed.refresh_token !== tokens.refresh_token, sub: refreshed.claims()?.sub },
});

await hear();
say({
  url: oidc.buildEndSessionUrl(config, {
    id_token_hint: tokens.id_token, post_logout_redirect_uri: postLogoutRedirectUri, state: "bye",
  }).href,
});
process.stdin.destroy(); // the last line is said; an open input would keep the process
