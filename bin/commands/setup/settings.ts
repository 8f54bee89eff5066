import type { RequestFor, ResponseFrom } from '../../../client/api-client.ts';
import { didYouMean } from '../../../lambdas/entry/did-you-mean.ts';
import { FLAG_NAMES } from '../../../lambdas/run/settings/flags.ts';
import { Page } from '../../terminal/page.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, UsageError } from '../failure.ts';

type Settings = ResponseFrom<'GET /api/v1/settings'>;
type SavedSettings = NonNullable<RequestFor<'PUT /api/v1/settings'>['body']>;

/** The settings without what is read only. */
export const changeable = ({ counterShards: _shards, flags: _inEffect, ...settings }: Settings): SavedSettings =>
  settings;

/** What applies if the cap is not set. */
const CAPS = {
  maxConcurrency: 'no limit',
  maxRunsPerMinute: 'no limit',
  maxWritesPerRun: 'no limit',
  maxActionsPerMinute: '60 of each caller (default)',
};
const CAP_NAMES = Object.keys(CAPS);
const NAMES = [
  ...['approvalsChannel', 'overdueDigestMinutes', ...CAP_NAMES.map((cap) => `caps.${cap}`), 'workspaces.NAME'],
  ...FLAG_NAMES.map((flag) => `features.${flag}`),
];

export const settings: readonly Command[] = [
  {
    name: 'settings show',
    args: [],
    description: 'show the settings of the tenant',
    options: {},
    async run(call) {
      const found = await call.api().call('GET /api/v1/settings');
      if (call.json) call.printJson(found);
      else show(call, printable(found));
      return EXIT.ok;
    },
  },
  {
    name: 'settings set',
    args: ['NAME=VALUE…'],
    description: 'change settings of the tenant',
    details: `Names: ${NAMES.join(', ')}.\nNAME= without a value removes the setting.\n\ncountersign settings set approvalsChannel=#approvals caps.maxConcurrency=50`,
    options: {},
    async run(call) {
      const api = call.api();
      const before = changeable(await api.call('GET /api/v1/settings'));
      const body = call.args.reduce<SavedSettings>((changed, assignment) => assigned(changed, assignment), before);
      const saved = await api.call('PUT /api/v1/settings', { body });
      if (call.json) call.printJson(saved);
      else {
        show(call, printable(saved));
        call.terminal.note(`the settings take effect within ${saved.effectiveWithinSeconds} s`);
      }
      return EXIT.ok;
    },
  },
];

/** The settings after one `NAME=VALUE`. */
function assigned(before: SavedSettings, assignment: string): SavedSettings {
  const [, name = '', value = ''] = /^([^=]+)=(.*)$/.exec(assignment) ?? [];
  if (name === '') throw new UsageError(`"${assignment}" is not NAME=VALUE; names: ${NAMES.join(', ')}`);
  if (name === 'approvalsChannel') return { ...before, approvalsChannel: value || undefined };
  if (name === 'overdueDigestMinutes') return { ...before, overdueDigestMinutes: count(name, value) };
  const switched = FLAG_NAMES.find((flag) => name === `features.${flag}`);
  if (switched) return { ...before, features: { ...before.features, [switched]: flag(name, value) } };
  const [group, key = ''] = name.split('.');
  if (group === 'caps' && CAP_NAMES.includes(key))
    return { ...before, caps: { ...before.caps, [key]: count(name, value) } };
  if (group === 'workspaces' && key !== '') {
    const { [key]: _before, ...others } = before.workspaces ?? {};
    const units = count(name, value);
    return { ...before, workspaces: { ...others, ...(units !== undefined && { [key]: units }) } };
  }
  throw new UsageError(`unknown setting ${name}${nearest(name) || `; names: ${NAMES.join(', ')}`}`);
}

const nearest = (name: string): string =>
  didYouMean(name, NAMES) || didYouMean(name, CAP_NAMES, (cap) => `"caps.${cap}"`);

function count(name: string, value: string): number | undefined {
  if (value === '') return undefined;
  if (/^[1-9]\d{0,8}$/.test(value)) return Number(value);
  throw new UsageError(`${name} must be a number from 1 on, not "${value}"`);
}

function flag(name: string, value: string): boolean | undefined {
  if (value === '') return undefined;
  if (value === 'true' || value === 'false') return value === 'true';
  throw new UsageError(`${name} must be true or false, not "${value}"`);
}

function show({ terminal }: Call, settings: Settings): void {
  const { caps, workspaces, counterShards, approvalsChannel, overdueDigestMinutes, flags, issuers = [] } = settings;
  const page = new Page(terminal);
  page.field('approvals', approvalsChannel ?? '#approvals (default)');
  page.field(
    'overdue',
    `listed again after ${overdueDigestMinutes ?? 60} minutes${overdueDigestMinutes === undefined ? ' (default)' : ''}`,
  );
  for (const [cap, unset] of Object.entries(CAPS)) {
    page.field('caps', `${cap}: ${caps[cap as keyof typeof caps] ?? unset}`);
  }
  const units = Object.entries(workspaces).map(([name, unit]) => `${name}: ${unit}`);
  page.field('workspaces', units.join(', ') || '-');
  for (const { name, on, source, whenOff } of flags) {
    const by = source === 'tenant' ? '' : source === 'stage' ? ' (set by the stage)' : ' (default)';
    page.field('features', `${name}: ${on ? 'on' : `off: ${whenOff}`}${by}`);
  }
  page.field('shards', `${counterShards} (read only)`);
  if (issuers.length > 0) page.field('issuers', issuers.map(({ name, issuer }) => `${name}: ${issuer}`).join(', '));
}
