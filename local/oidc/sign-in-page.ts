import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { html } from '../simulators/page/html.ts';
import type { SignInPerson } from './local-issuer.ts';

interface SignIn {
  /** The request of the client, which the form repeats. */
  fields: Record<string, string>;
  people: readonly SignInPerson[];
  action: string;
}

const STYLE = `
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 32rem; margin: 4rem auto; padding: 0 1rem; color: #16191f; }
  button { display: block; width: 100%; margin: .5rem 0; padding: .75rem 1rem; text-align: left; font: inherit;
    border: 1px solid #7d8998; border-radius: .5rem; background: #fff; cursor: pointer; }
  button:hover, button:focus { background: #f2f8fd; border-color: #0972d3; }
  small { color: #5f6b7a; }`;

/** The content security policy allows no script, and a form that leads to this machine only. */
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "form-action 'self' http://127.0.0.1:* http://localhost:*",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Shows the people to sign in as. */
export function signInPage(response: ServerResponse, { fields, people, action }: SignIn): void {
  const page = html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Sign in - Countersign local</title>
<style>`.text;
  const rest = html`</style></head>
<body>
<h1>Sign in</h1>
<p>This is the OIDC issuer of the local host. Who do you want to be?</p>
<form method="post" action="${action}">
${Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
${people.map(
  ({ subject, name, email, role }) =>
    html`<button name="subject" value="${subject}">${name} <small>${role}, ${email}</small></button>`,
)}
</form>
</body>
</html>`.text;
  response
    .writeHead(200, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': POLICY,
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    })
    .end(`${page}${STYLE}${rest}`);
}
