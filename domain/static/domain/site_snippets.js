// A request as code in four languages; the token is in the environment variable TOKEN.
"use strict";
site.snippets = (() => {
  const shell = (text) => `'${text.replace(/'/g, "'\\''")}'`;
  // A string of JSON is one of Python, JavaScript and C#, too.
  const quoted = JSON.stringify;
  const lines = (...parts) => parts.filter((part) => part !== null).join("\n");

  // {method, url, headers: [[name, value]], body: text or null} → code.
  return {
    curl: ({ method, url, headers, body }) => [
      "curl", ...(method === "GET" ? [] : method === "HEAD" ? ["--head"] : [`-X ${method}`]), shell(url), '-H "Authorization: Bearer $TOKEN"',
      ...headers.map(([name, value]) => `-H ${shell(`${name}: ${value}`)}`), ...(body === null ? [] : [`--data-binary ${shell(body)}`]),
    ].join(" "),
    Python: ({ method, url, headers, body }) => lines(
      "import os", "", "import requests", "", "response = requests.request(", `    ${quoted(method)},`, `    ${quoted(url)},`, "    headers={",
      `        "Authorization": f"Bearer {os.environ['TOKEN']}",`, ...headers.map(([name, value]) => `        ${quoted(name)}: ${quoted(value)},`), "    },",
      body === null ? null : `    data=${quoted(body)}.encode(),`, ")", "response.raise_for_status()", "print(response.text)"),
    JavaScript: ({ method, url, headers, body }) => lines(
      `const response = await fetch(${quoted(url)}, {`, `  method: ${quoted(method)},`, "  headers: {", '    "Authorization": `Bearer ${process.env.TOKEN}`,',
      ...headers.map(([name, value]) => `    ${quoted(name)}: ${quoted(value)},`), "  },", body === null ? null : `  body: ${quoted(body)},`, "});",
      "if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);", "console.log(await response.text());"),
    "C#": ({ method, url, headers, body }) => lines(
      "using var client = new HttpClient();", `using var request = new HttpRequestMessage(new HttpMethod(${quoted(method)}), ${quoted(url)});`,
      body === null ? null : `request.Content = new ByteArrayContent(System.Text.Encoding.UTF8.GetBytes(${quoted(body)}));`,
      'request.Headers.Add("Authorization", "Bearer " + Environment.GetEnvironmentVariable("TOKEN"));',
      ...headers.map(([name, value]) => `request.${/^content-/i.test(name) && body !== null ? "Content." : ""}Headers.TryAddWithoutValidation(${quoted(name)}, ${quoted(value)});`),
      "using var response = await client.SendAsync(request);", "response.EnsureSuccessStatusCode();", "Console.WriteLine(await response.Content.ReadAsStringAsync());"),
  };
})();
