/**
 * Parts of the product that a tenant switches on and off. Names of the sources are as they are there. A tenant's setting
 * comes first, then `features` of the stage in cdk.json, then this default.
 */
export const FLAGS = {
  'worker_orchestration.enabled': {
    label: 'Commands on agents',
    byDefault: true,
    affectsRuns: true,
    whenOff: 'no command is assigned to an agent, and running ones are canceled',
  },
  'writes.enabled': {
    label: 'Writes',
    byDefault: true,
    affectsRuns: true,
    whenOff: 'every step that would write waits, undos and commands too; reads and decisions continue (kill switch)',
  },
  'ui.task_workspace.enabled': {
    label: 'Task workspace',
    byDefault: true,
    affectsRuns: false,
    whenOff: 'the page of a run in the console has one pane: what can be done now, then the steps',
  },
} as const;
export type FlagName = keyof typeof FLAGS;
export type FlagValues = { [Name in FlagName]?: boolean | undefined };

export const FLAG_NAMES = Object.keys(FLAGS) as FlagName[];

export const isOn = ({ features }: { features?: FlagValues | undefined }, name: FlagName): boolean =>
  features?.[name] ?? FLAGS[name].byDefault;

export interface FlagInEffect {
  name: FlagName;
  on: boolean;
  /** Who set it. */
  source: 'tenant' | 'stage' | 'default';
}

export const flagsInEffect = (tenant: FlagValues = {}, stage: FlagValues = {}): FlagInEffect[] =>
  FLAG_NAMES.map((name) => ({
    name,
    on: isOn({ features: { ...stage, ...defined(tenant) } }, name),
    source: tenant[name] === undefined ? (stage[name] === undefined ? 'default' : 'stage') : 'tenant',
  }));

/** The settings of a tenant as they apply: flags that it has not set are as in the stage. */
export function withStageFlags<Settings extends { features?: FlagValues | undefined }>(
  settings: Settings,
  stage: FlagValues,
): Settings {
  return Object.keys(stage).length === 0
    ? settings
    : { ...settings, features: { ...stage, ...defined(settings.features ?? {}) } };
}

const defined = (flags: FlagValues): FlagValues =>
  Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined));

/** The flags that change what a run does, as the run records them when it starts. */
export const flagsOfRun = (settings: { features?: FlagValues | undefined }): Record<string, boolean> =>
  Object.fromEntries(FLAG_NAMES.filter((name) => FLAGS[name].affectsRuns).map((name) => [name, isOn(settings, name)]));

/** A step that waits for a flag asks again after this time; later the sweeper sends its run. */
export const ASKS_AGAIN_AFTER_MS = 60_000;

export const WRITES_ARE_OFF =
  'writes are switched off for this tenant (writes.enabled); the step waits until they are switched on';
export const WRITES_UNREADABLE =
  'the settings could not be read, so nothing was sent: writes may be switched off (writes.enabled); the step tries again';
export const AGENTS_ARE_OFF =
  'agents are switched off for this tenant (worker_orchestration.enabled); the step waits until they are switched on';
