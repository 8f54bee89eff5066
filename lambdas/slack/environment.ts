import { StageEnvironment } from '../entry/tenant-secrets.ts';
import { StarterEnvironment } from '../intake/environment.ts';
import { RunChangerEnvironment } from '../run-changes/environment.ts';

/** The slash command reads and starts runs. */
export const CommandsEnvironment = StarterEnvironment.extend(StageEnvironment);

export const InteractivityEnvironment = RunChangerEnvironment.extend(StageEnvironment);
