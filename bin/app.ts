import { countersignApp } from '../lib/app.ts';
import { StageError } from '../lib/stage-config.ts';

try {
  countersignApp().synth();
} catch (error) {
  if (!(error instanceof StageError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
