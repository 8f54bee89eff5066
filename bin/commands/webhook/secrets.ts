import { checkSecrets, SecretDocument } from '../../../lambdas/intake/signing-secrets.ts';
import type { Command } from '../command.ts';
import { EXIT, Failure } from '../failure.ts';
import { read } from './send.ts';

export const webhookSecrets: Command = {
  name: 'webhook secrets',
  takes: ['FILE'],
  says: 'check signing secrets before they are written to AWS',
  details:
    'FILE holds what is in countersign/<stage>/<tenant>/webhook-signing: {"github": ["…"]}.' +
    '\nNothing is sent anywhere, and no secret is printed.',
  options: {},
  async run(call) {
    const file = call.positional(0);
    const document = SecretDocument.safeParse(parsed(read(file).toString()));
    if (!document.success) {
      throw new Failure(
        EXIT.failed,
        `${file} is not of the form {"github": ["current", "previous"], "servicenow": ["…"]}`,
      );
    }
    const { usable, problems } = checkSecrets(document.data);
    for (const { source, position, problem } of problems) {
      call.terminal.note(`${source}, secret ${position}: ${problem}`);
    }
    if (problems.length > 0) return EXIT.failed;
    const counts = Object.entries(usable).map(([source, secrets]) => `${source} ${secrets.length}`);
    call.terminal.print(`usable: ${counts.join(', ') || 'none; nobody can sign for this tenant'}`);
    return EXIT.ok;
  },
};

/** The parser's own message quotes the text, which here is a secret. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
