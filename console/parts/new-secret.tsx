import { Copyable } from './copyable.tsx';
import { UntrustedText } from './untrusted-text.tsx';

/** The only time at which a secret can be seen. It is only in the memory of this page. */
export function NewSecret({
  kind,
  name,
  secret,
  onStored,
}: {
  kind: string;
  name: string;
  secret: string;
  onStored(): void;
}) {
  return (
    <div className="secret" role="status">
      <strong>
        Store the {kind} <UntrustedText text={name} /> now: it cannot be shown again.
      </strong>
      <Copyable text={secret} label={`the new ${kind}`} />
      <div>
        <button type="button" className="link-button" onClick={onStored}>
          I have stored it
        </button>
      </div>
    </div>
  );
}
