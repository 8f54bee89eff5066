import type { ResponseFrom } from '../../../client/api-client.ts';
import { didYouMean } from '../../../lambdas/entry/did-you-mean.ts';
import { CHANGE_KINDS, type Change, type ChangeKind } from '../../../lambdas/pipeline/definition-changes.ts';
import { OPERATOR_OPTIONS } from '../../operator/operator-options.ts';
import { Page } from '../../terminal/page.ts';
import { type Column, table } from '../../terminal/table.ts';
import { printable } from '../../terminal/terminal.ts';
import { dateAndTime } from '../../terminal/times.ts';
import type { Call, Command } from '../command.ts';
import { bundleFiles, valuesFile } from '../evidence/bundle-names.ts';
import { EXIT, Failure, UsageError } from '../failure.ts';
import { noteMore, PAGE_MAX, pagingOptions, readPages } from '../paging.ts';
import { readFile, writeFile } from '../read-file.ts';

const COLUMNS: readonly Column[] = [
  { title: 'AT' },
  { title: 'BY' },
  { title: 'CHANGE', shrink: 'wrap' },
  { title: 'FIELDS', shrink: 'wrap' },
  { title: 'ID' },
];
const TABLE_COLUMNS_MIN = 120;
const PENDING_COLUMNS: readonly Column[] = [
  { title: 'CHANGE' },
  { title: 'OF' },
  { title: 'REQUESTED BY' },
  { title: 'EXPIRES' },
  { title: 'EXTENDS', shrink: 'wrap' },
];

