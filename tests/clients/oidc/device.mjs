// A device and a service on openid-client: the device gets tokens of a person who allows it on another screen (RFC 8628),
// and the service exchanges the access token for its own (RFC 8693).
import * as oidc from "openid-client";

const { issuer, device, service } = JSON.parse(process.argv[2]);
const say = (value) => console.log(JSON.stringify(value));
const configured = ({ id, secret }) =>
  oidc.discovery(new URL(issuer), id, undefined, oidc.ClientSecretPost(secret), { execute: [oidc.allowInsecureRequests] });

const screen = await configured(device);
const started = await oidc.initiateDeviceAuthorization(screen, { scope: "openid read" });
say({ code: started.user_code, url: started.verification_uri_complete, seconds: started.expires_in });
const tokens = await oidc.pollDeviceAuthorizationGrant(screen, started);

const backend = await configured(service);
const grant = "urn:ietf:params:oauth:grant-type:token-exchange";
const type = "urn:ietf:params:oauth:token-type:access_token";
const own = await oidc.genericGrantRequest(backend, grant, {
  subject_token: tokens.access_token, subject_token_type: type, scope: "read",
});
let stranger = "";
try {
  await oidc.genericGrantRequest(screen, grant, { subject_token: tokens.access_token, subject_token_type: type });
} catch (error) {
  stranger = error.error ?? String(error);
}
say({ claims: tokens.claims(), token: own.access_token, issued: own.issued_token_type, scope: own.scope, stranger });
