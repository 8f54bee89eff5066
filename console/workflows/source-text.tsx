import { UntrustedText } from '../parts/untrusted-text.tsx';
import type { WorkflowVersion } from './workflow-area.tsx';

const SHOWN_MAX_CHARACTERS = 20_000;

/** The file of a version. Versions of older releases have only the definition. */
export const sourceOf = ({ source, definition }: Pick<WorkflowVersion, 'source' | 'definition'>): string =>
  source ?? JSON.stringify(definition, null, 2);

export function SourceText({ version }: { version: WorkflowVersion }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with the keyboard
    <pre className="source-text" tabIndex={0}>
      <UntrustedText text={sourceOf(version)} lines="many" max={SHOWN_MAX_CHARACTERS} />
    </pre>
  );
}
