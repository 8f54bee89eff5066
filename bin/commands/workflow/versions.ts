import { Page } from '../../terminal/page.ts';
import { type Column, table } from '../../terminal/table.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, Failure, UsageError } from '../failure.ts';
import { noteMore, pagingOptions, readPages } from '../paging.ts';
import { readFile } from '../read-file.ts';
import { lineDiff } from './line-diff.ts';

const COLUMNS: readonly Column[] = [
  { title: 'WORKFLOW' },
  { title: 'VERSION' },
  { title: 'STEPS' },
  { title: 'AUTHOR' },
  { title: 'PUBLISHED' },
  { title: 'DESCRIPTION', shrink: 'wrap' },
];

const VERSION = { version: { value: 'N', description: 'a version (default: the newest)' } };

export const workflowVersions: readonly Command[] = [
  {
    name: 'workflow list',
    args: ['[NAME]'],
    description: 'list published workflows, or the versions of one',
    options: pagingOptions('workflows'),
    async run(call) {
      const api = call.api();
      const name = call.arg(0);
      const { items, nextCursor } = await readPages(call, async (query) => {
        if (name === '') {
          const page = await api.call('GET /api/v1/workflows', { query });
          return { items: page.workflows, nextCursor: page.nextCursor };
        }
        const page = await api.call('GET /api/v1/workflows/{name}', { params: { name }, query });
        return { items: page.versions, nextCursor: page.nextCursor };
      });
      if (call.json) call.printJson({ workflows: items, nextCursor });
      else {
        const rows = printable(items).map((each) => [
          each.name,
          String(each.version),
          String(each.steps),
          each.author ?? '-',
          each.publishedAt?.slice(0, 16).replace('T', ' ') ?? '-',
          each.description ?? '',
        ]);
        if (rows.length === 0)
          call.terminal.note('no workflows; publish one with npx countersign workflow publish FILE');
        else for (const line of table(COLUMNS, rows, call.terminal)) call.terminal.print(line);
        noteMore(call, nextCursor);
      }
      return EXIT.ok;
    },
  },
  {
    name: 'workflow show',
    args: ['NAME'],
    description: 'show a published workflow as it was written',
    options: VERSION,
    async run(call) {
      const found = await publishedVersion(call, call.arg(0), call.option('version'));
      if (call.json) call.printJson(found);
      else {
        const page = new Page(call.terminal);
        page.title(printable(found.name), { text: `version ${found.version}` });
        page.field('author', printable(found.author ?? '-'));
        page.field('published', found.publishedAt ?? '-');
        for (const { name, version } of found.definition.calls ?? [])
          page.field('calls', printable(`${name} v${version}`));
        page.blank();
        for (const line of (await textOf(found)).split('\n')) call.terminal.print(printable(line));
      }
      return EXIT.ok;
    },
  },
  {
    name: 'workflow diff',
    args: ['FILE|NAME'],
    description: 'compare two versions, or a file with a version',
    details:
      'workflow diff FILE compares the newest published version with the file.\n' +
      'workflow diff NAME --from 3 --to 5 compares two versions. Exit code: 1 if they differ.',
    options: {
      from: { value: 'N', description: 'the older version' },
      to: { value: 'N', description: 'the newer version (default: the newest)' },
    },
    async run(call) {
      const name = call.arg(0);
      const isFile = /\.ya?ml$/.test(name);
      const before = call.option('from');
      if (!isFile && before === undefined) throw new UsageError('give a file, or a name and --from N');
      const [from, to] = isFile
        ? await fileAndPublished(call, name, before)
        : [await named(call, name, before), await named(call, name, call.option('to'))];
      const lines = lineDiff(from.text, to.text);
      if (call.json) call.printJson({ from: from.title, to: to.title, same: lines.length === 0, lines });
      else {
        const { terminal } = call;
        if (lines.length === 0) terminal.print(printable(`${from.title} and ${to.title} are the same`));
        else for (const head of [`--- ${from.title}`, `+++ ${to.title}`]) terminal.print(printable(head));
        for (const line of lines) {
          const tone = line.startsWith('+') ? 'good' : line.startsWith('-') ? 'bad' : 'quiet';
          terminal.print(terminal.paint(tone, printable(line)));
        }
      }
      return lines.length === 0 ? EXIT.ok : EXIT.failed;
    },
  },
];

async function publishedVersion(call: Call, name: string, wanted: string | undefined) {
  const api = call.api();
  if (wanted !== undefined && !/^[1-9]\d{0,5}$/.test(wanted))
    throw new UsageError(`"${wanted}" is not a version; give a number`);
  const [newest] =
    wanted === undefined
      ? (await api.call('GET /api/v1/workflows/{name}', { params: { name }, query: { limit: '1' } })).versions
      : [];
  const version = wanted ?? String(newest?.version);
  return api.call('GET /api/v1/workflows/{name}/versions/{version}', { params: { name, version } });
}

type Found = Awaited<ReturnType<typeof publishedVersion>>;

/** Versions of older releases have no file; their definition is shown. */
async function textOf({ source, definition }: Found): Promise<string> {
  if (source !== null) return source.trimEnd();
  const { stringify } = await import('yaml');
  return stringify(definition).trimEnd();
}

async function named(call: Call, name: string, version: string | undefined) {
  const found = await publishedVersion(call, name, version);
  return { title: `${found.name} v${found.version}`, text: await textOf(found) };
}

async function fileAndPublished(call: Call, file: string, version: string | undefined) {
  const text = readFile(file).toString('utf8').trimEnd();
  const name = /^name:\s*["']?([a-z0-9-]+)/m.exec(text)?.[1];
  if (name === undefined) throw new Failure(EXIT.usage, `${file} has no "name: ..."`);
  return [await named(call, name, version), { title: file, text }] as const;
}
