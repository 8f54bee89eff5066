import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';

/** Reads the page once. Its content security policy allows only the script in the file, so no payload can add its own. */
export function openPage(): (response: ServerResponse) => void {
  const page = readFileSync(join(import.meta.dirname, 'page.html'), 'utf8');
  const policy = [
    "default-src 'none'",
    "connect-src 'self'",
    `script-src ${hashOf(page, 'script')}`,
    `style-src ${hashOf(page, 'style')}`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
  return (response) => {
    response.writeHead(200, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy,
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    });
    response.end(page);
  };
}

function hashOf(page: string, tag: string): string {
  const inline = new RegExp(`<${tag}>([^]*?)</${tag}>`).exec(page)?.[1] ?? '';
  return `'sha256-${createHash('sha256').update(inline).digest('base64')}'`;
}
