import type { Command } from '../command.ts';
import { EXIT, Failure } from '../failure.ts';
import { readFile } from '../read-file.ts';

export const webhookSecrets: Command = {
  name: 'webhook secrets',
  args: ['FILE'],
  description: 'check webhook signing secrets before you store them',
  details:
    'FILE has the content of countersign/<stage>/<tenant>/webhook-signing: {"github": ["…"]}.' +
    '\nThe command works offline and prints no secret.',
  offline: true,
  options: {},
  async run(call) {
    const { checkSecrets, SecretDocument } = await import('../../../lambdas/intake/signing-secrets.ts');
    const file = call.arg(0);
    const document = SecretDocument.safeParse(parsed(readFile(file).toString()));
    if (!document.success) {
      throw new Failure(
        EXIT.failed,
        `${file} must have the form {"github": ["current", "previous"], "servicenow": ["…"]}`,
      );
    }
    const { usable, problems } = checkSecrets(document.data);
    for (const { source, position, problem } of problems) {
      call.terminal.note(`${source}, secret ${position}: ${problem}`);
    }
    if (problems.length > 0) return EXIT.failed;
    const counts = Object.entries(usable).map(([source, secrets]) => `${source} ${secrets.length}`);
    call.terminal.print(`usable: ${counts.join(', ') || 'none; no webhook of this tenant will be accepted'}`);
    return EXIT.ok;
  },
};

/** The parser's message is not shown: it quotes the text, which contains secrets. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
