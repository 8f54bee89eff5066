import { safeText, UntrustedText } from './untrusted-text.tsx';

/** What a run is about: `servicenow:acme:INC0010001` is shown as `INC0010001`, and whole as its tooltip. */
export function Subject({ subject }: { subject: string }) {
  return (
    <span title={safeText(subject)}>
      <UntrustedText text={subject.replace(/^[a-z]+:(?:[a-z0-9-]+:(?=.))?/, '')} max={60} isName />
    </span>
  );
}