export const changes: readonly Command[] = [
  {
    name: 'changes list',
    args: [],
    description: 'list changes of people, policies, automations and more',
    details: [
      'Newest first. Includes connections, workflows, schedules, settings and API keys.',
      'changes show has the values before and after; --json shows them for all.',
      'A filtered page can be short, or empty, and still have a next page: use --all.',
    ].join('\n'),
    options: {
      ...pagingOptions('changes'),
      kind: { value: 'KIND', description: CHANGE_KINDS.join(', ') },
      name: { value: 'NAME', description: 'of the definition' },
      actor: { value: 'PERSON', description: 'who made the change' },
      since: { value: 'TIME', description: 'at this time or later, e.g. 2026-11-17 or 2026-11-17T09:30:00Z' },
      until: { value: 'TIME', description: 'at this time or earlier' },
    },
    async run(call) {
      const filter = {
        kind: kindOf(call),
        name: call.option('name'),
        actor: call.option('actor'),
        since: call.option('since'),
        until: call.option('until'),
      };
      const { items, nextCursor } = await readPages(call, async (query) => {
        const page = await call.api().call('GET /api/v1/changes', { query: { ...query, ...filter } });
        return { items: page.changes, nextCursor: page.nextCursor };
      });
      if (call.json) call.printJson({ changes: items, nextCursor });
      else if (call.terminal.columns < TABLE_COLUMNS_MIN) {
        for (const change of items) printNarrow(new Page(call.terminal), printable(change));
        noteMore(call, nextCursor);
      } else {
        const rows = items.map((change) => [
          change.at,
          printable(change.actor),
          printable(`${change.kind} ${change.name} ${change.action}`),
          printable(changedFields(change)),
          change.changeId,
        ]);
        for (const line of table(COLUMNS, rows, call.terminal)) call.terminal.print(line);
        noteMore(call, nextCursor);
      }
      return EXIT.ok;
    },
  },
  {
    name: 'changes show',
    args: ['ID'],
    description: 'show one change: each field before and after',
    options: {},
    async run(call) {
      const change = await call.api().call('GET /api/v1/changes/{id}', { params: { id: call.arg(0) } });
      if (call.json) call.printJson(change);
      else showChange(call, printable(change));
      return EXIT.ok;
    },
  },
  {
    name: 'changes export',
    args: ['DAY'],
    description: 'download the signed changes of a past day',
    details: [
      'Writes the signed file, its signature, and the values of the changes, which the signed file has as digests.',
      'countersign evidence verify checks all three offline. Days are those of UTC.',
    ].join('\n'),
    options: { out: { value: 'FILE', description: 'file to write (default changes-DAY.json)' } },
    async run(call) {
      const day = call.arg(0);
      const file = call.option('out') ?? `changes-${day}.json`;
      const { document, envelope } = bundleFiles(file);
      const api = call.api();
      const get = (file: 'changes.json' | 'changes.dsse.json') =>
        api.download('GET /api/v1/changes/days/{day}/{file}', { params: { day, file } });
      writeFile(document, await get('changes.json'));
      writeFile(envelope, await get('changes.dsse.json'));
      const values = valuesFile(file);
      writeFile(values, await changeValues(call, readFile(document)));
      if (call.json) call.printJson({ document, envelope, values });
      else {
        call.terminal.print(`wrote ${document}, ${envelope} and ${values}`);
        call.terminal.print(`check them: countersign evidence verify ${document}`);
      }
      return EXIT.ok;
    },
  },
  {
    name: 'changes erase',
    args: ['ID…'],
    description: 'delete personal data from changes, as operator of the stage',
    details: [
      'Deletes who made the change, its name and its values. When it was made, its kind and its action stay.',
      'The signed files have digests only, which nobody can open afterwards. A change can be erased after 48 hours.',
    ].join('\n'),
    options: {
      ...OPERATOR_OPTIONS,
      tenant: { value: 'TENANT', required: true, description: 'the tenant' },
      reason: { value: 'TEXT', required: true, description: 'why, for the history; without personal data' },
    },
    async run(call) {
      // Only this command needs AWS credentials.
      const { operatorOf } = await import('../../operator/invoke-as-operator.ts');
      const [tenant = '', reason = ''] = [call.option('tenant'), call.option('reason')];
      const { erased } = await (await operatorOf(call)).eraseChanges({ tenant, changeIds: [...call.args], reason });
      if (call.json) call.printJson({ erased });
      else for (const id of erased) call.terminal.print(printable(`erased ${id}`));
      return EXIT.ok;
    },
  },
  {
    name: 'changes pending',
    args: [],
    description: 'list changes that a second owner must confirm',
    options: pagingOptions('changes'),
    async run(call) {
      const { items, nextCursor } = await readPages(call, async (query) => {
        const page = await call.api().call('GET /api/v1/changes/pending', { query });
        return { items: page.pending, nextCursor: page.nextCursor };
      });
      if (call.json) call.printJson({ pending: items, nextCursor });
      else {
        const rows = items.map((pending) => [
          pending.changeId,
          printable(pending.kind === 'person' ? pending.person : pending.kind),
          printable(pending.requestedBy),
          pending.expired ? 'expired' : pending.expiresAt,
          printable(pending.widens.join('; ')),
        ]);
        if (items.length === 0) call.terminal.note('no pending changes');
        else {
          for (const line of table(PENDING_COLUMNS, rows, call.terminal)) call.terminal.print(line);
          call.terminal.note('countersign changes show CHANGE shows the values before and after');
        }
        noteMore(call, nextCursor);
      }
      return EXIT.ok;
    },
  },
  {
    name: 'changes confirm',
    args: ['ID'],
    description: 'confirm a change that another owner or an admin requested',
    options: {},
    async run(call) {
      const confirmed = await call
        .api()
        .call('POST /api/v1/changes/pending/{id}/confirm', { params: { id: call.arg(0) } });
      const result = 'confirmed' in confirmed ? 'the policies apply within a minute' : `${confirmed.id} is changed`;
      if (call.json) call.printJson(confirmed);
      else call.terminal.print(printable(`confirmed; ${result}`));
      return EXIT.ok;
    },
  },
  {
    name: 'changes reject',
    args: ['ID'],
    description: 'reject a pending change',
    options: { reason: { value: 'TEXT', required: true, description: 'why you reject it' } },
    async run(call) {
      const rejected = await call.api().call('POST /api/v1/changes/pending/{id}/reject', {
        params: { id: call.arg(0) },
        body: { reason: call.option('reason') ?? '' },
      });
      if (call.json) call.printJson(rejected);
      else call.terminal.print(printable(`rejected ${rejected.rejected}; nothing is changed`));
      return EXIT.ok;
    },
  },
];

