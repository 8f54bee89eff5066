import type { ProfileName } from '../../lambdas/agents/agent-terms.ts';
import type { SeccompFilter } from './seccomp.ts';

/** How the agent isolates the commands of a profile. */
export type Isolation =
  | {
      kind: 'namespaces';
      network: boolean;
      seccomp: SeccompFilter;
      /** Where the command can write; it is gone when the command ends. */
      ephemeral: readonly string[];
      /** The configuration of the agent may name folders that stay writable. */
      mayWrite: boolean;
    }
  /** Own process group and limits only. What the command starts may continue to run after it. */
  | { kind: 'process-group' };

export const ISOLATION: Readonly<Record<ProfileName, Isolation>> = {
  'prod-critical': { kind: 'namespaces', network: false, seccomp: 'strict', ephemeral: ['/tmp'], mayWrite: false },
  'prod-standard': {
    kind: 'namespaces',
    network: true,
    seccomp: 'default',
    ephemeral: ['/tmp', '/var/tmp'],
    mayWrite: true,
  },
  'staging-standard': {
    kind: 'namespaces',
    network: true,
    seccomp: 'default',
    ephemeral: ['/tmp', '/var/tmp'],
    mayWrite: false,
  },
  'dev-flex': { kind: 'process-group' },
};

export interface Limits {
  memoryMb: number;
  processes: number;
  openFiles: number;
  fileMb: number;
}

export const DEFAULT_LIMITS: Limits = { memoryMb: 2_048, processes: 512, openFiles: 1_024, fileMb: 1_024 };
