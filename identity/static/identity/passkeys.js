// Passkeys (Web Authentication Level 3). A form with data-passkey="create" or "get" and data-options (JSON) gets the
// browser's answer in its field `credential`, and is sent. data-conditional also offers passkeys in the autofill of the
// field whose autocomplete has "webauthn". Errors are shown in the form's [data-problem].
"use strict";

const fromBase64url = (text) =>
  Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
const toBase64url = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const decoded = (list) => (list || []).map((each) => ({ ...each, id: fromBase64url(each.id) }));

// As parseCreationOptionsFromJSON and parseRequestOptionsFromJSON, which older browsers lack.
function parsed(options) {
  const result = { ...options, challenge: fromBase64url(options.challenge) };
  if (options.user) {
    result.user = { ...options.user, id: fromBase64url(options.user.id) };
    result.excludeCredentials = decoded(options.excludeCredentials);
  } else {
    result.allowCredentials = decoded(options.allowCredentials);
  }
  return result;
}

// As PublicKeyCredential.toJSON, which some password managers replace badly.
function asJson(credential) {
  const response = {};
  for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (credential.response[name]) response[name] = toBase64url(credential.response[name]);
  }
  if (credential.response.getTransports) response.transports = credential.response.getTransports();
  return JSON.stringify({ id: credential.id, rawId: toBase64url(credential.rawId), type: credential.type, response });
}

let waiting = null;

// The promise of the browser's credential; ends the one that waits for autofill, for a browser has one at a time.
function asked(form, mediation) {
  if (waiting) waiting.abort();
  waiting = new AbortController();
  const request = { publicKey: parsed(JSON.parse(form.dataset.options)), signal: waiting.signal, mediation };
  return navigator.credentials[form.dataset.passkey](request);
}

function send(form, credential) {
  form.elements.credential.value = asJson(credential);
  form.submit();
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (!window.PublicKeyCredential) continue;
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const problem = form.querySelector("[data-problem]");
    problem.hidden = true;
    try {
      send(form, await asked(form));
    } catch (error) {
      // The person cancelled, or no passkey fits: browsers do not tell which.
      problem.textContent = error.name === "InvalidStateError" ? problem.dataset.known : problem.dataset.problem;
      problem.hidden = false;
    }
  });
  if ("conditional" in form.dataset && PublicKeyCredential.isConditionalMediationAvailable) {
    PublicKeyCredential.isConditionalMediationAvailable().then(async (available) => {
      if (!available) return;
      try {
        send(form, await asked(form, "conditional"));
      } catch {
        // Replaced by a click on the button, or the page is left.
      }
    });
  }
}