/** The changes of a signed file, from the history. A late change is in the file of a later day. */
async function changeValues(call: Call, document: Buffer): Promise<string> {
  // Only this command checks a file; loading the schemas would slow down the others.
  const { CHANGE_VALUES_FORMAT, parseChangeLog } = await import(
    '../../../lambdas/evidence/verify/verify-change-log.ts'
  );
  const file = parseChangeLog(document);
  if (!file) throw new Failure(EXIT.failed, 'the stage sent a file of changes that cannot be read; try again');
  const digests = new Map(file.changes.map((change) => [change.changeId, 'digest' in change ? change.digest : null]));
  // An erased change has no salt and no values any more.
  const hasValues = ({ changeId, salt }: Change) =>
    salt === undefined ? digests.get(changeId) === null : digests.has(changeId);
  const times = file.changes.map(({ at }) => at).sort();
  const wanted = { since: times[0], until: times.at(-1), limit: String(PAGE_MAX) };
  const found: Change[] = [];
  for (let cursor: string | null | undefined = digests.size === 0 ? null : undefined; cursor !== null; ) {
    const query = { ...wanted, ...(cursor !== undefined && { cursor }) };
    const page: ResponseFrom<'GET /api/v1/changes'> = await call.api().call('GET /api/v1/changes', { query });
    found.push(...page.changes.filter(hasValues));
    cursor = page.nextCursor;
  }
  const values = { format: CHANGE_VALUES_FORMAT, tenant: file.tenant, day: file.day, changes: found.reverse() };
  return `${JSON.stringify(values, null, 2)}\n`;
}

function kindOf(call: Call): ChangeKind | undefined {
  const given = call.option('kind');
  if (given === undefined) return undefined;
  const kind = CHANGE_KINDS.find((each) => each === given);
  if (kind) return kind;
  const known = didYouMean(given, CHANGE_KINDS) || `; there are: ${CHANGE_KINDS.join(', ')}`;
  throw new UsageError(`--kind "${given}" is not a kind of definition${known}`);
}

function showChange(call: Call, change: Change): void {
  const { kind, name, action, actor, at, changeId, requestedBy, reason, secretsSet, before, after } = change;
  const page = new Page(call.terminal);
  page.title(`${kind} ${name}`, { text: action });
  page.blank();
  page.field('by', requestedBy === undefined ? actor : `${actor}; requested by ${requestedBy}`);
  page.field('at', at);
  if (reason !== undefined) page.field('reason', reason);
  if (secretsSet !== undefined) page.field('secrets set', secretsSet.join(', '));
  page.exactField('id', changeId);
  page.blank();
  const rows = differences(before, after)
    .flatMap(([field, old, now]) =>
      // One row for each file of policies.
      field === 'files' ? differences(old, now) : [[field, old, now] as const],
    )
    .map(([field, old, now]) => [field, shown(old), shown(now)]);
  if (rows.length === 0) page.line('no field differs');
  else page.table([{ title: 'FIELD' }, { title: 'BEFORE', shrink: 'wrap' }, { title: 'AFTER', shrink: 'wrap' }], rows);
}

const shown = (value: unknown): string =>
  value === undefined ? '-' : typeof value === 'string' ? value : JSON.stringify(value);

/** Name, old and new value of each field that differs. */
function differences(before: unknown, after: unknown): [field: string, old: unknown, now: unknown][] {
  const fields = (value: unknown) => new Map(Object.entries(value !== null && typeof value === 'object' ? value : {}));
  const [old, now] = [fields(before), fields(after)];
  return [...new Set([...old.keys(), ...now.keys()])]
    .filter((name) => JSON.stringify(old.get(name)) !== JSON.stringify(now.get(name)))
    .map((name) => [name, old.get(name), now.get(name)]);
}

/** Two lines: an id, which people copy, takes most of a narrow terminal. */
function printNarrow(page: Page, change: Change): void {
  const { at, actor, kind, name, action, changeId } = change;
  const fields = changedFields(change);
  page.line(`${dateAndTime(at)}  ${actor}: ${kind} ${name} ${action}${fields === '-' ? '' : ` (${fields})`}`);
  page.exactLine(`  ${changeId}`, 'quiet');
}

/** The names of the changed fields. */
function changedFields({ before, after, reason }: Change): string {
  if (reason !== undefined) return reason;
  const names = differences(before, after).map(([name]) => name);
  return before === null || after === null ? '-' : names.join(', ') || '-';
}
