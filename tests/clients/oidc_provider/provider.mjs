// An OpenID provider on loopback: `node provider.mjs '{"redirectUri": …, "logoutUri": …}'`. Says its issuer in one line
// of JSON, then serves until its input ends. Everybody may sign in, with any login and password.
import { createServer } from "node:http";
import Provider from "oidc-provider";

const { redirectUri, logoutUri } = JSON.parse(process.argv[2]);
const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: "platform", client_secret: "upstream secret of some length", redirect_uris: [redirectUri],
      post_logout_redirect_uris: [logoutUri],
    }],
    claims: { openid: ["sub"], profile: ["name", "preferred_username"], email: ["email", "email_verified"] },
    conformIdTokenClaims: false,
    findAccount: (context, login) => ({
      accountId: login,
      claims: () => ({
        sub: login, name: login, preferred_username: login, email: `${login}@upstream.example`, email_verified: true,
      }),
    }),
  });
  server.on("request", provider.callback());
  console.log(JSON.stringify({ issuer }));
});
process.stdin.on("end", () => process.exit(0)).resume();
