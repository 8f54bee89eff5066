/** A shorter part of a credential is no secret, and taking it out would garble ordinary words. */
const SECRET_MIN_CHARACTERS = 8;

/** Some targets echo what they are sent: a text without any of these secrets, whatever was wrapped around them. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .flatMap(formsOf)
    .filter((form) => form.length >= SECRET_MIN_CHARACTERS)
    .reduce((rest, form) => rest.replaceAll(form, '[secret]'), text);
}

/** With and without the `Bearer` in front, what `Basic` wraps, and as JSON spells it. */
function formsOf(secret: string): string[] {
  const [scheme = '', ...rest] = secret.split(' ');
  const unwrapped = scheme === 'Basic' ? Buffer.from(rest.join(' '), 'base64').toString() : '';
  const password = unwrapped.slice(unwrapped.indexOf(':') + 1);
  return [secret, ...rest, unwrapped, password].flatMap((part) => [part, JSON.stringify(part).slice(1, -1)]);
}
